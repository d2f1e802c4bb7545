package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/query/querytest"
	"github.com/varvedb/varve/table"
)

// bigTable has n rows: a tag with 100 values, a time a second and ten fields.
func bigTable(n int) *querytest.Table {
	s := &table.Schema{Key: []table.ColumnID{1}, Columns: []table.Column{
		{ID: 1, Name: "host", Type: table.String, Role: table.Tag, Nullable: true},
		{ID: 2, Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
	}}
	t := &querytest.Table{Info: &table.Info{Database: "public", Name: "big", Schema: s, Regions: 1}}
	host := table.Vector{Type: table.String, Len: n, Dict: &table.Dict{Offsets: []uint32{0}}}
	ts := table.Vector{Type: table.TimestampNanosecond, Len: n}
	for i := range 100 {
		host.Dict.Data = fmt.Appendf(host.Dict.Data, "host_%d_of_a_longer_name", i)
		host.Dict.Offsets = append(host.Dict.Offsets, uint32(len(host.Dict.Data)))
	}
	for i := range n {
		host.Codes = append(host.Codes, uint32(i*100/n))
		ts.Ints = append(ts.Ints, int64(i)*1e9)
	}
	t.Rows = table.Batch{Len: n, Columns: []table.Vector{host, ts}}
	for k := range 10 {
		v := table.Vector{Type: table.Float64, Len: n}
		for i := range n {
			v.Floats = append(v.Floats, float64((i*7+k)%1000))
		}
		s.Columns = append(s.Columns, table.Column{ID: table.ColumnID(k + 3), Name: fmt.Sprintf("f%d", k), Type: table.Float64, Role: table.Field, Nullable: true})
		t.Rows.Columns = append(t.Rows.Columns, v)
	}
	return t
}

// TestParallelScan compares a scan cut into many pieces with the sums it must
// have, and a plain SELECT with the order of the partitions.
func TestParallelScan(t *testing.T) {
	e := newEngine(t, Options{})
	const n = 300_000
	db := &querytest.DB{Partitions: 7, BatchRows: 10_048}
	db.Add(bigTable(n))
	req := Request{SQL: "SELECT count(*), sum(f0), count(DISTINCT host), max(ts) FROM big", Database: "public", Tables: db, Reader: db}
	got, err := read(e, req)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %d.0 100 %d\n", n, n/1000*499500, int64(n-1)*1e9)
	if !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	req.SQL = "SELECT host, ts FROM big WHERE f0 >= 0"
	r, err := e.Query(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	row := int64(0)
	for {
		c, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			break
		}
		ts, _ := c.Vector(1)
		for _, v := range ts.Ints {
			if v != row*1e9 {
				t.Fatalf("row %d has time %d", row, v)
			}
			row++
		}
	}
	if row != n {
		t.Errorf("%d rows", row)
	}
}

// TestCancel ends a statement at each stage and expects it to be over soon.
func TestCancel(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{Partitions: 4, BatchRows: 2048}
	db.Add(bigTable(100_000))
	soon := func(what string, cancelled time.Time) {
		if d := time.Since(cancelled); d > 500*time.Millisecond { // 10 ms, on an idle machine
			t.Errorf("%s: ended %s after the context", what, d)
		}
	}
	req := Request{Database: "public", Tables: db, Reader: db}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	req.SQL = "SELECT count(*) FROM range(100000000000) AS a(x) WHERE x % 7 = 3"
	_, err := e.Query(ctx, req)
	soon("inside DuckDB", time.Now())
	if fault.KindOf(err) != fault.Timeout {
		t.Errorf("inside DuckDB: %v", err)
	}

	begun := make(chan struct{}, 100)
	db.Next = func(ctx context.Context, _ *querytest.Table) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel = context.WithCancel(context.Background())
	go func() {
		<-begun
		cancel()
	}()
	req.SQL = "SELECT sum(f0) FROM big"
	_, err = e.Query(ctx, req)
	if fault.KindOf(err) != fault.Cancelled {
		t.Errorf("in a scan: %v", err)
	}

	db.Next = nil
	ctx, cancel = context.WithCancel(context.Background())
	req.SQL = "SELECT a.f0 FROM big AS a, big AS b"
	r, err := e.Query(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	at := time.Now()
	for err == nil {
		_, err = r.Next(ctx)
	}
	r.Close()
	soon("while rows are read", at)
	if fault.KindOf(err) != fault.Cancelled {
		t.Errorf("while rows are read: %v", err)
	}
}

// TestScanErrors expects the error of a partition, with its kind, before the
// first row and after it, and a panic to be an error.
func TestScanErrors(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{BatchRows: 2048}
	db.Add(bigTable(100_000))
	for _, after := range []int{0, 1, 20} {
		left := after
		db.Next = func(context.Context, *querytest.Table) error {
			if left--; left < 0 {
				return fault.Errorf(fault.Unavailable, "the bucket is away")
			}
			return nil
		}
		_, err := read(e, Request{SQL: "SELECT f0 FROM big", Database: "public", Tables: db, Reader: db})
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "the bucket is away") {
			t.Errorf("after %d batches: %v", after, err)
		}
	}
	db.Next = func(context.Context, *querytest.Table) error { panic("boom") }
	_, err := read(e, Request{SQL: "SELECT f0 FROM big", Database: "public", Tables: db, Reader: db})
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("after a panic: %v", err)
	}
	if n := db.Snapshots.Load(); n != 0 {
		t.Errorf("%d snapshots are open", n)
	}
}

