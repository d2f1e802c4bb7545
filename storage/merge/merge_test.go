package merge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/varvedb/varve/storage/merge"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/run/runtest"
	"github.com/varvedb/varve/table"
)

var schema = &table.Schema{
	Key: []table.ColumnID{1, 2},
	Columns: []table.Column{
		{ID: 1, Name: "host", Type: table.String, Role: table.Tag},
		{ID: 2, Name: "cpu", Type: table.String, Role: table.Tag},
		{ID: 3, Name: "ts", Type: table.TimestampMillisecond, Role: table.Timestamp},
		{ID: 4, Name: "a", Type: table.Float64, Role: table.Field},
		{ID: 5, Name: "b", Type: table.Int64, Role: table.Field},
		{ID: 6, Name: "s", Type: table.String, Role: table.Field},
		{ID: 7, Name: "s2", Type: table.String, Role: table.Field},
		{ID: 8, Name: "ok", Type: table.Boolean, Role: table.Field},
	},
}

func request(identity bool) run.Request {
	return run.Request{
		Schema: schema, Columns: []table.ColumnID{1, 3, 4, 2, 5, 6, 7, 8}, Times: table.AllTime,
		Identity: identity, Stats: new(table.ScanStats),
	}
}

// A merge of any rows in any sources says, for each identity, what a walk over
// its versions from the newest says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := merge.Options{
			Request:        request(rapid.Bool().Draw(t, "identity")),
			Mode:           table.MergeMode(rapid.IntRange(0, 2).Draw(t, "mode")),
			KeepTombstones: rapid.Bool().Draw(t, "keep"),
		}
		var all []runtest.Row
		var sources []run.Source
		sequence := uint64(0)
		series := rapid.IntRange(1, 4).Draw(t, "series")
		for range rapid.IntRange(1, 5).Draw(t, "sources") {
			var rows []runtest.Row
			for range rapid.IntRange(0, 30).Draw(t, "rows") {
				sequence++
				rows = append(rows, row(t, series, sequence))
			}
			all = append(all, rows...)
			req := merge.SourceRequest(opts.Request)
			src := runtest.Source(schema, req, rows, rapid.IntRange(1, 12).Draw(t, "batch"))
			if isDistinct(rows) {
				src = distinct{src}
			}
			sources = append(sources, src)
		}
		m := merge.New(sources, opts)
		merge.SetViewRows(m, rapid.IntRange(1, 8).Draw(t, "view rows"))
		got, err := runtest.TryRead(m, opts.Request)
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if d := cmp.Diff(runtest.Format(schema, opts.Request, model(all, opts)), got); d != "" {
			t.Fatalf("%s, keep %v: want -, got +\n%s", opts.Mode, opts.KeepTombstones, d)
		}
	})
}

type distinct struct{ run.Source }

func (distinct) Distinct() bool { return true }

