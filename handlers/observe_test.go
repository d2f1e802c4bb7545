package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/varvedb/varve/fault"
)

func TestLogLevels(t *testing.T) {
	f := func(opts RouterOptions, route string, status int, took time.Duration, want slog.Level) {
		t.Helper()
		if got := NewRouter(opts).logLevel(route, status, took); got != want {
			t.Errorf("%s %d after %v: %v, want %v", route, status, took, got, want)
		}
	}
	quiet, all, slow := RouterOptions{}, RouterOptions{LogAll: true}, RouterOptions{Slow: time.Second}
	f(quiet, "/write", 204, time.Minute, slog.LevelDebug)
	f(all, "/write", 204, 0, slog.LevelInfo)
	f(all, "/metrics", 200, 0, slog.LevelDebug)
	f(slow, "/v1/sql", 200, 999*time.Millisecond, slog.LevelDebug)
	f(slow, "/v1/sql", 200, time.Second, slog.LevelWarn)
	f(quiet, "/write", 400, 0, slog.LevelInfo)
	f(quiet, "/write", 499, 0, slog.LevelInfo)
	f(quiet, "/write", 503, 0, slog.LevelWarn)
	f(quiet, "/v1/sql", 504, 0, slog.LevelWarn)
	f(quiet, "/v1/sql", 500, 0, slog.LevelError)
	f(quiet, "/ready", 503, 0, slog.LevelDebug)
}

func TestLoggedStatement(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := loggedStatement(in); got != want {
			t.Errorf("%.50q: %.80q, want %.80q", in, got, want)
		}
	}
	f(" SELECT 1 ", "SELECT 1")
	f("insert into t values (1, 'secret')", "insert into t values …")
	f("SELECT 1; INSERT INTO t VALUES ('secret')", "SELECT 1; INSERT INTO t VALUES …")
	f("INSERT INTO t ("+strings.Repeat("c,", 1000)+"d) VALUES ('secret')", "INSERT INTO t ("+strings.Repeat("c,", 504)+"c …")
	f(strings.Repeat("x", 1023)+"é", strings.Repeat("x", 1023)+" …")
}

// TestSQLInLog finds the statements of requests that fail, and of those that
// do not only where they are slow.
func TestSQLInLog(t *testing.T) {
	f := func(slow time.Duration, statement string, want bool) {
		t.Helper()
		var log bytes.Buffer
		rt := NewRouter(RouterOptions{Slow: slow, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		rt.Serve(&SQL{Engine: &fakeEngine{}})
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/sql?sql="+url.QueryEscape(statement), nil))
		if got := strings.Contains(log.String(), "sql="); got != want {
			t.Errorf("%s: the log has it: %v\n%s", statement, got, log.String())
		}
	}
	f(0, "SELECT 1", false)
	f(time.Nanosecond, "SELECT 1", true)
	f(0, "SELECT x", true)
	f(0, "SELECT '", true)
}

func TestStatementsAreCounted(t *testing.T) {
	rt := NewRouter(RouterOptions{})
	rt.Serve(&SQL{Engine: &fakeEngine{}})
	for _, statement := range []string{"SELECT 1", "(select 2)", "SELECT 1; SELECT x; SELECT 3", "SELECT '", "SHOW TABLES", "FROM t"} {
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/sql?sql="+url.QueryEscape(statement), nil))
	}
	f := func(kind, code string, want float64) {
		t.Helper()
		if got := testutil.ToFloat64(rt.metrics.statements.WithLabelValues(kind, code)); got != want {
			t.Errorf("%s with %s: %v, want %v", kind, code, got, want)
		}
	}
	f("select", "0", 3)
	f("select", "4002", 1)
	f("select", "2000", 1)
	f("show", "0", 1)
	f("other", "0", 1)
}

func TestLinesAreCounted(t *testing.T) {
	h, _, _ := newInflux(t, RouterOptions{})
	rt := h.(*Router)
	for _, lines := range []string{"m f=1\nm f=2", "m f=1\nm f=x\nm", "m f=1"} {
		rt.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/write", strings.NewReader(lines)))
	}
	written, dropped := rt.metrics.lines.WithLabelValues("influxdb", "written"), rt.metrics.lines.WithLabelValues("influxdb", "dropped")
	if w, d := testutil.ToFloat64(written), testutil.ToFloat64(dropped); w != 4 || d != 2 {
		t.Errorf("%v lines written and %v dropped, want 4 and 2", w, d)
	}
	if n := testutil.ToFloat64(rt.metrics.partial.WithLabelValues("influxdb")); n != 1 {
		t.Errorf("%v partial writes, want 1", n)
	}
}

// TestWhoseFault tells a client that went away from a server that stops.
func TestWhoseFault(t *testing.T) {
	f := func(cause, err error, want int) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		rt := NewRouter(RouterOptions{})
		rt.Serve(routes(func(r chi.Router) {
			r.Get("/x", Handle(func(http.ResponseWriter, *http.Request) error {
				if cause != nil {
					cancel(cause)
				}
				return err
			}))
		}))
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil).WithContext(ctx))
		cancel(nil)
		if w.Code != want {
			t.Errorf("%v, %v: %d, want %d: %s", cause, err, w.Code, want, w.Body)
		}
	}
	opening := fault.Wrap(fault.Unavailable, fmt.Errorf("open region 0: %w", context.Canceled))
	f(nil, opening, 503)
	f(context.Canceled, opening, 499)
	f(context.Canceled, context.Canceled, 499)
	f(context.Canceled, errors.New("a bug"), 500)
	f(context.Canceled, fault.Errorf(fault.Plan, "no"), 400)
	f(ErrStopping, context.Canceled, 503)
	f(ErrStopping, fault.Errorf(fault.Plan, "no"), 400)
}

