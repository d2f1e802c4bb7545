package handlers

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/cockroachdb/datadriven"
	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// TestFormats runs testdata/formats: values of every type in every format, on
// DuckDB. The arguments of a block are parameters of the request, its text the
// statement. Arrow is printed as its schema and rows.
func TestFormats(t *testing.T) {
	router := serveDuckDB(t)
	datadriven.RunTest(t, "testdata/formats", func(t *testing.T, d *datadriven.TestData) string {
		params := url.Values{"sql": {d.Input}, "format": {d.Cmd}}
		for _, arg := range d.CmdArgs {
			params.Set(arg.Key, arg.Vals[0])
		}
		r := httptest.NewRequest("GET", "/v1/sql?"+params.Encode(), nil)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		checkContract(t, r, "", w)
		if w.Code != http.StatusOK {
			return fmt.Sprintf("%d %s", w.Code, durations.ReplaceAllString(w.Body.String(), `${1}0`))
		}
		if d.Cmd == "arrow" {
			return printArrow(t, w.Body.Bytes())
		}
		text := durations.ReplaceAllString(w.Body.String(), `${1}0`)
		return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "<CRLF>\n"), "\n") + "\n"
	})
}

// printArrow returns the schema and the rows of a stream.
func printArrow(t *testing.T, stream []byte) string {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var out strings.Builder
	for _, f := range r.Schema().Fields() {
		fmt.Fprintf(&out, "%s: %s", f.Name, f.Type)
		if f.HasMetadata() {
			fmt.Fprintf(&out, " %s", f.Metadata)
		}
		out.WriteByte('\n')
	}
	for r.Next() {
		batch := r.RecordBatch()
		for row := range int(batch.NumRows()) {
			for col := range int(batch.NumCols()) {
				if col > 0 {
					out.WriteString(" | ")
				}
				out.WriteString(batch.Column(col).ValueStr(row))
			}
			out.WriteByte('\n')
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out.String()
}

// TestSQLText runs testdata/sqltext: each block is a script, given to
// /v1/sql/parse or /v1/sql/format.
func TestSQLText(t *testing.T) {
	router := serveText(t)
	datadriven.RunTest(t, "testdata/sqltext", func(t *testing.T, d *datadriven.TestData) string {
		code, body := lookAt(t, router, d.Cmd, d.Input)
		body = durations.ReplaceAllString(body, `${1}0`)
		if code != http.StatusOK {
			return fmt.Sprintf("%d %s", code, body)
		}
		return body
	})
}

func serveText(t *testing.T) http.Handler {
	t.Helper()
	queries, err := query.Open(query.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = queries.Close() })
	router := chi.NewRouter()
	(&SQLText{Engine: sql.New(sql.Options{Catalog: catalog.NewMemory(catalog.Options{}), Query: queries})}).Register(router)
	return router
}

// lookAt posts a script to /v1/sql/<what>.
func lookAt(t *testing.T, router http.Handler, what, script string) (code int, body string) {
	t.Helper()
	form := url.Values{"sql": {script}}.Encode()
	r := httptest.NewRequest("POST", "/v1/sql/"+what, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	router.ServeHTTP(w, r)
	checkContract(t, r, "\n\n"+form, w)
	return w.Code, w.Body.String()
}
