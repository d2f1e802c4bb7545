package sst_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/run/runtest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// A bucket holds objects in memory, as much of it as a reader needs.
type bucket struct {
	objectstore.Bucket
	objects map[string][]byte
}

func (b *bucket) ReadRange(_ context.Context, key string, offset int64, p []byte) error {
	data, ok := b.objects[key]
	if !ok {
		return objectstore.ErrNotFound
	}
	if offset > int64(len(data)) || copy(p, data[offset:]) < len(p) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (b *bucket) Read(_ context.Context, key string) ([]byte, error) {
	data, ok := b.objects[key]
	if !ok {
		return nil, objectstore.ErrNotFound
	}
	return bytes.Clone(data), nil
}

func (b *bucket) Stat(_ context.Context, key string) (objectstore.Object, error) {
	data, ok := b.objects[key]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotFound
	}
	return objectstore.Object{Key: key, Size: int64(len(data))}, nil
}

var fieldTypes = []table.Type{
	table.Boolean, table.Int8, table.Int16, table.Int32, table.Int64, table.UInt8, table.UInt16, table.UInt32,
	table.UInt64, table.Float32, table.Float64, table.String, table.Binary, table.Date, table.TimestampSecond,
	table.TimestampMillisecond, table.TimestampMicrosecond, table.TimestampNanosecond,
}

// allTypes is a schema with a field of every type and tags of four.
func allTypes() *table.Schema {
	s := &table.Schema{Version: 7}
	add := func(name string, t table.Type, role table.Role) {
		id := table.ColumnID(len(s.Columns) + 1)
		s.Columns = append(s.Columns, table.Column{ID: id, Name: name, Type: t, Role: role, Nullable: role == table.Field})
		if role == table.Tag {
			s.Key = append(s.Key, id)
		}
	}
	add("host", table.String, table.Tag)
	add("ts", table.TimestampMillisecond, table.Timestamp)
	add("port", table.Int32, table.Tag)
	for _, t := range fieldTypes {
		add("f_"+strings.ToLower(t.String()), t, table.Field)
	}
	add("load", table.Float64, table.Tag)
	add("up", table.Boolean, table.Tag)
	s.NextID = table.ColumnID(len(s.Columns) + 1)
	return s
}

// cells draws values of a type: mostly of a few, so that predicates hit, and
// sometimes the odd ones.
func cells(t table.Type) *rapid.Generator[any] {
	ints := func(min, max int64) *rapid.Generator[any] {
		return rapid.Map(rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(min, max), rapid.SampledFrom([]int64{min, max})),
			func(v int64) any { return v })
	}
	switch t {
	case table.Boolean:
		return rapid.Map(rapid.Bool(), func(v bool) any { return v })
	case table.Int8:
		return ints(math.MinInt8, math.MaxInt8)
	case table.Int16:
		return ints(math.MinInt16, math.MaxInt16)
	case table.Int32, table.Date:
		return ints(math.MinInt32, math.MaxInt32)
	case table.UInt8:
		return ints(0, math.MaxUint8)
	case table.UInt16:
		return ints(0, math.MaxUint16)
	case table.UInt32:
		return ints(0, math.MaxUint32)
	case table.Float32:
		return rapid.Map(rapid.OneOf(rapid.SampledFrom([]float32{0, 1, 2.5, float32(math.NaN()), float32(math.Inf(1))}), rapid.Float32()),
			func(v float32) any { return float64(v) })
	case table.Float64:
		return rapid.Map(rapid.OneOf(
			rapid.SampledFrom([]float64{0, 1, 2, 2.5, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}), rapid.Float64()),
			func(v float64) any { return v })
	case table.String, table.Binary:
		return rapid.Map(rapid.OneOf(
			rapid.SampledFrom([]string{"", "a", "b", "a\x00", "\x00", "\xff\xfe", strings.Repeat("long", 100)}), rapid.StringN(0, 8, 40)),
			func(v string) any { return v })
	}
	return ints(math.MinInt64, math.MaxInt64)
}