// TestFatal expects the engine to go on with a new instance when DuckDB says
// that the old one is broken, and the old one's results to end in peace.
func TestFatal(t *testing.T) {
	e := newEngine(t, Options{})
	r, err := e.Query(context.Background(), Request{SQL: "SELECT * FROM range(100000)"})
	if err != nil {
		t.Fatal(err)
	}
	err = r.st.fault(&duckdb.Error{Class: "FATAL", Message: "database has been invalidated"})
	if fault.KindOf(err) != fault.Internal {
		t.Errorf("a fatal error is %v", err)
	}
	if out, err := read(e, Request{SQL: "SELECT date_bin('1h', TIMESTAMP '2026-01-01 00:30:00')"}); err != nil || !strings.HasSuffix(out, "\n1767225600000000\n") {
		t.Errorf("the new instance: %s %v", out, err)
	}
	if _, err := r.Next(context.Background()); err != nil {
		t.Error(err)
	}
	r.Close()
}

// TestLeaks runs statements that succeed, fail, are cancelled and are closed
// early, and looks at what is left.
func TestLeaks(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{Partitions: 3, BatchRows: 2048}
	db.Add(bigTable(20_000))
	req := Request{Database: "public", Tables: db, Reader: db}
	once := func(i int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		db.Next = nil
		req.SQL = "SELECT host, avg(f0) FROM big GROUP BY host"
		switch i % 6 {
		case 1:
			req.SQL = "SELECT nope FROM big"
		case 2:
			req.SQL = "SELECT * FROM big AS a, big AS b" // closed early
		case 3:
			calls := 0
			db.Next = func(context.Context, *querytest.Table) error {
				if calls++; calls == 2 {
					return errors.New("bad page")
				}
				return nil
			}
			db.Partitions = 1
			defer func() { db.Partitions = 3 }()
		case 4:
			cancel()
		case 5:
			req.SQL = "SELECT * FROM big ORDER BY f1 LIMIT 3"
		}
		r, err := e.Query(ctx, req)
		if err != nil {
			return
		}
		_, _ = r.Next(ctx)
		if i%6 == 5 {
			cancel()
			_, _ = r.Next(ctx)
		}
		r.Close()
	}
	for i := range 200 {
		once(i)
	}
	goroutines, before := runtime.NumGoroutine(), residentBytes(t)
	for i := range 1000 {
		once(i)
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if n, p := db.Snapshots.Load(), db.Parts.Load(); n != 0 || p != 0 {
		t.Errorf("%d snapshots and %d partitions are open", n, p)
	}
	count := 0
	e.sources.Range(func(any, any) bool { count++; return true })
	if count != 0 {
		t.Errorf("%d sources are left", count)
	}
	if grown := residentBytes(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

func residentBytes(t *testing.T) int {
	runtime.GC()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestStreaming reads a result much larger than the memory limit.
func TestStreaming(t *testing.T) {
	e := newEngine(t, Options{MemoryLimit: 64 << 20})
	r, err := e.Query(context.Background(), Request{SQL: "SELECT x, x + 1, x * 2 FROM range(20000000) AS r(x)"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before, rows := residentBytes(t), 0
	for {
		c, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			break
		}
		rows += c.Len()
	}
	if grown := residentBytes(t) - before; rows != 20_000_000 || grown > 100<<20 {
		t.Errorf("%d rows, memory grew by %d MiB", rows, grown>>20)
	}
}
