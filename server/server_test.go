package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/server/config"
)

func testConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.HTTP.Addr = "127.0.0.1:0"
	cfg.DataHome = filepath.Join(t.TempDir(), "a", "data")
	cfg.Memory.Limit = 1 << 30
	return cfg
}

// statusOf asks over a connection of its own, so that none idles afterwards.
func statusOf(t *testing.T, s *Server, path string) int {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestStartRecoverClose(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	cfg := testConfig(t)
	log := slog.New(slog.DiscardHandler)
	s, err := Start(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	f := func(path string, want int) {
		t.Helper()
		if got := statusOf(t, s, path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	f("/health", 200)
	f("/ready", 503)
	f("/v1/sql?sql=SHOW+DATABASES", 503)
	if err := s.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	f("/ready", 200)
	f("/v1/sql?sql=SHOW+DATABASES", 200)
	if _, err := Start(cfg, log); err == nil || !strings.Contains(err.Error(), cfg.DataHome) {
		t.Errorf("a second server on the same directory: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cfg.DataHome, pidName)); !os.IsNotExist(err) {
		t.Errorf("the process id is still there: %v", err)
	}
	goleak.VerifyNone(t, ignore)
}

func TestStartFails(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	first, err := Start(testConfig(t), log)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cfg := testConfig(t)
	cfg.HTTP.Addr = first.Addr()
	if _, err := Start(cfg, log); err == nil || !strings.Contains(err.Error(), "http.addr") {
		t.Errorf("a port in use: got %v", err)
	}
	cfg.HTTP.Addr = "127.0.0.1:0" // the failed start has given the directory up
	second, err := Start(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestRunStopsInOrder stops a server as soon as it is ready, and one before.
func TestRunStopsInOrder(t *testing.T) {
	for _, during := range []string{"msg=starting", "msg=ready"} {
		ctx, cancel := context.WithCancel(context.Background())
		log := &stopper{word: during, stop: cancel}
		if err := Run(ctx, testConfig(t), slog.New(slog.NewTextHandler(log, nil))); err != nil {
			t.Errorf("stopped at %q: %v", during, err)
		}
		if !strings.HasSuffix(log.text.String(), "msg=stopped\n") {
			t.Errorf("stopped at %q: the log ends otherwise:\n%s", during, log.text.String())
		}
		cancel()
	}
}

// A stopper is a log that calls stop when a word comes by.
type stopper struct {
	text bytes.Buffer
	word string
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.word) {
		s.stop()
	}
	return s.text.Write(p)
}
