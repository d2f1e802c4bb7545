package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Target is a Varve that a test talks to over its protocols: one process
// today, and a cluster of them later. Tests know nothing else of it.
type Target interface {
	// URL is where the HTTP API is, such as http://127.0.0.1:4000.
	URL() string
	// Start starts what Kill or Stop ended, on the same data, and returns when
	// it is ready.
	Start()
	// Kill ends it as a power cut would: kill -9.
	Kill()
	// Stop ends it in order; anything but a clean exit fails the test.
	Stop()
}

// startTimeout bounds a start, including recovery.
const startTimeout = 60 * time.Second

// binary builds varve once for all tests. VARVE_BINARY names a built one.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("VARVE_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(buildDir, "varve")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/varve")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build varve: %w\n%s", err, out)
	}
	return path, nil
})

var buildDir string // made and removed by TestMain

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "varve-tests-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir) // a leftover in the temporary directory harms nobody
	os.Exit(code)
}

// standalone is the Target of one process with a data directory of its own.
type standalone struct {
	t    *testing.T
	home string
	args []string
	url  string
	cmd  *exec.Cmd
	log  *serverLog
}

// startStandalone starts a server on a free port; it is gone when the test ends.
func startStandalone(t *testing.T, args ...string) *standalone {
	t.Helper()
	s := &standalone{t: t, home: filepath.Join(t.TempDir(), "data"), args: args}
	s.Start()
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Kill()
		}
		if t.Failed() {
			t.Logf("the server's log ends with:\n%s", s.log.tail())
		}
	})
	return s
}

func (s *standalone) URL() string { return s.url }

func (s *standalone) Start() {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	args := append([]string{"standalone", "start", "--http-addr", "127.0.0.1:0", "--data-home", s.home}, s.args...)
	s.cmd = exec.Command(path, args...)
	s.log = newServerLog()
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	addr, err := s.log.waitReady(ctx)
	if err != nil {
		s.Kill()
		s.t.Fatalf("start: %v; the log ends with:\n%s", err, s.log.tail())
	}
	s.url = "http://" + addr
	resp, err := http.Get(s.url + "/ready")
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("/ready answers %s after the server said that it is ready", resp.Status)
	}
}

func (s *standalone) Kill() {
	s.t.Helper()
	_ = s.cmd.Process.Kill() // it may have ended by itself
	_ = s.cmd.Wait()         // "killed" is what is meant to be
	s.cmd = nil
}

func (s *standalone) Stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	err := s.cmd.Wait()
	s.cmd = nil
	if err != nil {
		s.t.Fatalf("stop: %v; the log ends with:\n%s", err, s.log.tail())
	}
}

// A serverLog takes what a server writes to standard error, and finds in it
// the address of a server that is ready.
type serverLog struct {
	ready chan string // gets the address once

	mu struct {
		sync.Mutex
		lines []string
		part  string
	}
}

const keptLines = 60

var readyLine = regexp.MustCompile(`msg=ready addr=(\S+)`)

func newServerLog() *serverLog { return &serverLog{ready: make(chan string, 1)} }

// Write takes a piece of the log.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	scan := bufio.NewScanner(strings.NewReader(l.mu.part + string(p)))
	scan.Buffer(nil, 1<<20)
	l.mu.part = ""
	for scan.Scan() {
		line := scan.Text()
		if m := readyLine.FindStringSubmatch(line); m != nil {
			select {
			case l.ready <- m[1]:
			default:
			}
		}
		if l.mu.lines = append(l.mu.lines, line); len(l.mu.lines) > 2*keptLines {
			l.mu.lines = append(l.mu.lines[:0], l.mu.lines[keptLines:]...)
		}
	}
	if len(p) > 0 && p[len(p)-1] != '\n' && len(l.mu.lines) > 0 {
		last := len(l.mu.lines) - 1
		l.mu.part, l.mu.lines = l.mu.lines[last], l.mu.lines[:last]
	}
	return len(p), nil
}

func (l *serverLog) waitReady(ctx context.Context) (string, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case addr := <-l.ready:
			return addr, nil
		case <-ctx.Done():
			return "", errors.New("not ready in time")
		case <-tick.C:
			if line := l.failure(); line != "" {
				return "", errors.New(line)
			}
		}
	}
}

// failure returns the line with which a server gave up, if it did.
func (l *serverLog) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.mu.lines {
		if strings.HasPrefix(line, "varve: ") {
			return line
		}
	}
	return ""
}

func (l *serverLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.mu.lines[max(0, len(l.mu.lines)-keptLines):], "\n")
}
