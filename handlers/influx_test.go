package handlers

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest"
	"github.com/varvedb/varve/table"
)

// A fakeWriter notes which rows it got, and fails for tables whose names say
// how.
type fakeWriter struct{ got strings.Builder }

func (f *fakeWriter) Write(_ context.Context, info *table.Info, _ uint32, rows *table.Rows) error {
	switch info.Name {
	case "busy":
		return fault.Errorf(fault.Unavailable, "memory for new rows is full")
	case "bug":
		return fmt.Errorf("secret detail")
	case "never":
		return fault.Errorf(fault.Invalid, "can never be written")
	}
	fmt.Fprintf(&f.got, "%s.%s: %d rows, times %v\n", info.Database, info.Name, rows.Len(), rows.Times)
	return nil
}

// newInflux returns a router that takes lines at a fixed time.
func newInflux(t *testing.T, opts RouterOptions) (http.Handler, *fakeWriter, *catalog.Catalog) {
	t.Helper()
	c, w := catalog.NewMemory(catalog.Options{}), &fakeWriter{}
	if err := c.CreateDatabase(t.Context(), "metrics", false, nil); err != nil {
		t.Fatal(err)
	}
	in := ingest.New(c, w, ingest.Options{Now: func() time.Time { return time.Unix(1_700_000_000, 5) }})
	rt := NewRouter(opts)
	rt.Serve(&Influx{Ingester: in, Catalog: c})
	return rt, w, c
}

// TestInflux runs testdata/influx. Its blocks are requests, as in TestSQL; what
// reached the engine is printed behind the answer.
func TestInflux(t *testing.T) {
	router, engine, _ := newInflux(t, RouterOptions{BodyLimit: 200})
	datadriven.RunTest(t, "testdata/influx", func(t *testing.T, d *datadriven.TestData) string {
		r := parseRequest(d.Input)
		if d.HasArg("gzip") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, body, _ := strings.Cut(d.Input, "\n\n")
			_, _ = z.Write([]byte(body)) // to memory
			_ = z.Close()
			headers := r.Header
			r = httptest.NewRequest(r.Method, r.URL.String(), &packed)
			r.Header = headers
			r.Header.Set("Content-Encoding", "gzip")
		}
		r.Header.Set("X-Request-Id", "42")
		engine.got.Reset()
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		checkContract(t, r, d.Input, w)
		var out strings.Builder
		fmt.Fprintf(&out, "%d\n", w.Code)
		for _, h := range []string{"Retry-After", "X-Influxdb-Error", "X-Influx-Error"} {
			if v := w.Header().Get(h); v != "" {
				fmt.Fprintf(&out, "%s: %s\n", h, v)
			}
		}
		if w.Header().Get("X-Influxdb-Version") == "" || w.Header().Get("X-Influxdb-Build") == "" || w.Header().Get("Request-Id") != "42" {
			t.Errorf("headers of an InfluxDB are missing: %v", w.Header())
		}
		fmt.Fprintf(&out, "%s%s", w.Body, engine.got.String())
		return out.String()
	})
}

// Every address is there, and takes what its clients send.
func TestInfluxRoutes(t *testing.T) {
	router, _, _ := newInflux(t, RouterOptions{})
	f := func(method, path, body string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, want)
		}
	}
	for _, prefix := range []string{"", "/v1/influxdb"} {
		f("POST", prefix+"/write", "m f=1", 204)
		f("POST", prefix+"/api/v2/write", "m f=1", 204)
		f("GET", prefix+"/ping", "", 204)
		f("HEAD", prefix+"/ping", "", 204)
		f("GET", prefix+"/ping?verbose=true", "", 200)
		f("GET", prefix+"/query?q=SHOW+DATABASES", "", 200)
		f("GET", prefix+"/write", "", 405)
	}
	f("GET", "/v1/influxdb/health", "", 200)
}

// What agents must repeat looks so to them, and what they must drop does too.
func TestInfluxRetryable(t *testing.T) {
	router, _, _ := newInflux(t, RouterOptions{BodyLimit: 1000})
	f := func(lines string, want int) {
		t.Helper()
		for _, path := range []string{"/write", "/api/v2/write"} {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(lines)))
			if w.Code != want || w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
				t.Errorf("%s %q: %d %v", path, lines, w.Code, w.Header())
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s %q: shows what is internal: %s", path, lines, w.Body)
			}
		}
	}
	f("m f=1", 204)
	f("", 204)
	f("m f=x", 400)
	f("never f=1", 400)
	f("busy f=1", 503)
	f("never f=1\nbusy f=1", 503)
	f("m f=x\nbusy f=1", 503)
	f("bug f=1", 500)
	f("m s=\""+strings.Repeat("x", 1000)+"\"", 413)
}

// A client that goes away in the middle is not told anything.
func TestInfluxCancelled(t *testing.T) {
	router := chi.NewRouter()
	c := catalog.NewMemory(catalog.Options{})
	in := ingest.New(c, &fakeWriter{}, ingest.Options{InFlightBytes: 1})
	(&Influx{Ingester: in, Catalog: c}).Register(router)
	release, err := in.Admit(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest("POST", "/write", strings.NewReader("m f=1")).WithContext(ctx))
	if w.Code != statusClientGone {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
