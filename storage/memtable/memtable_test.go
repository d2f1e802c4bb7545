package memtable

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// The columns of the tests: two tags, the time, and a field of every layout.
var schema = &table.Schema{Version: 1, Key: []table.ColumnID{1, 2}, Columns: []table.Column{
	{ID: 1, Name: "host", Type: table.String, Role: table.Tag},
	{ID: 2, Name: "rack", Type: table.Int64, Role: table.Tag},
	{ID: 3, Name: "ts", Type: table.TimestampMillisecond, Role: table.Timestamp},
	{ID: 4, Name: "i", Type: table.Int64, Role: table.Field},
	{ID: 5, Name: "f", Type: table.Float64, Role: table.Field},
	{ID: 6, Name: "b", Type: table.Boolean, Role: table.Field},
	{ID: 7, Name: "s", Type: table.String, Role: table.Field},
	{ID: 8, Name: "later", Type: table.Int64, Role: table.Field},
}}

var allColumns = []table.ColumnID{1, 2, 3, 4, 5, 6, 7, 8}

// A testRow is one row as the reference keeps it.
type testRow struct {
	key      []byte
	time     int64
	sequence uint64
	n        int // place in the order of arrival
	op       table.Op
	text     string // as the columns print
}

// A feeder appends random rows and remembers them.
type feeder struct {
	rng      *rand.Rand
	t        *Table
	rows     []testRow
	sequence uint64
	series   int
	ordered  bool // times only grow
	deletes  bool
}

func (f *feeder) append(n int, fields int) {
	rows := &table.Rows{}
	if f.deletes && f.rng.IntN(4) == 0 {
		rows.Op = table.Delete
	}
	known := make(map[int]uint32)
	f.sequence++
	vectors := make([]table.Vector, 5)
	for c := range vectors {
		vectors[c] = table.Vector{Type: schema.Columns[c+3].Type, Len: n}
		if f.rng.IntN(2) == 0 {
			vectors[c].Valid = table.NewBitmap(n)
		}
	}
	dict := &table.Dict{Offsets: []uint32{0, 1, 3}, Data: []byte("xyz")}
	coded := f.rng.IntN(2) == 0
	if vectors[3].Dict = nil; coded {
		vectors[3].Dict = dict
	} else {
		vectors[3].Offsets = []uint32{0}
	}
	var sel []uint32
	for i := range n {
		s := f.rng.IntN(f.series)
		key, host, rack := seriesKey(s)
		if _, ok := known[s]; !ok {
			known[s] = rows.Keys.Append(key, table.HashKey(key))
		}
		rows.Series = append(rows.Series, known[s])
		at := int64(f.sequence) * 1000
		if !f.ordered {
			at = f.rng.Int64N(50)
		}
		at += int64(i)
		rows.Times = append(rows.Times, at)
		text := fmt.Sprint(host, " ", rack, " ", at)
		for c := range vectors {
			text += " " + f.value(&vectors[c], c < fields)
		}
		if f.rng.IntN(8) == 0 {
			continue // a row of another window
		}
		sel = append(sel, uint32(i))
		f.rows = append(f.rows, testRow{key, at, f.sequence, len(f.rows), rows.Op, text})
	}
	for c := range fields {
		rows.Fields = append(rows.Fields, table.FieldVector{ID: table.ColumnID(4 + c), Vector: vectors[c]})
	}
	f.t.Append(rows, sel, f.sequence)
}

func seriesKey(s int) (key []byte, host, rack string) {
	host, rack = "null", "null"
	if s%5 == 0 {
		key = table.AppendKeyNull(key)
	} else {
		host = fmt.Sprint("h", s)
		key = table.AppendKeyBytes(key, []byte(host))
	}
	if s%3 == 0 {
		return table.TrimKey(key, s%5/5+b2i(s%5 == 0)), host, rack
	}
	rack = fmt.Sprint(s % 7)
	if s%5 == 0 {
		rack = fmt.Sprint(s)
	}
	var r int64
	_, _ = fmt.Sscan(rack, &r)
	return table.AppendKeyInt(key, table.Int64, r), host, rack
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// value appends a random value to v and returns how it prints.
func (f *feeder) value(v *table.Vector, present bool) string {
	i := max(len(v.Ints), len(v.Floats), len(v.Bools), len(v.Codes), len(v.Offsets)-1)
	valid := v.Valid == nil || f.rng.IntN(2) == 0
	if valid && v.Valid != nil {
		v.Valid.Set(i)
	}
	n := f.rng.IntN(1000)
	text := ""
	switch {
	case v.Type.Layout() == table.Ints:
		v.Ints = append(v.Ints, int64(n))
		text = fmt.Sprint(n)
	case v.Type.Layout() == table.Floats:
		v.Floats = append(v.Floats, float64(n)/8)
		text = fmt.Sprint(float64(n) / 8)
	case v.Type.Layout() == table.Bools:
		v.Bools = append(v.Bools, n%2 == 0)
		text = fmt.Sprint(n%2 == 0)
	case v.Dict != nil:
		v.Codes = append(v.Codes, uint32(n%2))
		text = string(v.Dict.Value(uint32(n % 2)))
	default:
		text = fmt.Sprint("s", n)
		v.Data = append(v.Data, text...)
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
	}
	if !valid || !present {
		return "null"
	}
	return text
}

// sortRows puts rows in the order of a Source.
func sortRows(rows []testRow) []testRow {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b testRow) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(a.time, b.time), cmp.Compare(b.sequence, a.sequence), cmp.Compare(b.n, a.n))
	})
	return rows
}

