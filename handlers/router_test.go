package handlers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/telemetry"
)

// routes lets a test be a Protocol.
type routes func(r chi.Router)

func (f routes) Register(r chi.Router) { f(r) }

// testServer serves the routes, and returns what is logged.
func testServer(t *testing.T, opts RouterOptions, protocols ...Protocol) (*httptest.Server, *Router, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	reg := telemetry.NewRegistry()
	opts.Logger, opts.Registry = slog.New(slog.NewTextHandler(log, nil)), reg
	opts.Admin = &Admin{Started: time.Now(), Registry: reg, Config: []byte("[http]\n")}
	rt := NewRouter(opts)
	if protocols != nil {
		rt.Serve(protocols...)
	}
	s := httptest.NewServer(rt)
	t.Cleanup(s.Close)
	return s, rt, log
}

func get(t *testing.T, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: read answer: %v", method, url, err)
	}
	return resp, string(body)
}

func TestErrorsBecomeStatuses(t *testing.T) {
	var fail error
	s, _, log := testServer(t, RouterOptions{}, routes(func(r chi.Router) {
		r.Get("/fail", Handle(func(http.ResponseWriter, *http.Request) error { return fail }))
	}))
	f := func(err error, status int, code, body string) {
		t.Helper()
		fail = err
		resp, got := get(t, "GET", s.URL+"/fail", "X-Request-Id", "r1")
		if resp.StatusCode != status || resp.Header.Get("x-greptime-err-code") != code || got != body+"\n" {
			t.Errorf("%v: got %d, code %s, %q", err, resp.StatusCode, resp.Header.Get("x-greptime-err-code"), got)
		}
		if retry := resp.Header.Get("Retry-After"); (retry != "") != (status == 503) {
			t.Errorf("%v: Retry-After %q with %d", err, retry, status)
		}
	}
	f(fault.Errorf(fault.Invalid, "bad \"x\""), 400, "1004", `{"error":"bad \"x\""}`)
	f(fmt.Errorf("scan: %w", fault.Errorf(fault.TableNotFound, "no t")), 400, "4001", `{"error":"scan: no t"}`)
	f(fault.Errorf(fault.Unavailable, "later"), 503, "5000", `{"error":"later"}`)
	f(fault.Errorf(fault.Exhausted, "memory"), 503, "6000", `{"error":"memory"}`)
	f(WithStatus(404, fault.Errorf(fault.DatabaseMissing, "no db")), 404, "4004", `{"error":"no db"}`)
	f(errors.New("password is hunter2"), 500, "1003", `{"error":"internal error, request id r1"}`)
	if !strings.Contains(log.String(), "hunter2") {
		t.Error("the details of an internal error are not in the log")
	}
}

func TestEveryKindHasAnAnswer(t *testing.T) {
	for k := fault.Internal; k <= fault.Timeout; k++ {
		if Status(k) < 400 || Code(k) < 1000 {
			t.Errorf("kind %d: status %d, code %d", k, Status(k), Code(k))
		}
		if err := fault.Errorf(k, "x"); k != fault.Cancelled && fault.Retryable(err) != (Status(k) >= 500) {
			t.Errorf("kind %d: retryable is %v but the status is %d", k, fault.Retryable(err), Status(k))
		}
	}
}

func TestPanicsAre500(t *testing.T) {
	s, rt, log := testServer(t, RouterOptions{}, routes(func(r chi.Router) {
		r.Get("/early", Handle(func(http.ResponseWriter, *http.Request) error { panic("boom") }))
		r.Get("/late", Handle(func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "half")
			panic("boom")
		}))
		r.Get("/lateError", Handle(func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "half")
			return errors.New("boom")
		}))
	}))
	resp, body := get(t, "GET", s.URL+"/early", "X-Request-Id", "r2")
	if resp.StatusCode != 500 || !strings.Contains(body, "request id r2") {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
	if !strings.Contains(log.String(), "router_test.go") {
		t.Error("no stack in the log")
	}
	oneShot := &http.Transport{DisableKeepAlives: true} // on a used connection it would repeat the request
	for _, path := range []string{"/late", "/lateError"} {
		for _, encoding := range []string{"identity", "gzip"} {
			req, _ := http.NewRequest("GET", s.URL+path, nil)
			req.Header.Set("Accept-Encoding", encoding)
			resp, err := oneShot.RoundTrip(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Errorf("%s, %s: half an answer looks whole", path, encoding)
			}
		}
	}
	if n := testutil.ToFloat64(rt.metrics.panics); n != 3 {
		t.Errorf("varve_http_panics_total is %v, want 3", n)
	}
}

func TestStartingRouter(t *testing.T) {
	s, rt, _ := testServer(t, RouterOptions{})
	f := func(path string, want int) {
		t.Helper()
		resp, body := get(t, "GET", s.URL+path)
		if resp.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", path, resp.StatusCode, body, want)
		}
		if want == 503 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", path)
		}
	}
	f("/health", 200)
	f("/v1/health", 200)
	f("/metrics", 200)
	f("/status", 200)
	f("/", 200)
	f("/config", 200)
	f("/ready", 503)
	f("/v1/sql", 503)
	rt.Serve()
	f("/ready", 200)
	f("/v1/sql", 404)
	rt.Drain()
	f("/ready", 503)
	f("/health", 200)
}

func TestMethods(t *testing.T) {
	s, _, _ := testServer(t, RouterOptions{}, routes(func(chi.Router) {}))
	resp, _ := get(t, "DELETE", s.URL+"/health")
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE: got %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if resp, _ := get(t, "HEAD", s.URL+"/health"); resp.StatusCode != 200 {
		t.Errorf("HEAD: got %d", resp.StatusCode)
	}
}

func TestAccessLogAndMetrics(t *testing.T) {
	s, _, log := testServer(t, RouterOptions{LogAll: true}, routes(func(r chi.Router) {
		r.Post("/t/{name}", Handle(func(w http.ResponseWriter, r *http.Request) error {
			SetDatabase(r, "mine")
			WriteJSON(w, 200, "x")
			return nil
		}))
	}))
	get(t, "POST", s.URL+"/t/secret?token=hunter2", "X-Request-Id", "r3")
	line := log.String()
	for _, want := range []string{"request_id=r3", "route=/t/{name}", "method=POST", "status=200", "bytes=4", "db=mine"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %q", want, line)
		}
	}
	if strings.Contains(line, "hunter2") {
		t.Error("the query string is in the log")
	}
	_, metrics := get(t, "GET", s.URL+"/metrics")
	want := `varve_http_request_duration_seconds_count{method="POST",route="/t/{name}",status="200"} 1`
	if !strings.Contains(metrics, want) {
		t.Errorf("metrics have no %s", want)
	}
}

func TestGzipAnswersKeepFlushing(t *testing.T) {
	next := make(chan struct{}) // the test closes it when it has seen the first part
	s, _, _ := testServer(t, RouterOptions{}, routes(func(r chi.Router) {
		r.Get("/stream", Handle(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-next
			_, err := io.WriteString(w, strings.Repeat("x", 4096))
			return err
		}))
	}))
	req, _ := http.NewRequest("GET", s.URL+"/stream", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("not compressed")
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 6)
	if _, err := io.ReadFull(z, first); err != nil || string(first) != "first\n" {
		t.Fatalf("first part: %q, %v", first, err)
	}
	close(next)
	if rest, err := io.ReadAll(z); err != nil || len(rest) != 4096 {
		t.Fatalf("rest: %d bytes, %v", len(rest), err)
	}
}