// rowSet draws rows of a schema with distinct identities and sequences.
func rowSet(t *rapid.T, schema *table.Schema, n int) []runtest.Row {
	seen := map[string]bool{}
	var rows []runtest.Row
	for i := range n {
		r := runtest.Row{Sequence: uint64(rapid.IntRange(1, 5).Draw(t, "sequence"))}
		if rapid.IntRange(0, 9).Draw(t, "op") == 0 {
			r.Op = table.Delete
		}
		for _, c := range schema.Columns {
			null := rapid.IntRange(0, 3).Draw(t, "null") == 0
			switch {
			case c.Role == table.Timestamp:
				r.Cells = append(r.Cells, rapid.Int64Range(-20, 20).Draw(t, "time"))
			case null || c.Role == table.Field && r.Op == table.Delete:
				r.Cells = append(r.Cells, nil)
			case c.Role == table.Tag && c.Type == table.Float64:
				// Keys hold one NaN and one zero.
				r.Cells = append(r.Cells, rapid.SampledFrom([]any{0.0, 1.5, -3.0, math.NaN()}).Draw(t, "load"))
			default:
				r.Cells = append(r.Cells, cells(c.Type).Draw(t, c.Name))
			}
		}
		id := fmt.Sprintf("%x@%d", r.Key(schema), r.Time(schema))
		if !seen[id] {
			seen[id] = true
			rows = append(rows, r)
		}
		_ = i
	}
	slices.SortStableFunc(rows, runtest.Compare(schema))
	return rows
}

// tiny makes every file have many row groups and pages.
func tiny(t *rapid.T) sst.WriteOptions {
	return sst.WriteOptions{
		RowGroupRows:       rapid.SampledFrom([]int{3, 20, 64, 1000}).Draw(t, "group rows"),
		PageRows:           rapid.SampledFrom([]int{1, 4, 7, 1000}).Draw(t, "page rows"),
		PageBytes:          rapid.SampledFrom([]int{10, 500, 1 << 20}).Draw(t, "page bytes"),
		SeriesRows:         rapid.SampledFrom([]int{1, 1, 2, -1}).Draw(t, "series rows"),
		DictionaryMaxBytes: rapid.SampledFrom([]int{1, 30, 1 << 20}).Draw(t, "dictionary bytes"),
	}
}

const key = "t/1.parquet"

// write writes rows as a file and returns it with its description.
func write(t interface{ Fatal(...any) }, schema *table.Schema, rows []runtest.Row, opts sst.WriteOptions) (*bucket, sst.Meta) {
	var buf bytes.Buffer
	meta, err := sst.Write(context.Background(), &buf, schema, runtest.Source(schema, sst.Input(schema), rows, 5), opts)
	if err != nil {
		t.Fatal(err)
	}
	if meta.Size != int64(buf.Len()) || meta.Rows != int64(len(rows)) {
		t.Fatal("meta", meta, "of", buf.Len(), "bytes and", len(rows), "rows")
	}
	return &bucket{objects: map[string][]byte{key: buf.Bytes()}}, meta
}

// request asks for all columns, tags and time included.
func request(schema *table.Schema) run.Request {
	req := run.Request{Schema: schema, Times: table.AllTime, Identity: true, Stats: new(table.ScanStats)}
	for _, c := range schema.Columns {
		req.Columns = append(req.Columns, c.ID)
	}
	return req
}

func scanAll(r *sst.Reader, req run.Request) ([]string, error) {
	x, err := r.Series(context.Background(), req.Stats)
	if err != nil {
		return nil, err
	}
	src := r.Scan(req, x, 0, len(r.RowGroups()))
	sst.SetViewRows(src, 1+int(r.Meta().Rows)%4)
	defer src.Close()
	return runtest.TryRead(src, req)
}

// What is read is what was written, for every type, value and page size.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := allTypes()
		rows := rowSet(t, schema, rapid.IntRange(1, 60).Draw(t, "rows"))
		b, meta := write(t, schema, rows, tiny(t))
		c := cache.New(rapid.SampledFrom([]int64{0, 1 << 14, 1 << 20}).Draw(t, "cache"))
		r, err := sst.Open(context.Background(), b, key, meta, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // from the file, and from the cache
			got, err := scanAll(r, request(schema))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(runtest.Format(schema, request(schema), rows), got); d != "" {
				t.Fatalf("want -, got +\n%s", d)
			}
		}
		if err := sst.Verify(context.Background(), b, key, meta); err != nil {
			t.Fatal(err)
		}
	})
}

