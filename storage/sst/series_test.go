package sst_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/run/runtest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// The series index says of each series what its rows are.
func TestSeriesIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := allTypes()
		rows := rowSet(t, schema, rapid.IntRange(1, 60).Draw(t, "rows"))
		opts := tiny(t)
		opts.SeriesRows = 1
		b, meta := write(t, schema, rows, opts)
		r, x := openSeries(t, b, meta)
		if x == nil {
			t.Fatal("no series index")
		}
		var got, want []string
		for s := range uint32(x.Len()) {
			first, end := x.Rows(s)
			got = append(got, fmt.Sprintf("%x %d-%d %v %v", x.AppendKey(nil, s), first, end, x.Times(s), x.Mixed(s)))
		}
		for i := 0; i < len(rows); {
			key, end, mixed := rows[i].Key(schema), i, false
			for ; end < len(rows) && bytes.Equal(rows[end].Key(schema), key); end++ {
				mixed = mixed || rows[end].Op == table.Delete
			}
			times := table.TimeRange{Min: rows[i].Time(schema), Max: rows[end-1].Time(schema)}
			want = append(want, fmt.Sprintf("%x %d-%d %v %v", key, i, end, times, mixed))
			i = end
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("want -, got +\n%s", d)
		}
		checkSelection(t, schema, rows, r, x)
	})
}

func openSeries(t interface{ Fatal(...any) }, b *bucket, meta sst.Meta) (*sst.Reader, *sst.SeriesIndex) {
	r, err := sst.Open(context.Background(), b, key, meta, cache.New(1<<20), 1)
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.Series(context.Background(), new(table.ScanStats))
	if err != nil {
		t.Fatal(err)
	}
	return r, x
}

// checkSelection reads the rows in random stretches, and all others: each
// once, and together they are the file.
func checkSelection(t *rapid.T, schema *table.Schema, rows []runtest.Row, r *sst.Reader, x *sst.SeriesIndex) {
	sel := run.Selection{Series: table.NewBitmap(x.Len())}
	for s := range uint32(x.Len()) {
		if rapid.IntRange(0, 4).Draw(t, "wanted") > 0 {
			sel.Series.Set(int(s))
		}
		for at := int64(-22); rapid.Bool().Draw(t, "stretch"); {
			lo := at + rapid.Int64Range(0, 10).Draw(t, "gap")
			hi := lo + rapid.Int64Range(0, 10).Draw(t, "length")
			sel.Stretches = append(sel.Stretches, run.Stretch{Series: s, Times: table.TimeRange{Min: lo, Max: hi}})
			at = hi + 1
		}
	}
	series := func(row *runtest.Row) uint32 { return x.Search(row.Key(schema)) }
	for _, sel.Except = range []bool{true, false} {
		req := request(schema)
		req.Identity = rapid.Bool().Draw(t, "identity")
		req.Times.Min = rapid.Int64Range(-25, 25).Draw(t, "min")
		req.Selection = &sel
		want := slices.DeleteFunc(slices.Clone(rows), func(row runtest.Row) bool {
			s, at := series(&row), row.Time(schema)
			in := slices.ContainsFunc(sel.Of(s), func(x run.Stretch) bool { return x.Times.Contains(at) })
			return !sel.Series.Get(int(s)) || in == sel.Except || !req.Times.Contains(at)
		})
		if !sel.Except { // the caller has left the stretches of other series out
			req.Selection = &run.Selection{Stretches: slices.DeleteFunc(slices.Clone(sel.Stretches),
				func(x run.Stretch) bool { return !sel.Series.Get(int(x.Series)) })}
		}
		got, err := scanAll(r, req)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(runtest.Format(schema, req, want), got); d != "" {
			t.Fatalf("%+v\nwant -, got +\n%s", req.Selection, d)
		}
	}
}

// A series index is written where series are long enough, for any number of
// tags.
func TestSeriesIndexThreshold(t *testing.T) {
	schema := logSchema()
	f := func(series, rows, min int, want bool) {
		t.Helper()
		var list []runtest.Row
		for i := range rows {
			list = append(list, runtest.Row{Sequence: 1, Cells: []any{int64(i), fmt.Sprint(i % series), nil, nil, nil, nil, nil}})
		}
		slices.SortStableFunc(list, runtest.Compare(schema))
		b, meta := write(t, schema, list, sst.WriteOptions{SeriesRows: min})
		if r, x := openSeries(t, b, meta); r.HasSeries() != want || (x != nil) != want {
			t.Errorf("%d rows of %d series: index %v", rows, series, x != nil)
		}
	}
	f(1, 7, 0, false)
	f(1, 8, 0, true)
	f(10, 79, 0, false)
	f(10, 80, 0, true)
	f(10, 80, -1, false)
	f(10, 10, 1, true)
	schema = &table.Schema{Version: 1, Columns: schema.Columns[:1]} // no tags: one series
	list := []runtest.Row{{Cells: []any{int64(1)}, Sequence: 1}, {Cells: []any{int64(2)}, Sequence: 1}}
	b, meta := write(t, schema, list, sst.WriteOptions{SeriesRows: 1})
	if _, x := openSeries(t, b, meta); x == nil || x.Len() != 1 || len(x.AppendKey(nil, 0)) != 0 {
		t.Errorf("a table without tags: %+v", x)
	}
}

// A parser of hostile indexes reports them and never panics; what it accepts
// it can be asked about.
func FuzzSeriesIndex(f *testing.F) {
	schema, rows := logSchema(), logRows(100)
	f.Add(sst.EncodeSeries(schema, runtest.Source(schema, sst.Input(schema), rows, 7)), int64(100))
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0}, int64(1))
	f.Fuzz(func(t *testing.T, raw []byte, rows int64) {
		x, err := sst.ParseSeries(raw, []table.Type{table.String}, rows)
		if err != nil {
			return
		}
		for s := range uint32(x.Len()) {
			first, end := x.Rows(s)
			if key := x.AppendKey(nil, s); first >= end || int64(end) > rows || x.Times(s).Empty() || x.Size() <= int64(len(key)) {
				t.Errorf("series %d is rows %d to %d of %d", s, first, end, rows)
			}
		}
	})
}
