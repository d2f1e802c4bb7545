package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// TestSeriesIndexChangesNothing does the same random writes, deletes and
// flushes in a store whose files have series indexes and in one without, and
// compares what random scans return.
func TestSeriesIndexChangesNothing(t *testing.T) {
	keys := map[string][]string{
		"no tags":  {"ts TimestampMillisecond time"},
		"one tag":  {"host String tag", "ts TimestampMillisecond time"},
		"integers": {"ts TimestampMillisecond time", "port UInt64 tag", "up Boolean tag"},
		"floats":   {"load Float64 tag", "ts TimestampMillisecond time", "host String tag"},
	}
	for name, columns := range keys {
		for _, mode := range modes {
			t.Run(fmt.Sprint(name, "/", mode), func(t *testing.T) {
				for seed := range uint64(3) {
					p := newPair(t, mode, seed, append(columns, "a Float64", "b Int64", "s String"))
					for range 30 {
						p.step(t)
					}
				}
			})
		}
	}
}

// A pair is two stores to which the same is done.
type pair struct {
	what   string
	rng    *rand.Rand
	stores [2]*storagetest.Store
	info   *table.Info
	mode   table.MergeMode
	clock  int // rows mostly come in order, and a little late
	names  []string
}

func newPair(t *testing.T, mode table.MergeMode, seed uint64, columns []string) *pair {
	p := &pair{what: fmt.Sprintf("%v seed %d", mode, seed), rng: rand.New(rand.NewPCG(seed, 77)), mode: mode, names: columns}
	for i := range p.stores {
		p.stores[i] = storagetest.New(t, func(o *storage.Options) { o.SeriesRows = []int{1, -1}[i] })
	}
	p.setTable()
	return p
}

func (p *pair) setTable() {
	version := uint64(1)
	if p.info != nil {
		version = p.info.Schema.Version + 1
	}
	p.info = storagetest.Table(3, "m", p.mode, p.names...)
	p.info.Schema.Version = version
	for _, s := range p.stores {
		s.Tables.Put(p.info)
	}
}

func (p *pair) step(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	switch n := p.rng.IntN(20); {
	case n < 3:
		for _, s := range p.stores {
			if err := s.Flush(ctx, p.info); err != nil {
				t.Fatal(p.what, err)
			}
		}
	case n == 3 && len(p.names) < 8: // older files lack it, and their keys end earlier
		p.names = append(p.names, fmt.Sprintf("tag%d String tag", len(p.names)))
		p.setTable()
	case n == 4 && p.mode != table.Append:
		p.write(t, table.Delete)
	case n < 14:
		p.write(t, table.Put)
	default:
		for range 4 {
			p.compare(t)
		}
	}
}

func (p *pair) write(t *testing.T, op table.Op) {
	t.Helper()
	var rows [][]any
	for range 1 + p.rng.IntN(25) {
		rows = append(rows, p.row())
	}
	for _, s := range p.stores {
		if err := s.Write(context.Background(), p.info, 0, storagetest.Rows(p.info, op, rows...)); err != nil {
			t.Fatal(p.what, err)
		}
	}
}

func (p *pair) row() []any {
	p.clock += p.rng.IntN(4)
	var row []any
	for _, c := range p.info.Schema.Columns {
		v := p.value(c.Type)
		if c.Role == table.Timestamp {
			late := 0
			if p.rng.IntN(4) == 0 {
				late = p.rng.IntN(60)
			}
			v = 1000 + p.clock - late
		} else if p.rng.IntN(3) == 0 {
			v = nil
		}
		row = append(row, v)
	}
	return row
}

func (p *pair) value(t table.Type) any {
	n := p.rng.IntN(3)
	switch t.Layout() {
	case table.Ints:
		return n
	case table.Floats:
		return float64(n) - 0.5
	case table.Bools:
		return n > 0
	}
	return []string{"h", "h1", "h\x00"}[n]
}