// read drains a source and prints its rows, with identities if it has them.
func read(t *testing.T, src run.Source) (lines []string) {
	t.Helper()
	defer src.Close()
	for {
		b, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			return lines
		}
		stretch := -1
		for i := range b.Len {
			line := ""
			for c := range b.Columns {
				line += " " + format(&b.Columns[c], i)
			}
			if b.Keys != nil {
				if stretch+1 < len(b.Starts) && b.Starts[stretch+1] == uint32(i) {
					stretch++
				}
				op := table.Put
				if b.Ops != nil {
					op = b.Ops[i]
				}
				line = fmt.Sprintf("%x %d %d %d%s", b.Keys[stretch], b.Times[i], b.Sequences[i], op, line)
			}
			lines = append(lines, line)
		}
	}
}

func format(v *table.Vector, i int) string {
	switch {
	case v.IsNull(i):
		return "null"
	case v.Type.Layout() == table.Ints:
		return fmt.Sprint(v.Ints[i])
	case v.Type.Layout() == table.Floats:
		return fmt.Sprint(v.Floats[i])
	case v.Type.Layout() == table.Bools:
		return fmt.Sprint(v.Bools[i])
	default:
		return string(v.Bytes(i))
	}
}

func wantLines(rows []testRow, identity bool, keep func(testRow) bool) (lines []string) {
	for _, r := range rows {
		switch {
		case !keep(r):
		case identity:
			lines = append(lines, fmt.Sprintf("%x %d %d %d %s", r.key, r.time, r.sequence, r.op, r.text))
		default:
			lines = append(lines, " "+r.text)
		}
	}
	return lines
}

// A frozen snapshot with the rows that it must show for ever.
type frozen struct {
	snap *Snapshot
	rows []testRow
}

// TestSnapshotsShowTheirMoment appends random rows, takes snapshots in
// between, and reads each of them once the table has grown, in every way.
func TestSnapshotsShowTheirMoment(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := &feeder{rng: rng, t: New(table.AllTime, nil), series: 1 + rng.IntN(60), ordered: rng.IntN(2) == 0, deletes: rng.IntN(2) == 0}
		var snaps []frozen
		for range 10 + rng.IntN(30) {
			f.append(1+rng.IntN(1000), rng.IntN(6))
			if rng.IntN(4) == 0 {
				snaps = append(snaps, frozen{f.t.Snapshot(), slices.Clone(f.rows)})
				if rng.IntN(2) == 0 { // leaves an index behind that is older than the next snapshots
					read(t, f.t.Snapshot().Source(run.Request{Schema: schema, Times: table.AllTime, Stats: new(table.ScanStats)}))
				}
			}
		}
		rng.Shuffle(len(snaps), func(i, j int) { snaps[i], snaps[j] = snaps[j], snaps[i] })
		for _, s := range snaps {
			checkSnapshot(t, fmt.Sprint("seed ", seed), s, rng)
		}
	}
}