// TestMessagesHideStorage holds paths and keys back from clients.
func TestMessagesHideStorage(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		var log bytes.Buffer
		rt := NewRouter(RouterOptions{HiddenPath: "/srv/varve", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		rt.Serve(routes(func(r chi.Router) {
			r.Get("/x", Handle(func(http.ResponseWriter, *http.Request) error { return err }))
		}))
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("X-Request-Id", "r1")
		rt.ServeHTTP(w, r)
		if got := w.Body.String() + w.Header().Get("x-greptime-err-msg"); strings.Contains(got, "/srv") || strings.Contains(got, "code=") || !strings.Contains(got, want) {
			t.Errorf("the client gets %q, want %q", got, want)
		}
		if w.Code >= 500 && !strings.Contains(log.String(), "/srv") {
			t.Errorf("the log lacks the details: %s", log.String())
		}
	}
	denied := &fs.PathError{Op: "open", Path: "/srv/varve/data/x", Err: syscall.EACCES}
	f(fault.Wrap(fault.Unavailable, fmt.Errorf("open region 0: %w", denied)), "the server's storage fails, request id r1")
	f(fault.Errorf(fault.Unavailable, `read object k: blob (key "k") (code=Unknown): at /srv/varve`), "the server's storage fails")
	full := &fs.PathError{Op: "write", Path: "/srv/varve/wal/1", Err: syscall.ENOSPC}
	f(fault.Wrap(fault.Unavailable, full), "the server's disk is full")
	f(fmt.Errorf("rename: %w", denied), "internal error, request id r1")
	f(fault.Errorf(fault.Exhausted, "no room in /srv/varve/tmp/duckdb"), "no room in DATA_HOME/tmp/duckdb")
	f(fault.Errorf(fault.Plan, "no column"), "no column")
}

// TestDatabaseBehindCatalog writes with names as GreptimeDB's clients send them.
func TestDatabaseBehindCatalog(t *testing.T) {
	router, engine, c := newInflux(t, RouterOptions{})
	if err := c.CreateDatabase(t.Context(), "greptime-dash", false, nil); err != nil {
		t.Fatal(err)
	}
	f := func(address, header, want string, status int) {
		t.Helper()
		engine.got.Reset()
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", address, strings.NewReader("m f=1"))
		r.Header.Set("x-greptime-db-name", header)
		router.ServeHTTP(w, r)
		if w.Code != status || !strings.HasPrefix(engine.got.String(), want) {
			t.Errorf("%s %s: %d, wrote %q", address, header, w.Code, engine.got.String())
		}
	}
	f("/write?db=greptime-public", "", "public.m", 204)
	f("/write?db=greptime-metrics", "", "metrics.m", 204)
	f("/write", "greptime-metrics", "metrics.m", 204)
	f("/api/v2/write?bucket=greptime-metrics/autogen", "", "metrics.m", 204)
	f("/write?db=greptime-dash", "", "greptime-dash.m", 204)
	f("/write?db=dash", "", "", 404)
	f("/write?db=greptime-", "", "", 404)
	f("/write?db=other-public", "", "", 404)
}

// TestInfluxHints tells what most often is behind lines that cannot be read.
func TestInfluxHints(t *testing.T) {
	router, _, _ := newInflux(t, RouterOptions{})
	f := func(body, hint string, want bool) {
		t.Helper()
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest("POST", "/write", strings.NewReader(body)))
		if w.Code != 400 || strings.Contains(w.Body.String(), hint) != want {
			t.Errorf("%q: %d %s, %q is there: want %v", body, w.Code, w.Body, hint, want)
		}
	}
	f("\x1f\x8b\b\x00", "Content-Encoding: gzip", true)
	f("x h=a", "strings need double quotes", true)
	f("x h='a'", "strings need double quotes", true)
	f("x h=+", "strings need double quotes", false)
	f("m,a=b f=1 1m,a=c f=2 2", "--data-binary", true)
	f("m f=1m f=2m f=3", "--data-binary", true)
	f("m f=a 1", "--data-binary", false)
	f("m f=1 1\nm f=a b c 2", "--data-binary", false)
}