// compare scans both stores in the same way. Rows that a predicate on a field
// lets through may differ, those that pass may not.
func (p *pair) compare(t *testing.T) {
	t.Helper()
	spec := storagetest.All(p.info)
	if p.rng.IntN(2) == 0 {
		lo := int64(1000 + p.rng.IntN(p.clock+1))
		spec.Times = table.TimeRange{Min: lo, Max: lo + int64(p.rng.IntN(100))}
	}
	if p.rng.IntN(4) == 0 {
		spec.Columns = spec.Columns[p.rng.IntN(len(spec.Columns)):]
	}
	var hint *table.Predicate
	for range p.rng.IntN(3) {
		i := p.rng.IntN(len(p.info.Schema.Columns))
		c := p.info.Schema.Columns[i]
		pred := table.Predicate{Column: c.ID, Op: table.Compare(p.rng.IntN(int(table.IsNotNull) + 1))}
		if c.Role == table.Timestamp {
			continue
		}
		if pred.Op < table.IsNull {
			pred.Values = []table.Value{p.constant(c.Type)}
		}
		spec.Predicates = append(spec.Predicates, pred)
		if c.Role == table.Field {
			hint = &pred
		}
	}
	if hint != nil {
		spec.Columns = storagetest.All(p.info).Columns
	}
	a, b := storagetest.Read(t, p.stores[0], p.info, spec), storagetest.Read(t, p.stores[1], p.info, spec)
	if hint == nil {
		if d := cmp.Diff(b, a); d != "" {
			t.Fatalf("%s: %+v: without index -, with +\n%s", p.what, spec, d)
		}
		return
	}
	// What passes on merged rows is what a scan without the hints returns and
	// the hints let pass: it must be among the rows of both.
	plain := spec
	plain.Predicates = slices.DeleteFunc(slices.Clone(spec.Predicates), func(x table.Predicate) bool {
		return p.info.Schema.Column(x.Column).Role == table.Field
	})
	hints := slices.DeleteFunc(slices.Clone(spec.Predicates), func(x table.Predicate) bool {
		return p.info.Schema.Column(x.Column).Role == table.Tag
	})
	for _, line := range p.passing(t, plain, hints) {
		for i, got := range [][]string{a, b} {
			if _, found := slices.BinarySearch(got, line); !found {
				t.Fatalf("%s: store %d: %+v misses %q", p.what, i, spec, line)
			}
		}
	}
}

func (p *pair) constant(t table.Type) table.Value {
	v := table.Value{Type: t}
	switch x := p.value(t).(type) {
	case int:
		v.Int = int64(x)
	case float64:
		v.Float = x
	case bool:
		if x {
			v.Int = 1
		}
	case string:
		v.Bytes = x
	}
	return v
}

// passing returns the rows of a scan that pass hints.
func (p *pair) passing(t *testing.T, spec table.ScanSpec, hints []table.Predicate) (lines []string) {
	t.Helper()
	ctx := context.Background()
	snap, err := p.stores[1].Snapshot(ctx, p.info)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	parts, err := snap.Scan(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		for {
			b, err := part.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			for i := range b.Len {
				if !slices.ContainsFunc(hints, func(h table.Predicate) bool { return !holdsFor(&b.Columns[h.Column-1], i, &h) }) {
					lines = append(lines, storagetest.Line(b, i))
				}
			}
		}
		part.Close()
	}
	return lines
}

// holdsFor is the plain meaning of a predicate.
func holdsFor(v *table.Vector, i int, p *table.Predicate) bool {
	if v.IsNull(i) || p.Op >= table.IsNull {
		return v.IsNull(i) && p.Op == table.IsNull || !v.IsNull(i) && p.Op == table.IsNotNull
	}
	c, x := 0, p.Values[0]
	switch v.Type.Layout() {
	case table.Ints:
		c = int(v.Ints[i] - x.Int)
	case table.Floats:
		c = int(2 * (v.Floats[i] - x.Float))
	case table.Bytes:
		c = slices.Compare(v.Bytes(i), []byte(x.Bytes))
	}
	switch p.Op {
	case table.Equal, table.In:
		return c == 0
	case table.NotEqual:
		return c != 0
	case table.Less:
		return c < 0
	case table.LessEqual:
		return c <= 0
	case table.Greater:
		return c > 0
	}
	return c >= 0
}