func isDistinct(rows []runtest.Row) bool {
	seen := map[string]bool{}
	for i := range rows {
		id := fmt.Sprintf("%x@%d", rows[i].Key(schema), rows[i].Time(schema))
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

func row(t *rapid.T, series int, sequence uint64) runtest.Row {
	r := runtest.Row{Sequence: sequence}
	maybe := func(v any) any {
		if r.Op == table.Delete || rapid.IntRange(0, 2).Draw(t, "null") == 0 {
			return nil
		}
		return v
	}
	if rapid.IntRange(0, 6).Draw(t, "op") == 0 {
		r.Op = table.Delete
	}
	h := rapid.IntRange(0, series-1).Draw(t, "host")
	r.Cells = []any{
		fmt.Sprint("host", h/2), fmt.Sprint("cpu", h%2), rapid.Int64Range(0, 12).Draw(t, "time"),
		maybe(float64(sequence)), maybe(int64(sequence)), maybe(fmt.Sprint("s", sequence%5)),
		maybe(fmt.Sprint("t", sequence)), maybe(sequence%2 == 0),
	}
	return r
}

// model merges rows the plain way.
func model(rows []runtest.Row, opts merge.Options) (out []runtest.Row) {
	compare := runtest.Compare(schema)
	slices.SortFunc(rows, compare)
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Time(schema) == rows[i].Time(schema) && slices.Equal(rows[j].Key(schema), rows[i].Key(schema)) {
			j++
		}
		versions := rows[i:j] // newest first
		i = j
		if opts.Mode == table.Append {
			for _, v := range versions {
				if v.Op == table.Put || opts.KeepTombstones {
					out = append(out, v)
				}
			}
			continue
		}
		newest := versions[0]
		newest.Cells = slices.Clone(newest.Cells)
		if newest.Op == table.Put || opts.KeepTombstones {
			out = append(out, newest)
		}
		if newest.Op == table.Delete || opts.Mode == table.LastRow {
			continue
		}
		for _, v := range versions[1:] {
			if v.Op == table.Delete {
				if opts.KeepTombstones {
					out = append(out, v)
				}
				break
			}
			for c := range newest.Cells {
				if newest.Cells[c] == nil {
					newest.Cells[c] = v.Cells[c]
				}
			}
		}
	}
	return out
}

// Faults 1 and 2 of the specification: a tombstone between two puts keeps
// hiding the older one, in one source, in two, and after they became a file.
func TestDeleteBetweenPuts(t *testing.T) {
	put := func(seq uint64, a, b any) runtest.Row {
		return runtest.Row{Sequence: seq, Cells: []any{"h", "c", int64(0), a, b, nil, nil, nil}}
	}
	del := runtest.Row{Sequence: 2, Op: table.Delete, Cells: []any{"h", "c", int64(0), nil, nil, nil, nil, nil}}
	f := func(want string, sources ...[]runtest.Row) {
		t.Helper()
		req := request(false)
		req.Columns = []table.ColumnID{4, 5}
		read := func(keep bool, sources ...[]runtest.Row) []string {
			opts := merge.Options{Request: req, Mode: table.LastNonNull, KeepTombstones: keep}
			opts.Request.Identity = keep
			var in []run.Source
			for _, rows := range sources {
				in = append(in, runtest.Source(schema, merge.SourceRequest(req), rows, 1))
			}
			return runtest.Read(t, merge.New(in, opts), opts.Request)
		}
		if got := fmt.Sprintf("%q", read(false, sources...)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(`["3 <nil> "]`, []runtest.Row{put(1, 1.0, int64(2)), del, put(3, 3.0, nil)})
	f(`["3 <nil> "]`, []runtest.Row{put(1, 1.0, int64(2)), del}, []runtest.Row{put(3, 3.0, nil)})
	f(`["3 <nil> "]`, []runtest.Row{put(1, 1.0, int64(2))}, []runtest.Row{del, put(3, 3.0, nil)})
	f(`["3 2 "]`, []runtest.Row{put(1, 1.0, int64(2))}, []runtest.Row{put(3, 3.0, nil)})
	f(`[]`, []runtest.Row{put(1, 1.0, int64(2))}, []runtest.Row{del})
}

// A tombstone that a compaction keeps goes on hiding what is older than the
// compacted files.
func TestKeptTombstoneHidesLater(t *testing.T) {
	cells := func(a, b any) []any { return []any{"h", "c", int64(0), a, b, nil, nil, nil} }
	oldest := []runtest.Row{{Sequence: 1, Cells: cells(1.0, int64(2))}}
	middle := []runtest.Row{{Sequence: 2, Op: table.Delete, Cells: cells(nil, nil)}}
	newest := []runtest.Row{{Sequence: 3, Cells: cells(3.0, nil)}}
	req := request(false)
	source := func(rows []runtest.Row) run.Source {
		return runtest.Source(schema, merge.SourceRequest(req), rows, 10)
	}
	opts := merge.Options{Request: merge.SourceRequest(req), Mode: table.LastNonNull, KeepTombstones: true}
	compacted := merge.New([]run.Source{source(middle), source(newest)}, opts)
	if d, ok := compacted.(run.Distinct); !ok || d.Distinct() {
		t.Error("a merge that keeps tombstones below rows says its rows are distinct")
	}
	got := runtest.Read(t, merge.New([]run.Source{source(oldest), compacted},
		merge.Options{Request: req, Mode: table.LastNonNull}), req)
	if want := []string{`"h" 0 3 "c" <nil> <nil> <nil> <nil> `}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An error of a source comes through, and Close may come at any time.
func TestSourceFails(t *testing.T) {
	m := merge.New([]run.Source{failing{}}, merge.Options{Request: request(false)})
	for range 2 {
		if _, err := m.Next(context.Background()); err != errFailing {
			t.Errorf("got %v", err)
		}
	}
	m.Close()
	m.Close()
}

type failing struct{}

var errFailing = fmt.Errorf("bad disk")

func (failing) Next(context.Context) (*run.Batch, error) { return nil, errFailing }
func (failing) Close()                                   {}
