package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
	status, _ := ask(t, s, path)
	return status
}

func textOf(t *testing.T, s *Server, path string) string {
	t.Helper()
	_, text := ask(t, s, path)
	return text
}

func ask(t *testing.T, s *Server, path string) (int, string) {
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
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
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
	if text := textOf(t, s, "/metrics"); !regexp.MustCompile(`varve_data_disk_free_bytes [1-9]`).MatchString(text) {
		t.Error("/metrics does not know how much of the disk is free")
	}
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

// TestDrain sees a server that is told to stop: not ready, but serving, until
// the drain delay is over.
func TestDrain(t *testing.T) {
	synced := make(chan struct{}) // closed when the server has drained
	cfg := testConfig(t)
	cfg.HTTP.DrainDelay = config.Duration(300 * time.Millisecond)
	s, err := Start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	go func() { s.Drain(); close(synced) }()
	for statusOf(t, s, "/ready") != 503 {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("/ready never says 503")
		}
	}
	if got := statusOf(t, s, "/v1/sql?sql=SHOW+DATABASES"); got != 200 {
		t.Errorf("while it drains, /v1/sql answers %d", got)
	}
	<-synced
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("drained after %v", took)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCutRequestsAreAnswered stops a server under a query that runs too long.
func TestCutRequestsAreAnswered(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTP.ShutdownTimeout = config.Duration(time.Millisecond)
	s, err := Start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		status int
		text   string
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		const query = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"
		resp, err := http.PostForm("http://"+s.Addr()+"/v1/sql", url.Values{"sql": {query}})
		if err != nil {
			answers <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		answers <- answer{resp.StatusCode, string(text), err}
	}()
	running := "varve_http_requests_in_flight 2" // the query, and the one that asks
	for begun := time.Now(); !strings.Contains(textOf(t, s, "/metrics"), running); {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the query never runs")
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	got := <-answers
	if got.err != nil || got.status != 503 || !strings.Contains(got.text, "the server is stopping") {
		t.Errorf("got %d %s, %v; want 503 and that the server is stopping", got.status, got.text, got.err)
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

// A body that can never fit into the memory for bodies is refused for good, at
// once and however it is sent: a 503 would make its client send it for ever.
func TestBodyOverMemory(t *testing.T) {
	cfg := testConfig(t)
	cfg.Memory.Limit = 256 << 20 // 16 MiB for bodies
	s, err := Start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(bytes.Repeat([]byte("#\n"), 20<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("POST", "http://"+s.Addr()+"/write", &bomb)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "gzip")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %s, want 413", resp.Status)
	}
}
