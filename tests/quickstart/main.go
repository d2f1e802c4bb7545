// Command quickstart does what a reader of the README does: it runs the
// commands of the section "Quick start" as they are written, on a fresh
// server, and compares what they print with what the README shows.
//
//	go run ./tests/quickstart README.md
//
// The first block starts the server and keeps running; its data goes to a
// temporary directory. Each further sh block is run to its end. A json or text
// block behind it is what it must print; only the times that answers carry may
// differ.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	readyURL    = "http://127.0.0.1:4000/ready"
	readyWithin = 150 * time.Second // the first build links DuckDB
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: quickstart README.md")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(readme string) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	steps, err := stepsOf(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", readme, err)
	}
	stop, err := startServer(steps[0].command)
	if err != nil {
		return err
	}
	for _, s := range steps[1:] {
		if err := s.check(); err != nil {
			return errors.Join(err, stop())
		}
		fmt.Printf("ok: %s\n", strings.ReplaceAll(s.command, "\n", "\n    "))
	}
	return stop()
}

// A step is a block of commands and what it must print.
type step struct {
	command string
	compare bool
	want    string
}

// fence matches a fenced block: its language and its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func stepsOf(readme string) ([]step, error) {
	_, section, ok := strings.Cut(readme, "\n## Quick start\n")
	if !ok {
		return nil, errors.New(`no section "Quick start"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []step
	compared := 0
	for _, m := range fence.FindAllStringSubmatch(section, -1) {
		switch {
		case m[1] == "sh":
			steps = append(steps, step{command: strings.TrimSpace(m[2])})
		case len(steps) > 0 && !steps[len(steps)-1].compare:
			last := &steps[len(steps)-1]
			last.compare, last.want = true, m[2]
			compared++
		default:
			return nil, fmt.Errorf("a %s block without a command before it", m[1])
		}
	}
	if len(steps) < 3 || compared == 0 {
		return nil, fmt.Errorf("%d command blocks and %d outputs in the quick start: too few to be true", len(steps), compared)
	}
	return steps, nil
}

// startServer runs the command in a process group of its own and returns when
// the server is ready. stop ends it and says if it did not end well.
func startServer(command string) (stop func() error, err error) {
	if resp, err := http.Get(readyURL); err == nil {
		resp.Body.Close()
		return nil, fmt.Errorf("something answers at %s already", readyURL)
	}
	home, err := os.MkdirTemp("", "varve-quickstart-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-ec", command)
	cmd.Env = append(os.Environ(), "VARVE_STANDALONE__DATA_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1) // gets the result of Wait once
	go func() { ended <- cmd.Wait() }()
	stop = func() error {
		defer os.RemoveAll(home)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // make and the shell are told too, and may say so
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			return errors.New("the server does not stop")
		}
		if !strings.Contains(log.String(), "msg=stopped") {
			return fmt.Errorf("the server did not stop in order:\n%s", log.String())
		}
		return nil
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for timeout := time.After(readyWithin); ; {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("%s ended: %w\n%s", command, err, log.String())
		case <-timeout:
			return nil, errors.Join(fmt.Errorf("%s is not ready after %s", command, readyWithin), stop())
		case <-tick.C:
		}
		if resp, err := http.Get(readyURL); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return stop, nil
			}
		}
	}
}

func (s step) check() error {
	cmd := exec.Command("sh", "-ec", s.command)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s%s", s.command, err, stdout.String(), stderr.String())
	}
	if got, want := normalise(stdout.String()), normalise(s.want); s.compare && got != want {
		return fmt.Errorf("%s\nprints\n%s\nthe README shows\n%s", s.command, got, want)
	}
	return nil
}

var executionTime = regexp.MustCompile(`"execution_time_ms":[0-9]+`)

// normalise replaces what truly varies.
func normalise(s string) string {
	return strings.TrimSpace(executionTime.ReplaceAllString(s, `"execution_time_ms":0`))
}
