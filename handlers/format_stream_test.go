package handlers

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/table"
)

var streamRows = flag.Int64("stream-rows", 2_000_000, "rows of TestFormatsStream")

// A generator is a table.Reader whose tables have as many rows as are asked
// for, made while they are read. It counts what is open.
type generator struct {
	rows      int64
	damaged   bool // whether a file is, behind the last row
	snapshots atomic.Int64
	free      chan struct{} // gets one when the last snapshot is closed
}

func (g *generator) Snapshot(_ context.Context, info *table.Info) (table.Snapshot, error) {
	g.snapshots.Add(1)
	return &generated{generator: g, info: info}, nil
}

type generated struct {
	*generator
	info *table.Info
}

func (s *generated) Info() *table.Info { return s.info }

func (s *generated) Close() {
	if s.snapshots.Add(-1) == 0 {
		select {
		case s.free <- struct{}{}:
		default:
		}
	}
}

func (s *generated) Scan(_ context.Context, spec table.ScanSpec) ([]table.Partition, error) {
	return []table.Partition{&generatedRows{info: s.info, spec: spec, left: s.rows, damaged: s.damaged}}, nil
}

type generatedRows struct {
	info       *table.Info
	spec       table.ScanSpec
	from, left int64
	damaged    bool
	batch      table.Batch
}

func (p *generatedRows) Rows() int64 { return p.left }
func (p *generatedRows) Close()      {}

// generatedDict is the dictionary of all texts.
var generatedDict = func() *table.Dict {
	d := &table.Dict{Offsets: []uint32{0}}
	for i := range 100 {
		d.Data = fmt.Appendf(d.Data, "host-%d", i)
		d.Offsets = append(d.Offsets, uint32(len(d.Data)))
	}
	return d
}()

func (p *generatedRows) Next(ctx context.Context) (*table.Batch, error) {
	n := int(min(p.left, 8192))
	if n == 0 && p.damaged {
		p.spec.Stats.Damage("file")
	}
	if n == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if p.batch.Columns == nil {
		p.batch.Columns = make([]table.Vector, len(p.spec.Columns))
	}
	p.batch.Len = n
	for i, id := range p.spec.Columns {
		v := &p.batch.Columns[i]
		*v = table.Vector{Type: p.info.Schema.Column(id).Type, Len: n, Ints: v.Ints[:0], Floats: v.Floats[:0], Codes: v.Codes[:0]}
		for k := p.from; k < p.from+int64(n); k++ {
			switch v.Type.Layout() {
			case table.Ints:
				v.Ints = append(v.Ints, k*1000)
			case table.Floats:
				v.Floats = append(v.Floats, float64(k)/4)
			default:
				v.Dict = generatedDict
				v.Codes = append(v.Codes, uint32(k%100))
			}
		}
	}
	p.from, p.left = p.from+int64(n), p.left-int64(n)
	return &p.batch, nil
}

