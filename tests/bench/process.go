package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
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
	url  string
	dir  string // its data
	args []string
	path string
	cmd  *exec.Cmd
}

// freeAddr returns an address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs the server and returns when it answers at /health.
func (p *process) start() error {
	p.cmd = exec.Command(p.path, p.args...)
	log, err := os.Create(p.dir + ".log")
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		for _, path := range []string{"/ready", "/health"} { // VictoriaMetrics has only the second
			if resp, err := http.Get(p.url + path); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return nil
				}
				if path == "/ready" && resp.StatusCode == http.StatusServiceUnavailable {
					break
				}
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s does not start; see %s.log", p.name, p.dir)
}

// stop ends the server in order.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// cpu returns the processor time that the server has used.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses, which may hold blanks.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2) // USER_HZ is 100
}

// peakRSS returns VmHWM in bytes.
func (p *process) peakRSS() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmHWM in /proc")
}

// diskBytes returns the size of all files below dir.
func diskBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		total += info.Size()
		return err
	})
	return total, err
}
