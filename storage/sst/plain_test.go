package sst_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/run/runtest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// logRows are rows of few hosts with an id and a body each.
func logSchema() *table.Schema {
	return &table.Schema{Version: 3, Key: []table.ColumnID{2}, Columns: []table.Column{
		{ID: 1, Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
		{ID: 2, Name: "host", Type: table.String, Role: table.Tag},
		{ID: 3, Name: "level", Type: table.String, Role: table.Field},
		{ID: 4, Name: "trace_id", Type: table.String, Role: table.Field},
		{ID: 5, Name: "value", Type: table.Float64, Role: table.Field},
		{ID: 6, Name: "small", Type: table.Int16, Role: table.Field},
		{ID: 7, Name: "ok", Type: table.Boolean, Role: table.Field},
	}}
}

func logRows(n int) (rows []runtest.Row) {
	for i := range n {
		value := any(float64(i) * math.Pi)
		if i%7 == 0 {
			value = nil
		}
		if i == 2500 { // leaves one chunk without bounds
			value = math.NaN()
		}
		rows = append(rows, runtest.Row{Sequence: 9, Cells: []any{
			int64(i), fmt.Sprint("host", i*10/n), []any{"info", "warn", nil}[i%3],
			fmt.Sprintf("%032x", i*2654435761), value, int64(i%100 - 50), i%2 == 0,
		}})
	}
	return rows
}

// A Parquet library that knows nothing of us reads the same values.
func TestPlainParquet(t *testing.T) {
	schema, rows := logSchema(), logRows(5000)
	b, _ := write(t, schema, rows, sst.WriteOptions{RowGroupRows: 2000, PageRows: 300})
	data := b.objects[key]
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Schema().String(), `message row {
	optional binary host (STRING) = 2;
	required int64 ts (TIMESTAMP(isAdjustedToUTC=false,unit=NANOS)) = 1;
	optional binary level (STRING) = 3;
	optional binary trace_id (STRING) = 4;
	optional double value = 5;
	optional int32 small (INT(16,true)) = 6;
	optional boolean ok = 7;
	required int64 __sequence (INT(64,false)) = 2147418112;
	required int32 __op_type (INT(8,false)) = 2147418113;
}`; got != want {
		t.Errorf("schema is\n%s\nwant\n%s", got, want)
	}
	type line struct {
		Host     *string  `parquet:"host"`
		TS       int64    `parquet:"ts"`
		Level    *string  `parquet:"level"`
		TraceID  *string  `parquet:"trace_id"`
		Value    *float64 `parquet:"value"`
		Small    *int32   `parquet:"small"`
		OK       *bool    `parquet:"ok"`
		Sequence uint64   `parquet:"__sequence"`
		Op       uint32   `parquet:"__op_type"`
	}
	lines, err := parquet.Read[line](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(rows) {
		t.Fatalf("%d rows, want %d", len(lines), len(rows))
	}
	text := func(v any) string {
		switch v := v.(type) {
		case *string:
			if v == nil {
				return "<nil>"
			}
			return *v
		case *float64:
			if v == nil {
				return "<nil>"
			}
			return fmt.Sprint(*v)
		}
		return fmt.Sprint(v)
	}
	for i, l := range lines {
		c := rows[i].Cells
		got := fmt.Sprint(l.TS, text(l.Host), text(l.Level), text(l.TraceID), text(l.Value), *l.Small, *l.OK, l.Sequence, l.Op)
		if want := fmt.Sprint(c[0], text(c[1]), text(c[2]), text(c[3]), text(c[4]), c[5], c[6], 9, 0); got != want {
			t.Fatalf("row %d is %s, want %s", i, got, want)
		}
	}
}

// The encodings are those that the format page promises.
func TestEncodings(t *testing.T) {
	b, _ := write(t, logSchema(), logRows(5000), sst.WriteOptions{})
	var out strings.Builder
	if err := sst.Describe(context.Background(), b, key, &out); err != nil {
		t.Fatal(err)
	}
	f := func(column, encoding string) {
		t.Helper()
		for line := range strings.Lines(out.String()) {
			if w := strings.Fields(line); w[0] == column && len(w) > 2 && w[2] == encoding {
				return
			}
		}
		t.Errorf("%s is not %s:\n%s", column, encoding, out.String())
	}
	f("host", "RLE_DICTIONARY")
	f("ts", "DELTA_BINARY_PACKED")
	f("level", "RLE_DICTIONARY")
	f("trace_id", "DELTA_LENGTH_BYTE_ARRAY")
	f("value", "PLAIN")
	f("small", "RLE_DICTIONARY")
	f("__sequence", "RLE_DICTIONARY")
}

// Strings of 64 KiB make small row groups and pages, and come back.
func TestLongStrings(t *testing.T) {
	schema := logSchema()
	var rows []runtest.Row
	for i := range 100 {
		long := strings.Repeat(fmt.Sprint(i, " "), 40<<10)[:64<<10-i]
		rows = append(rows, runtest.Row{Sequence: 1, Cells: []any{int64(i), "h", "info", long, nil, nil, nil}})
	}
	b, meta := write(t, schema, rows, sst.WriteOptions{RowGroupBytes: 1 << 20})
	r, err := sst.Open(context.Background(), b, key, meta, cache.New(1<<20), 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.RowGroups()); n != 2 { // the bytes are counted every 64 rows
		t.Errorf("%d row groups, want 2", n)
	}
	got, err := scanAll(r, request(schema))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range runtest.Format(schema, request(schema), rows) {
		if got[i] != want {
			t.Fatalf("row %d differs", i)
		}
	}
}

// One series of many is found by reading few pages.
func TestPruning(t *testing.T) {
	t.Run("series", func(t *testing.T) { testPruning(t, 0, 10) })
	t.Run("pages", func(t *testing.T) { testPruning(t, -1, 11) }) // a page of the tag says where host9 begins
}

func testPruning(t *testing.T, seriesRows int, keyPages int64) {
	schema, rows := logSchema(), logRows(5000)
	b, meta := write(t, schema, rows, sst.WriteOptions{RowGroupRows: 1000, PageRows: 100, SeriesRows: seriesRows})
	r, err := sst.Open(context.Background(), b, key, meta, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := func(groupsPruned, pages, rows int64, change func(*run.Request)) {
		t.Helper()
		req := request(schema)
		req.Identity, req.Columns = false, []table.ColumnID{1, 4}
		change(&req)
		got, err := scanAll(r, req)
		if err != nil {
			t.Fatal(err)
		}
		s := req.Stats
		if s.RowGroupsPruned.Load() != groupsPruned || s.Pages.Load() != pages || int64(len(got)) != rows {
			t.Errorf("pruned %d of %d row groups, read %d pages, got %d rows; want %d, %d, %d",
				s.RowGroupsPruned.Load(), s.RowGroups.Load(), s.Pages.Load(), len(got), groupsPruned, pages, rows)
		}
	}
	equal := func(id table.ColumnID, v string) table.Predicate {
		return table.Predicate{Column: id, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: v}}}
	}
	f(0, 100, 5000, func(*run.Request) {})
	f(4, 10, 500, func(r *run.Request) { r.Predicates = []table.Predicate{equal(2, "host3")} })
	f(5, 0, 0, func(r *run.Request) { r.Predicates = []table.Predicate{equal(2, "host")} })
	f(4, 4, 150, func(r *run.Request) { r.Times = table.TimeRange{Min: 1000, Max: 1149} })
	f(5, 0, 0, func(r *run.Request) { r.Times = table.TimeRange{Min: 6000, Max: 9000} })
	f(4, 4, 123, func(r *run.Request) {
		r.Predicates, r.Times = []table.Predicate{equal(2, "host3")}, table.TimeRange{Min: 1777, Max: 1899}
	})
	f(5, 0, 0, func(r *run.Request) { r.FirstKey = table.AppendKeyBytes(nil, []byte("i")) })
	f(4, keyPages, 500, func(r *run.Request) {
		r.FirstKey, r.EndKey = table.AppendKeyBytes(nil, []byte("host9")), table.AppendKeyBytes(nil, []byte("i"))
	})
	// A predicate on a field prunes only if no other source has the row.
	id := equal(4, fmt.Sprintf("%032x", 4321*2654435761))
	f(0, 100, 5000, func(r *run.Request) { r.Predicates = []table.Predicate{id} })
	f(4, 2, 1, func(r *run.Request) { r.Predicates, r.Alone = []table.Predicate{id}, true })
}

// Goroutines share a reader and a cache that is too small for the file.
func TestSharedReader(t *testing.T) {
	schema, rows := logSchema(), logRows(3000)
	b, meta := write(t, schema, rows, sst.WriteOptions{RowGroupRows: 500, PageRows: 100})
	r, err := sst.Open(context.Background(), b, key, meta, cache.New(1<<18), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := runtest.Format(schema, request(schema), rows)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				got, err := scanAll(r, request(schema))
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d rows of %d, or others; %v", len(got), len(want), err)
				}
			}
		})
	}
	wg.Wait()
}

// A source that is out of order, or empty, makes no file.
func TestWriteRefuses(t *testing.T) {
	schema := logSchema()
	f := func(want string, batches ...*run.Batch) {
		t.Helper()
		_, err := sst.Write(context.Background(), new(bytes.Buffer), schema, &recorded{batches: batches}, sst.WriteOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	batch := func(seq uint64, key string, times ...int64) *run.Batch {
		b := &run.Batch{Len: len(times), Keys: [][]byte{[]byte(key)}, Starts: []uint32{0}, Times: times, Sequence: seq}
		for _, id := range sst.Input(schema).Columns {
			c := schema.Column(id)
			b.Columns = append(b.Columns, runtest.Vector(c.Type, make([]any, len(times)), true))
		}
		return b
	}
	a, z := string(table.AppendKeyBytes(nil, []byte("a"))), string(table.AppendKeyBytes(nil, []byte("z")))
	f("there are no rows")
	f("comes after", batch(1, a, 2, 1))
	f("comes after", batch(1, a, 1), batch(2, a, 1))
	f("comes after", batch(1, z, 1), batch(1, a, 1))
	f("more than the table's 1 tags", batch(1, a+a, 1))
	f("damaged", batch(1, "\x01a", 1))
}
