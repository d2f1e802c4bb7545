package handlers

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/openapi/openapitest"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/table"
)

// A fakeEngine answers "SELECT n" with n rows and "SELECT n FAIL" with n rows
// and an error; it knows the databases public and metrics.
type fakeEngine struct{ session *sql.Session }

func (e *fakeEngine) CheckDatabase(name string) error {
	if name == "public" || name == "metrics" {
		return nil
	}
	return fault.Errorf(fault.DatabaseMissing, "database not found: %q", name)
}

func (e *fakeEngine) Run(ctx context.Context, s *sql.Session, script sql.Script, yield func(sql.Result) error) error {
	e.session = s
	for _, st := range script {
		words := strings.Fields(st.Text)
		result := sql.Result{Affected: 3}
		if words[0] == "SELECT" {
			n, err := strconv.Atoi(words[1])
			if err != nil {
				return fault.Errorf(fault.ColumnNotFound, "no column %q", words[1])
			}
			r := &fakeRecords{left: n}
			if len(words) > 2 {
				r.err = errors.New("disk on fire")
			}
			result = sql.Result{Records: r}
		}
		if err := yield(result); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fakeRecords hands out rows like (host-3, 3000, 1.5, "x,y\"z", null).
type fakeRecords struct {
	fakeChunk
	left int
	err  error
}

func (r *fakeRecords) Columns() []sql.Column {
	return []sql.Column{
		{Name: "host", Type: "String", Table: table.String},
		{Name: "ts", Type: "TimestampMillisecond", Table: table.TimestampMillisecond},
		{Name: "usage", Type: "Float64", Table: table.Float64},
		{Name: "note", Type: "String", Table: table.String},
		{Name: "note", Type: "Int64", Table: table.Int64},
	}
}

func (r *fakeRecords) Next(context.Context) (sql.Chunk, error) {
	if r.left == 0 {
		return nil, r.err
	}
	r.from += r.n
	r.n = min(r.left, 2048)
	r.left -= r.n
	return &r.fakeChunk, nil
}

func (r *fakeRecords) Close() {}

type fakeChunk struct{ from, n int }

func (c *fakeChunk) Len() int { return c.n }

func (c *fakeChunk) Vector(int) (*table.Vector, bool) { return nil, false }

func (c *fakeChunk) AppendText(dst []byte, col, row int) []byte {
	row += c.from
	switch col {
	case 0:
		return strconv.AppendInt(append(dst, "host-"...), int64(row%100), 10)
	case 1:
		return strconv.AppendInt(dst, int64(row)*1000, 10)
	case 2:
		return strconv.AppendFloat(dst, float64(row)/2, 'g', -1, 64)
	case 3:
		return append(dst, `x,y"z`...)
	default:
		return dst
	}
}

func (c *fakeChunk) AppendJSON(dst []byte, col, row int) []byte {
	switch col {
	case 0:
		dst = strconv.AppendInt(append(dst, `"host-`...), int64((row+c.from)%100), 10)
		return append(dst, '"')
	case 3:
		return append(dst, `"x,y\"z"`...)
	case 4:
		return append(dst, "null"...)
	default:
		return c.AppendText(dst, col, row)
	}
}

var durations = regexp.MustCompile(`("execution_time_ms":|Elapsed: )[\d.]+`)

// TestSQL runs testdata/sql. Its blocks are requests: a method with an
// address, header lines, an empty line and a body.
func TestSQL(t *testing.T) {
	engine := &fakeEngine{}
	router := chi.NewRouter()
	(&SQL{Engine: engine}).Register(router)
	datadriven.RunTest(t, "testdata/sql", func(t *testing.T, d *datadriven.TestData) string {
		r := parseRequest(d.Input)
		w := httptest.NewRecorder()
		engine.session = nil
		router.ServeHTTP(w, r)
		checkContract(t, r, d.Input, w)
		var out strings.Builder
		fmt.Fprintf(&out, "%d %s\n", w.Code, w.Header().Get("Content-Type"))
		for _, h := range []string{"x-greptime-format", "x-greptime-err-code", "x-greptime-err-msg"} {
			if v := w.Header().Get(h); v != "" {
				fmt.Fprintf(&out, "%s: %s\n", h, v)
			}
		}
		if w.Header().Get("x-greptime-execution-time") == "" {
			t.Error("no x-greptime-execution-time")
		}
		if s := engine.session; s != nil && (s.Database != "public" || s.TimeZone != nil) {
			fmt.Fprintf(&out, "session: %s %v\n", s.Database, s.TimeZone)
		}
		out.WriteString(strings.ReplaceAll(durations.ReplaceAllString(w.Body.String(), `${1}0`), "\r\n", "<CRLF>\n"))
		return strings.TrimRight(out.String(), "\n") + "\n"
	})
}

// checkContract fails a test whose exchange is not as the OpenAPI document
// says; text is the request as parseRequest took it.
func checkContract(t *testing.T, r *http.Request, text string, w *httptest.ResponseRecorder) {
	t.Helper()
	_, body, _ := strings.Cut(text, "\n\n")
	if err := openapitest.Check(r, []byte(body), w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Error(err)
	}
}

func parseRequest(text string) *http.Request {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// serveSQL returns the answer of a real server to a query.
func serveSQL(t *testing.T, format, statement string) (*http.Response, []byte, error) {
	t.Helper()
	router := chi.NewRouter()
	(&SQL{Engine: &fakeEngine{}}).Register(router)
	server := httptest.NewServer(router)
	defer server.Close()
	resp, err := http.PostForm(server.URL+"/v1/sql?format="+format, map[string][]string{"sql": {statement}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// After the first bytes are out, an error can no longer change the status. In
// JSON it must be part of a valid document, with whole rows before it.
func TestErrorAfterFirstBytes(t *testing.T) {
	for _, format := range []string{"greptimedb_v1", "json", "influxdb_v1"} {
		resp, body, err := serveSQL(t, format, "SELECT 20000 FAIL")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", format, resp.StatusCode, err)
		}
		var doc struct {
			Code    int
			Error   string
			Data    []map[string]any
			Results []struct {
				Series []struct{ Values [][]any }
			}
			Output []struct {
				Records struct {
					Rows  [][]any
					Total int `json:"total_rows"`
				}
			}
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: the document is damaged: %v", format, err)
		}
		if doc.Code != 1003 || !strings.Contains(doc.Error, "internal error") {
			t.Errorf("%s: the document does not say what failed: code %d, error %q", format, doc.Code, doc.Error)
		}
		rows := len(doc.Data)
		if len(doc.Results) == 1 {
			rows = len(doc.Results[0].Series[0].Values)
		}
		if len(doc.Output) == 1 {
			rows = len(doc.Output[0].Records.Rows)
			if got := doc.Output[0].Records.Total; got != rows {
				t.Errorf("%s: total_rows is %d with %d rows", format, got, rows)
			}
		}
		if rows != 20000 {
			t.Errorf("%s: %d of the 20000 rows before the error", format, rows)
		}
	}
}

// The other formats have no place for it: the connection is cut.
func TestErrorAfterFirstBytesCuts(t *testing.T) {
	for _, format := range []string{"csv", "csvwithnames", "table", "arrow", "arrow&compression=zstd"} {
		resp, body, err := serveSQL(t, format, "SELECT 200000 FAIL")
		if resp.StatusCode != http.StatusOK || len(body) == 0 {
			t.Errorf("%s: %s and %d bytes, which is not what this test is about", format, resp.Status, len(body))
		}
		if err == nil {
			t.Errorf("%s: an answer of %d bytes ended as if it were whole", format, len(body))
		}
	}
}

// A small answer is still in the buffer when a later row or statement fails,
// and the status tells.
func TestErrorBeforeFirstBytes(t *testing.T) {
	for _, format := range []string{"greptimedb_v1", "json", "csv", "table", "arrow", "influxdb_v1", "null"} {
		resp, body, err := serveSQL(t, format, "SELECT 10 FAIL")
		if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(string(body), `{"code":1003,"error":`) {
			t.Errorf("%s: %d %s, %v", format, resp.StatusCode, body, err)
		}
	}
}

func TestCSVRoundTrip(t *testing.T) {
	_, body, err := serveSQL(t, "csvwithnames", "SELECT 5000")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil || len(lines) != 5001 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if got, want := strings.Join(lines[5000], "|"), `host-99|4999000|2499.5|x,y"z|`; got != want {
		t.Errorf("the last line is %s, want %s", got, want)
	}
}

// BenchmarkEncode encodes 1 M rows of five columns. The chunk costs as little
// as a chunk can, so that the encoder is what is measured.
func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"greptimedb_v1", "json", "csv", "table", "influxdb_v1"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			format, _ := formatNamed(name)
			for b.Loop() {
				w := &countingWriter{}
				out := newAnswer(w, format, 1_000_000, time.Now())
				enc := format.encoder(out)
				if err := enc.result(context.Background(), sql.Result{Records: &fakeRecords{left: 1_000_000}}); err != nil {
					b.Fatal(err)
				}
				enc.end()
				if err := out.flush(); err != nil {
					b.Fatal(err)
				}
				out.release()
				b.SetBytes(w.n)
			}
		})
	}
}

// A countingWriter counts the bytes of an answer.
type countingWriter struct {
	n      int64
	header http.Header
}

func (w *countingWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (w *countingWriter) WriteHeader(int) {}
func (w *countingWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}
