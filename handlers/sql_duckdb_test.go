package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// serveDuckDB returns a router whose /v1/sql runs on DuckDB, without tables.
func serveDuckDB(tb testing.TB) http.Handler {
	queries, err := query.Open(query.Options{TempDir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = queries.Close() })
	router := chi.NewRouter()
	(&SQL{Engine: sql.New(sql.Options{Catalog: catalog.NewMemory(catalog.Options{}), Query: queries})}).Register(router)
	return router
}

// endless is a query that would run for hours.
const endless = "SELECT count(*) FROM range(1000000) AS a(i), range(1000000) AS b(j), range(1000) AS c(k) WHERE (i * j) % 7 = k"

func TestTimeoutEndsQuery(t *testing.T) {
	router := serveDuckDB(t)
	for _, format := range []string{"greptimedb_v1", "csv"} {
		r := httptest.NewRequest("GET", "/v1/sql?format="+format+"&sql="+url.QueryEscape(endless), nil)
		r.Header.Set("x-greptime-timeout", "50ms")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != http.StatusGatewayTimeout || !strings.HasPrefix(w.Body.String(), `{"code":1008,"error":"the request ran longer than 50ms`) {
			t.Errorf("%s: %d %s", format, w.Code, w.Body)
		}
	}
}

// A client that goes away in the middle of its rows ends its query.
func TestDisconnectEndsQuery(t *testing.T) {
	router := serveDuckDB(t)
	ctx, cancel := context.WithCancel(context.Background())
	w := &stuckWriter{countingWriter: countingWriter{}, cancel: cancel}
	r := httptest.NewRequest("GET", "/v1/sql?sql="+url.QueryEscape("SELECT * FROM range(100000000000)"), nil)
	router.ServeHTTP(w, r.WithContext(ctx)) // returns, or the test times out
	if w.n == 0 {
		t.Error("nothing was sent before the client went away")
	}
}

// A stuckWriter is a client that goes away after its first bytes.
type stuckWriter struct {
	countingWriter
	cancel func()
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.cancel()
	return w.countingWriter.Write(p)
}

// BenchmarkSQL answers 1 M rows of five columns from DuckDB.
func BenchmarkSQL(b *testing.B) {
	router := serveDuckDB(b)
	const statement = `SELECT 'host-' || (i % 100) AS host, make_timestamp(i * 1000000) AS ts, i / 3 AS usage, (i * 7919) % 1000 AS n, i % 2 = 0 AS up FROM range(1000000) AS r(i)`
	for _, format := range []string{"greptimedb_v1", "json", "csv", "table", "influxdb_v1", "arrow", "arrow&compression=zstd",
		"arrow&compression=lz4", "null"} { // null is what DuckDB alone takes
		address := "/v1/sql?format=" + format + "&sql=" + url.QueryEscape(statement)
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := &countingWriter{}
				router.ServeHTTP(w, httptest.NewRequest("GET", address, nil))
				if w.n < 10 {
					b.Fatal("no answer")
				}
				b.SetBytes(w.n)
			}
		})
	}
}