// A scan with predicates, a time range and a key range returns exactly the
// rows of the whole that pass, fields included if the file is alone.
func TestPredicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := allTypes()
		rows := rowSet(t, schema, rapid.IntRange(1, 60).Draw(t, "rows"))
		b, meta := write(t, schema, rows, tiny(t))
		r, err := sst.Open(context.Background(), b, key, meta, cache.New(1<<20), 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			req := request(schema)
			req.Alone = rapid.Bool().Draw(t, "alone")
			req.Identity = rapid.Bool().Draw(t, "identity")
			if rapid.Bool().Draw(t, "times?") {
				req.Times = table.TimeRange{Min: rapid.Int64Range(-25, 25).Draw(t, "min"), Max: rapid.Int64Range(-25, 25).Draw(t, "max")}
			}
			if rapid.Bool().Draw(t, "first?") {
				req.FirstKey = rows[rapid.IntRange(0, len(rows)-1).Draw(t, "first")].Key(schema)
			}
			if rapid.Bool().Draw(t, "end?") {
				req.EndKey = rows[rapid.IntRange(0, len(rows)-1).Draw(t, "end")].Key(schema)
			}
			for range rapid.IntRange(0, 2).Draw(t, "predicates") {
				req.Predicates = append(req.Predicates, predicate(t, schema, rows))
			}
			want := runtest.Format(schema, req, slices.DeleteFunc(slices.Clone(rows), func(r runtest.Row) bool { return !passes(&r, &req) }))
			got, err := scanAll(r, req)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%+v\nwant -, got +\n%s", req, d)
			}
		}
	})
}

func predicate(t *rapid.T, schema *table.Schema, rows []runtest.Row) table.Predicate {
	c := rapid.SampledFrom(schema.Columns).Draw(t, "column")
	p := table.Predicate{Column: c.ID, Op: table.Compare(rapid.IntRange(int(table.Equal), int(table.IsNotNull)).Draw(t, "op"))}
	n := 1
	switch p.Op {
	case table.In:
		n = rapid.IntRange(0, 3).Draw(t, "values")
	case table.IsNull, table.IsNotNull:
		n = 0
	}
	for range n {
		v := table.Value{Type: c.Type}
		cell := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")].Cells[slices.Index(schema.Columns, c)]
		if cell == nil || rapid.Bool().Draw(t, "other") {
			cell = cells(c.Type).Draw(t, "value")
		}
		switch x := cell.(type) {
		case int64:
			v.Int = x
		case float64:
			v.Float = x
		case string:
			v.Bytes = x
		case bool:
			if x {
				v.Int = 1
			}
		}
		p.Values = append(p.Values, v)
	}
	return p
}

// passes is the plain meaning of a request.
func passes(r *runtest.Row, req *run.Request) bool {
	key, time := r.Key(req.Schema), r.Time(req.Schema)
	if !req.Times.Contains(time) || req.FirstKey != nil && bytes.Compare(key, req.FirstKey) < 0 ||
		req.EndKey != nil && bytes.Compare(key, req.EndKey) >= 0 {
		return false
	}
	for _, p := range req.Predicates {
		c := req.Schema.Column(p.Column)
		at := slices.IndexFunc(req.Schema.Columns, func(x table.Column) bool { return x.ID == p.Column })
		if (c.Role != table.Field || req.Alone) && !holds(c.Type, r.Cells[at], &p) {
			return false
		}
	}
	return true
}

func holds(t table.Type, cell any, p *table.Predicate) bool {
	if p.Op == table.IsNull || p.Op == table.IsNotNull {
		return (cell == nil) == (p.Op == table.IsNull)
	}
	if cell == nil {
		return false
	}
	order := func(v table.Value) int {
		switch x := cell.(type) {
		case string:
			return strings.Compare(x, v.Bytes)
		case bool:
			return int(map[bool]int64{true: 1}[x] - v.Int)
		case float64:
			// Every NaN is one value above all others.
			rank := func(f float64) (float64, int) {
				if math.IsNaN(f) {
					return 0, 1
				}
				return f, 0
			}
			a, an := rank(x)
			b, bn := rank(v.Float)
			switch {
			case an != bn:
				return an - bn
			case a < b:
				return -1
			case a > b:
				return 1
			}
			return 0
		}
		x := cell.(int64)
		switch {
		case x == v.Int:
			return 0
		case t == table.UInt64 && uint64(x) < uint64(v.Int) || t != table.UInt64 && x < v.Int:
			return -1
		}
		return 1
	}
	if p.Op == table.In {
		return slices.ContainsFunc(p.Values, func(v table.Value) bool { return order(v) == 0 })
	}
	c := order(p.Values[0])
	return map[table.Compare]bool{
		table.Equal: c == 0, table.NotEqual: c != 0, table.Less: c < 0,
		table.LessEqual: c <= 0, table.Greater: c > 0, table.GreaterEqual: c >= 0,
	}[p.Op]
}

