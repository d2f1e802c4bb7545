package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is a server under measurement.
type process struct {
	name string
	cmd  *exec.Cmd
	url  string
	dir  string // its data
}

// startProcess starts a server and waits until readyPath answers 2xx.
func startProcess(ctx context.Context, name, url, readyPath, dir string, args ...string) (*process, error) {
	p := &process{name: name, url: url, dir: dir, cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
	logFile, err := os.Create(filepath.Join(dir, "..", name+".log"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url + readyPath)
		if err != nil {
			continue
		}
		resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s is not ready after 30 s, see %s", name, logFile.Name())
}

// stop ends the server as an operator would and waits for it.
func (p *process) stop() {
	if p.cmd.Process.Signal(syscall.SIGTERM) == nil {
		_ = p.cmd.Wait() // the exit code of a measured server says nothing here
	}
}

// cpuSeconds returns the user and system time the server has used.
func (p *process) cpuSeconds() float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ is 100 on Linux
}

// peakBytes returns the largest resident size so far.
func (p *process) peakBytes() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// diskBytes returns the size of all files in dir whose path contains part.
func diskBytes(dir, part string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, part) {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil // files come and go while a server runs
	})
	return total
}
