package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

var modes = []table.MergeMode{table.LastRow, table.LastNonNull, table.Append}

func cpuTable(id table.ID, mode table.MergeMode) *table.Info {
	info := storagetest.Table(id, "cpu", mode, "host String tag", "ts TimestampMillisecond time", "rack Int64 tag",
		"a Float64", "b Int64", "s String", "ok Boolean")
	info.Options = map[string]string{"compaction.twcs.time_window": "1s"}
	return info
}

// A model is what a table must hold, row by row.
type model struct {
	info *table.Info
	rows map[string][]any // by identity
	all  [][]any          // of an append table
}

func newModel(info *table.Info) *model { return &model{info: info, rows: make(map[string][]any)} }

func (m *model) put(row []any) {
	id := fmt.Sprint(row[0], row[1], row[2])
	old, ok := m.rows[id]
	switch {
	case m.info.Merge == table.Append:
		m.all = append(m.all, row)
		return
	case ok && m.info.Merge == table.LastNonNull:
		row = slices.Clone(row)
		for i := range row {
			if row[i] == nil {
				row[i] = old[i]
			}
		}
	}
	m.rows[id] = row
}

func (m *model) remove(row []any) { delete(m.rows, fmt.Sprint(row[0], row[1], row[2])) }

// lines returns the rows that keep says, as storagetest.Read returns them.
func (m *model) lines(keep func(row []any) bool) (lines []string) {
	add := func(row []any) {
		if !keep(row) {
			return
		}
		words := make([]string, len(row))
		for i, v := range row {
			if words[i] = fmt.Sprint(v); v == nil {
				words[i] = "null"
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	for _, row := range m.rows {
		add(row)
	}
	for _, row := range m.all {
		add(row)
	}
	slices.Sort(lines)
	return lines
}

// randomRow makes a row of few identities, so that many meet. Far and negative
// times are among them.
func randomRow(rng *rand.Rand) []any {
	maybe := func(v any) any {
		if rng.IntN(3) == 0 {
			return nil
		}
		return v
	}
	row := []any{maybe(fmt.Sprint("h", rng.IntN(4))), rng.IntN(40) * 137, maybe(rng.IntN(2)),
		maybe(float64(rng.IntN(100)) / 4), maybe(rng.IntN(1000)), maybe(strings.Repeat("x", 1+rng.IntN(20))), maybe(rng.IntN(2) == 0)}
	switch rng.IntN(40) {
	case 0:
		row[1] = -rng.IntN(5000)
	case 1:
		row[1] = []int{-1 << 63, 1<<63 - 1, 4e15}[rng.IntN(3)]
	}
	return row
}

// TestModel writes, overwrites, deletes, flushes, restarts and crashes at
// random, and reads everything and parts of it beside a plain map.
func TestModel(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			for seed := range uint64(12 / stride(3)) {
				runModel(t, mode, seed)
			}
		})
	}
}

func runModel(t *testing.T, mode table.MergeMode, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(mode)))
	store := storagetest.New(t, func(o *storage.Options) {
		o.FlushBytes = 1 << (12 + rng.IntN(8))
		o.SeriesRows = []int{1, -1, 2}[seed%3] // files with series indexes, without, and some with
		o.WAL = wal.Options{SegmentBytes: 2048, MaxBytes: 8192}
	})
	info := cpuTable(7, mode)
	store.Tables.Put(info)
	m := newModel(info)
	ctx := context.Background()
	for step := range 60 {
		what := fmt.Sprintf("%v seed %d step %d", mode, seed, step)
		switch rng.IntN(12) {
		case 0:
			if err := store.Flush(ctx, info); err != nil {
				t.Fatalf("%s: flush: %v", what, err)
			}
		case 1:
			store.Restart(t)
		case 2:
			store.Crash(t)
		case 3:
			if mode != table.Append {
				writeRandom(t, what, store, m, rng, table.Delete)
			}
		default:
			writeRandom(t, what, store, m, rng, table.Put)
		}
		checkModel(t, what, store, m, rng)
	}
}

func writeRandom(t *testing.T, what string, store *storagetest.Store, m *model, rng *rand.Rand, op table.Op) {
	var values [][]any
	for range 1 + rng.IntN(30) {
		row := randomRow(rng)
		values = append(values, row)
		if op == table.Delete {
			m.remove(row)
		} else {
			m.put(row)
		}
	}
	if err := store.Write(context.Background(), m.info, 0, storagetest.Rows(m.info, op, values...)); err != nil {
		t.Fatalf("%s: write: %v", what, err)
	}
}

func checkModel(t *testing.T, what string, store *storagetest.Store, m *model, rng *rand.Rand) {
	t.Helper()
	spec := storagetest.All(m.info)
	got := storagetest.Read(t, store, m.info, spec)
	if diff := cmp.Diff(m.lines(func([]any) bool { return true }), got); diff != "" {
		t.Fatalf("%s: everything (-want +got):\n%s", what, diff)
	}
	lo := rng.IntN(5000)
	hi := lo + rng.IntN(3000)
	spec.Times = table.TimeRange{Min: int64(lo), Max: int64(hi)}
	host := fmt.Sprint("h", rng.IntN(5))
	spec.Predicates = []table.Predicate{{Column: 1, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: host}}}}
	keep := func(row []any) bool { return row[1].(int) >= lo && row[1].(int) <= hi && row[0] == host }
	if rng.IntN(2) == 0 {
		spec.Predicates = []table.Predicate{{Column: 3, Op: table.IsNull}}
		keep = func(row []any) bool { return row[1].(int) >= lo && row[1].(int) <= hi && row[2] == nil }
	}
	got = storagetest.Read(t, store, m.info, spec)
	if diff := cmp.Diff(m.lines(keep), got); diff != "" {
		t.Fatalf("%s: rows of %v with %v (-want +got):\n%s", what, spec.Times, spec.Predicates, diff)
	}
	// A hint about a field never drops a row that passes it on merged rows.
	spec = storagetest.All(m.info)
	limit := float64(rng.IntN(25))
	spec.Predicates = []table.Predicate{{Column: 4, Op: table.GreaterEqual, Values: []table.Value{{Type: table.Float64, Float: limit}}}}
	got = storagetest.Read(t, store, m.info, spec)
	for _, line := range m.lines(func(row []any) bool { a, ok := row[3].(float64); return ok && a >= limit }) {
		if _, found := slices.BinarySearch(got, line); !found {
			t.Fatalf("%s: a >= %v misses %q", what, limit, line)
		}
	}
}