// A column that is newer than the file is all null, in results and predicates;
// one of another type is refused.
func TestSchemaChanges(t *testing.T) {
	old := &table.Schema{Key: []table.ColumnID{1}, Columns: []table.Column{
		{ID: 1, Name: "host", Type: table.String, Role: table.Tag},
		{ID: 2, Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
		{ID: 3, Name: "v", Type: table.Float64, Role: table.Field},
	}}
	rows := []runtest.Row{{Cells: []any{"a", int64(1), 1.0}, Sequence: 1}, {Cells: []any{"b", int64(1), 2.0}, Sequence: 1}}
	b, meta := write(t, old, rows, sst.WriteOptions{})
	r, err := sst.Open(context.Background(), b, key, meta, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	now := old.Clone()
	now.Columns = append(now.Columns,
		table.Column{ID: 4, Name: "w", Type: table.String, Role: table.Field}, table.Column{ID: 5, Name: "zone", Type: table.String, Role: table.Tag})
	now.Key = append(now.Key, 5)
	f := func(want string, predicates ...table.Predicate) {
		t.Helper()
		req := request(now)
		req.Predicates, req.Identity, req.Alone = predicates, false, true
		got, err := scanAll(r, req)
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("got\n%s\nwant\n%s", s, want)
		}
	}
	both := `"a" 1 1 <nil> <nil> ` + "\n" + `"b" 1 2 <nil> <nil> `
	f(both)
	f(both, table.Predicate{Column: 5, Op: table.IsNull})
	f("", table.Predicate{Column: 5, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "x"}}})
	f("", table.Predicate{Column: 4, Op: table.IsNotNull})

	now.Columns[2].Type = table.Int64
	if _, err := scanAll(r, request(now)); err == nil || !strings.Contains(err.Error(), `"v" as Float64`) {
		t.Errorf("reading a column as another type: %v", err)
	}
}

// Every byte of a file is flipped once. Each time the file is reported as
// damaged or read as it was.
var long = flag.Bool("long", false, "flip a bit of every byte, not of each fifth")

func TestEveryByteFlipped(t *testing.T) {
	schema := allTypes()
	rows := rapid.Custom(func(t *rapid.T) []runtest.Row { return rowSet(t, schema, 40) }).Example(1)
	opts := sst.WriteOptions{RowGroupRows: 25, PageRows: 10, PageBytes: 300, DictionaryMaxBytes: 100, SeriesRows: 1}
	b, meta := write(t, schema, rows, opts)
	req := request(schema)
	req.Predicates = []table.Predicate{{Column: 3, Op: table.GreaterEqual, Values: []table.Value{{Type: table.Int32, Int: math.MinInt32}}}}
	read := func() ([]string, error) {
		r, err := sst.Open(context.Background(), b, key, meta, nil, 1)
		if err != nil {
			return nil, err
		}
		return scanAll(r, req)
	}
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	data, reported, tried, step := b.objects[key], 0, 0, 5
	if *long {
		step = 1
	}
	for i := 0; i < len(data); i += step {
		tried++
		data[i] ^= 1 << (i % 8)
		got, err := read()
		damaged := (*sst.Damaged)(nil)
		switch {
		case errors.As(err, &damaged):
			reported++
		case err != nil:
			t.Errorf("byte %d of %d: not reported as damage: %v", i, len(data), err)
		case !slices.Equal(got, want):
			t.Errorf("byte %d of %d: wrong rows", i, len(data))
		}
		if err := sst.Verify(context.Background(), b, key, meta); !errors.As(err, &damaged) {
			t.Errorf("byte %d of %d: Verify says %v", i, len(data), err)
		}
		data[i] ^= 1 << (i % 8)
	}
	if reported < tried/2 {
		t.Errorf("only %d of %d damages reported: the scan does not read the file", reported, tried)
	}
	b.objects[key] = data[:len(data)-1]
	if _, err := read(); !errors.As(err, new(*sst.Damaged)) {
		t.Errorf("a short file: %v", err)
	}
	delete(b.objects, key)
	if _, err := read(); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("an absent file: %v", err)
	}
}