// serveGenerated serves a table cpu over a real listener, behind the Router.
func serveGenerated(t *testing.T, rows int64) (address string, g *generator) {
	t.Helper()
	queries, err := query.Open(query.Options{TempDir: t.TempDir(), MemoryLimit: 64 << 20, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	g = &generator{rows: rows, free: make(chan struct{}, 1)}
	engine := sql.New(sql.Options{Catalog: catalog.NewMemory(catalog.Options{}), Query: queries, Reader: g})
	script, err := sql.Parse("CREATE TABLE cpu (host STRING PRIMARY KEY, ts TIMESTAMP(3) TIME INDEX, usage DOUBLE, n BIGINT)")
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(t.Context(), &sql.Session{}, script, func(sql.Result) error { return nil }); err != nil {
		t.Fatal(err)
	}
	server, _, _ := testServer(t, RouterOptions{}, &SQL{Engine: engine})
	t.Cleanup(func() {
		server.Close()
		_ = queries.Close()
	})
	return server.URL + "/v1/sql?sql=" + url.QueryEscape("SELECT host, ts, usage, n FROM cpu") + "&format=", g
}

// streamed are all formats, and how many rows a body in it has.
var streamed = map[string]func(t *testing.T, body io.Reader) int64{
	"greptimedb_v1":             countBytes("["),
	"json":                      countBytes("{"),
	"csv":                       countBytes("\n"),
	"csvwithnames":              countBytes("\n"),
	"csvwithnamesandtypes":      countBytes("\n"),
	"table":                     countBytes("\n"),
	"influxdb_v1&epoch=ns":      countBytes("["),
	"arrow":                     countArrow,
	"arrow&compression=zstd":    countArrow,
	"arrow&compression=lz4":     countArrow,
	"null":                      countNull,
	"greptimedb_v1&exact=true":  countBytes("["),
	"greptimedb_v1&limit=99999": countBytes("["),
}

// framing is how often the byte that is counted is there besides once a row.
var framing = map[string]int64{"greptimedb_v1": 3, "json": 1, "csvwithnames": 1, "csvwithnamesandtypes": 2, "table": 2,
	"influxdb_v1&epoch=ns": 4, "greptimedb_v1&exact=true": 3, "greptimedb_v1&limit=99999": 3}

// measured returns how to read a body while memory is measured: a reader of
// Arrow takes more than the server does, and is left out.
func measured(format string, count func(*testing.T, io.Reader) int64) func(*testing.T, io.Reader) int64 {
	if !strings.HasPrefix(format, "arrow") {
		return count
	}
	return func(t *testing.T, body io.Reader) int64 {
		if _, err := io.Copy(io.Discard, body); err != nil {
			t.Fatal(err)
		}
		return -1
	}
}

func countBytes(c string) func(*testing.T, io.Reader) int64 {
	return func(t *testing.T, body io.Reader) (n int64) {
		buf := make([]byte, 64<<10)
		for {
			k, err := body.Read(buf)
			n += int64(bytes.Count(buf[:k], []byte(c)))
			if err == io.EOF {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func countArrow(t *testing.T, body io.Reader) (n int64) {
	r, err := ipc.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	_, _ = io.Copy(io.Discard, body)
	return n
}

func countNull(t *testing.T, body io.Reader) (n int64) {
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(text), "%d rows in set.", &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// residentBytes is how much memory the process has, DuckDB's included.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm to measure memory with")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// A measuredBody notes the most memory that is there while it is read.
type measuredBody struct {
	io.Reader
	t          *testing.T
	n, next    int64
	mostMemory int64
}

func (b *measuredBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.n += int64(n); b.n >= b.next || err != nil {
		b.next = b.n + 4<<20
		b.mostMemory = max(b.mostMemory, residentBytes(b.t))
	}
	return n, err
}

// streamBudget is how much memory an answer may take on top of what was there
// before. It does not depend on the number of rows.
const streamBudget = 48 << 20

// TestFormatsStream answers two million rows, or -stream-rows, in each format
// and holds only a few of them at any time. 2 M rows of JSON are 80 MB.
func TestFormatsStream(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	address, g := serveGenerated(t, *streamRows)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	stream := func(t *testing.T, format string, count func(*testing.T, io.Reader) int64) (rows, size, memory int64, resp *http.Response) {
		resp, err := client.Get(address + format)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body := &measuredBody{Reader: resp.Body, t: t}
		rows = count(t, body)
		return rows, body.n, body.mostMemory, resp
	}
	for format, count := range streamed { // buffers and pools come to be
		stream(t, format+"&limit=200000", count)
	}
	for format, count := range streamed {
		t.Run(format, func(t *testing.T) {
			debug.FreeOSMemory()
			before, start := residentBytes(t), time.Now()
			rows, size, memory, resp := stream(t, format, measured(format, count))
			took := time.Since(start)
			if rows < 0 {
				rows, _, _, _ = stream(t, format, count)
			}
			t.Logf("%d rows, %d MB in %.1f s; %d MB more memory", rows, size>>20, took.Seconds(), (memory-before)>>20)
			want := *streamRows
			if strings.Contains(format, "limit=") {
				want = min(want, 99999)
			}
			if rows -= framing[format]; rows != want {
				t.Errorf("%d rows, want %d", rows, want)
			}
			if memory-before > streamBudget {
				t.Errorf("%d MB more memory while %d MB were sent, over %d MB", (memory-before)>>20, size>>20, streamBudget>>20)
			}
			if n := g.snapshots.Load(); n != 0 {
				t.Errorf("%d snapshots are open after the last byte", n)
			}
			checkCost(t, format, resp)
		})
	}
}

// checkCost checks that what the query has cost comes behind a long body, and
// before a short one.
func checkCost(t *testing.T, format string, resp *http.Response) {
	t.Helper()
	from, name := resp.Trailer, "trailer"
	if format == "null" {
		from, name = resp.Header, "header"
	}
	cost := from.Get("x-greptime-metrics")
	if !strings.Contains(cost, `"rows_read":`) {
		t.Errorf("the %s x-greptime-metrics is %q", name, cost)
	}
}

// A client that goes away in the middle of its rows frees all that its query
// holds, in every format.
func TestKilledClientsFreeEverything(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	address, g := serveGenerated(t, 1<<40)
	for format := range streamed {
		if format == "null" || strings.Contains(format, "limit=") {
			continue // sends nothing before its end; ends by itself
		}
		t.Run(format, func(t *testing.T) {
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			req, err := http.NewRequestWithContext(ctx, "GET", address+format, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil {
				t.Fatal(err)
			}
			if g.snapshots.Load() != 1 {
				t.Fatalf("%d snapshots are open in the middle of the rows", g.snapshots.Load())
			}
			killed := time.Now()
			kill()
			select {
			case <-g.free:
			case <-time.After(10 * time.Second):
				t.Fatal("the snapshot is still open")
			}
			if took := time.Since(killed); took > time.Second {
				t.Errorf("the snapshot was open for %s more", took)
			}
		})
	}
}

// The null format sends nothing while it counts; its client can still go.
func TestKilledClientOfNull(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	address, g := serveGenerated(t, 1<<40)
	ctx, kill := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer kill()
	req, err := http.NewRequestWithContext(ctx, "GET", address+"null", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("an endless count has ended")
	}
	select {
	case <-g.free:
	case <-time.After(time.Second):
		t.Error("the snapshot is still open")
	}
}

// The trailer also comes behind an answer that is compressed on its way.
func TestTrailerBehindGzip(t *testing.T) {
	address, _ := serveGenerated(t, 50_000)
	client := &http.Client{Transport: &http.Transport{}} // asks for gzip
	defer client.CloseIdleConnections()
	resp, err := client.Get(address + "csv")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n := countBytes("\n")(t, resp.Body); n != 50_000 || !resp.Uncompressed {
		t.Fatalf("%d rows, compressed: %v", n, resp.Uncompressed)
	}
	checkCost(t, "csv", resp)
}