func checkSnapshot(t *testing.T, what string, s frozen, rng *rand.Rand) {
	t.Helper()
	f := func(req run.Request, arrival bool, keep func(testRow) bool) {
		t.Helper()
		req.Schema, req.Columns, req.Stats = schema, allColumns, new(table.ScanStats)
		var got, want []string
		if arrival {
			for first, end := range s.snap.Stretches(1 + rng.IntN(20_000)) {
				got = append(got, read(t, s.snap.Arrival(req, first, end))...)
			}
			want = wantLines(s.rows, false, keep)
		} else {
			got = read(t, s.snap.Source(req))
			want = wantLines(sortRows(s.rows), req.Identity, keep)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%s, %d rows, arrival %v, request %+v (-want +got):\n%.2000s", what, len(s.rows), arrival, req, diff)
		}
	}
	all := func(testRow) bool { return true }
	f(run.Request{Times: table.AllTime}, true, all)
	some := table.TimeRange{Min: 20, Max: 4000}
	within := func(r testRow) bool { return some.Contains(r.time) }
	f(run.Request{Times: some}, true, within)
	f(run.Request{Times: some, Identity: true}, false, within)
	one, _, _ := seriesKey(1)
	isOne := table.Predicate{Column: 1, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "h1"}}}
	sameKey := func(r testRow) bool { return bytes.Equal(r.key, one) }
	f(run.Request{Times: table.AllTime, Predicates: []table.Predicate{isOne}, Identity: true}, false, sameKey)
	f(run.Request{Times: table.AllTime, Predicates: []table.Predicate{isOne}}, true, sameKey)
	f(run.Request{Times: table.AllTime, FirstKey: one, Identity: true}, false, func(r testRow) bool { return bytes.Compare(r.key, one) >= 0 })
	f(run.Request{Times: table.AllTime, EndKey: one}, false, func(r testRow) bool { return bytes.Compare(r.key, one) < 0 })
	f(run.Request{Times: table.AllTime, Identity: true}, false, all)
	var identities []string
	deletes := false
	for _, r := range s.rows {
		identities = append(identities, fmt.Sprintf("%x %d", r.key, r.time))
		deletes = deletes || r.op == table.Delete
	}
	slices.Sort(identities)
	distinct := len(slices.Compact(identities)) == len(s.rows)
	if s.snap.Unique() && (!distinct || deletes) {
		t.Fatalf("%s: %d rows are said to be unique", what, len(s.rows))
	}
}

// TestReadersBesideTheWriter is for the race detector, and checks that each
// snapshot has the rows of its moment.
func TestReadersBesideTheWriter(t *testing.T) {
	f := &feeder{rng: rand.New(rand.NewPCG(3, 3)), t: New(table.AllTime, new(atomic.Int64)), series: 20, deletes: true}
	var owner sync.Mutex
	var readers sync.WaitGroup
	for r := range 2 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(9, uint64(r)))
			for range 8 {
				owner.Lock()
				s := frozen{f.t.Snapshot(), slices.Clone(f.rows)}
				owner.Unlock()
				checkSnapshot(t, "concurrent", s, rng)
			}
		})
	}
	for range 60 {
		owner.Lock()
		f.append(100, f.rng.IntN(6))
		owner.Unlock()
	}
	readers.Wait()
}

func TestSparseTableIsSmall(t *testing.T) {
	var total atomic.Int64
	tab := New(table.AllTime, &total)
	f := &feeder{rng: rand.New(rand.NewPCG(1, 1)), t: tab, series: 2}
	f.append(3, 5)
	if n := tab.Bytes(); n > 4096 || n != total.Load() {
		t.Errorf("a table of 3 rows takes %d bytes, and its owner counts %d", n, total.Load())
	}
	tab.Seal()
	tab.Release()
	read(t, tab.Snapshot().Source(run.Request{Schema: schema, Times: table.AllTime, Stats: new(table.ScanStats)}))
	if n := total.Load(); n != 0 {
		t.Errorf("after its release the owner still counts %d bytes", n)
	}
}

func TestLocate(t *testing.T) {
	row := uint32(0)
	for k := range 40 {
		for off := range chunkSize(k) {
			if gotK, gotOff := locate(row); int(gotK) != k || int(gotOff) != off {
				t.Fatalf("row %d is at %d/%d, want %d/%d", row, gotK, gotOff, k, off)
			}
			row++
		}
	}
}

// BenchmarkAppend appends batches of 3,000 rows with 10 doubles of 4,000
// series.
func BenchmarkAppend(b *testing.B) {
	const batch, hosts = 3000, 4000
	keys := make([][]byte, hosts)
	for i := range keys {
		keys[i] = table.AppendKeyBytes(bytes.Repeat([]byte{1, 'x', 'y', 'z', 0, 1}, 24), fmt.Append(nil, i))
	}
	rows := &table.Rows{}
	for f := range 10 {
		v := table.Vector{Type: table.Float64, Len: batch, Floats: make([]float64, batch)}
		rows.Fields = append(rows.Fields, table.FieldVector{ID: table.ColumnID(f + 1), Vector: v})
	}
	t, n := New(table.AllTime, nil), 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		rows.Keys.Reset()
		rows.Series, rows.Times = rows.Series[:0], rows.Times[:0]
		for i := range batch {
			key := keys[(n+i)%hosts]
			rows.Series = append(rows.Series, rows.Keys.Append(key, table.HashKey(key)))
			rows.Times = append(rows.Times, int64((n+i)/hosts))
		}
		if n += batch; n%(100*batch) == 0 {
			t = New(table.AllTime, nil)
		}
		b.StartTimer()
		t.Append(rows, nil, uint64(n))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
}
