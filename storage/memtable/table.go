// Package memtable holds the rows of one time window from the moment they are
// logged until they are written out as an SST.
//
// # How readers and the writer share a table
//
//  1. The owner serializes Append and Snapshot with a lock of its own. Nothing
//     else here needs it.
//  2. Rows lie in chunks that never move. A Snapshot is the number of rows and
//     the list of chunks at its moment; it copies nothing and never looks at a
//     row behind its count, so the writer goes on while it is read.
//  3. What is allocated late (a column at its first value, its validity at its
//     first null, the bytes of a string arena when it grows) appears through
//     an atomic pointer, complete for every row before it.
//  4. The newest row of a series is an atomic; a reader that finds a row newer
//     than its snapshot walks back along the series' chain.
package memtable

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/table"
)

// MaxRows is how many rows a table can hold; the owner checks Rows before it
// appends, and seals the table.
const MaxRows = math.MaxInt32

// A Table collects the rows of one window.
type Table struct {
	window table.TimeRange

	chunks    []*chunk
	published atomic.Pointer[[]*chunk] // chunks, for chains that start behind a snapshot

	rows    uint32
	series  seriesTable
	times   table.TimeRange
	deletes uint64
	repeats bool // an identity has two rows, or may have
	sealed  atomic.Bool
	bytes   atomic.Int64
	total   *atomic.Int64 // of all tables of the owner; may be nil

	resolved []uint32 // scratch of Append: key of the rows → series + 1

	read struct { // built by readers
		sync.Mutex
		index *index
		tags  []tagBuilder
		perm  *permutation
	}
}

// New returns an empty table for the rows of window. It counts its bytes into
// total, if that is not nil, until it is released.
func New(window table.TimeRange, total *atomic.Int64) *Table {
	t := &Table{window: window, times: emptyRange, total: total}
	t.grow(tableBytes)
	return t
}

func (t *Table) grow(n int64) {
	t.bytes.Add(n)
	if t.total != nil {
		t.total.Add(n)
	}
}

// Release takes a sealed table out of the owner's total. Snapshots of it may
// still be read.
func (t *Table) Release() {
	t.read.Lock()
	defer t.read.Unlock()
	if t.total != nil {
		t.total.Add(-t.bytes.Load())
		t.total = nil
	}
}

var emptyRange = table.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}

// tableBytes is about what an empty Table takes.
const tableBytes = 512

// Window returns the times whose rows belong here.
func (t *Table) Window() table.TimeRange { return t.window }

// Bytes returns the memory that the table holds. It may be called at any time.
func (t *Table) Bytes() int64 { return t.bytes.Load() }

// Rows returns the number of rows; the owner's lock is held.
func (t *Table) Rows() int { return int(t.rows) }

// Seal promises that no more rows will come. The owner's lock is held.
func (t *Table) Seal() { t.sealed.Store(true) }

// Append adds rows, all of them or those that sel lists, under one sequence.
// The caller has checked that they fit the schema and that their times are
// finite in number: an Append cannot fail. It keeps no reference into rows.
func (t *Table) Append(rows *table.Rows, sel []uint32, sequence uint64) {
	if t.sealed.Load() {
		panic("memtable: append to a sealed table")
	}
	n := rows.Len()
	if sel != nil {
		n = len(sel)
	}
	if n == 0 {
		return
	}
	t.resolved = append(t.resolved[:0], make([]uint32, rows.Keys.Len())...)
	for done := 0; done < n; {
		c, off := t.tail()
		m := min(n-done, len(c.times)-off)
		in := input{rows: rows, first: done, n: m}
		if sel != nil {
			in.sel = sel[done : done+m]
		}
		t.appendIdentity(c, off, in, sequence)
		t.grow(c.appendFields(off, in))
		t.rows += uint32(m)
		done += m
	}
	if rows.Op == table.Delete {
		t.deletes += uint64(n)
	}
}

// An input is a stretch of the rows of one Append.
type input struct {
	rows  *table.Rows
	sel   []uint32 // nil: the n rows from first on
	first int
	n     int
}

// at returns the row of in.rows that is number i of the stretch.
func (in *input) at(i int) int {
	if in.sel != nil {
		return int(in.sel[i])
	}
	return in.first + i
}

// tail returns the chunk that the next row goes to, and where.
func (t *Table) tail() (*chunk, int) {
	k, off := locate(t.rows)
	if int(k) == len(t.chunks) {
		c := newChunk(chunkSize(int(k)))
		t.chunks = append(t.chunks, c)
		chunks := t.chunks
		t.published.Store(&chunks)
		t.grow(c.identityBytes())
	}
	return t.chunks[k], int(off)
}

// appendIdentity writes series, chain, time, sequence and operation.
func (t *Table) appendIdentity(c *chunk, off int, in input, sequence uint64) {
	for i := range in.n {
		r := in.at(i)
		key := in.rows.Series[r]
		id := t.resolved[key]
		if id == 0 {
			s, grown := t.series.find(in.rows.Keys.Key(int(key)), in.rows.Keys.Hashes[key])
			t.grow(grown)
			id = s + 1
			t.resolved[key] = id
		}
		s := t.series.at(id - 1)
		at := in.rows.Times[r]
		c.series[off+i], c.prev[off+i] = id-1, t.place(s, at)
		if in.rows.Op != table.Put {
			s.mixed.Store(true)
		}
		c.times[off+i] = at
		c.sequences[off+i] = sequence
		s.last.Store(t.rows + uint32(i) + 1) // after what a chain's reader looks at
		t.times.Min, t.times.Max = min(t.times.Min, at), max(t.times.Max, at)
	}
	if in.rows.Op != table.Put {
		t.grow(c.setOps(off, in.n, in.rows.Op))
	}
}

// lateBit marks, in a row's link to the row before it, that its time was not
// above all before. Where it is clear, every row further down the chain is
// older.
const lateBit = 1 << 31

// place notes that a series gets a row at a time, and returns the row's link.
func (t *Table) place(s *series, at int64) (link uint32) {
	link = s.last.Load()
	switch {
	case link == 0:
		s.min.Store(at)
		s.max.Store(at)
	case at > s.max.Load():
		s.max.Store(at)
	default:
		s.disordered.Store(true)
		if at < s.min.Load() {
			s.min.Store(at)
		} else if !s.mixed.Load() && t.mayHold(link, at) {
			s.mixed.Store(true)
			t.repeats = true
		} else if s.mixed.Load() {
			t.repeats = true
		}
		link |= lateBit
	}
	return link
}

// maxWalk is how many rows of a chain are looked at for a repeat. Rows that
// come a little late meet an older row that was in order long before.
const maxWalk = 64

// mayHold reports whether a row of a chain has a time, or that it could not be
// told in maxWalk steps.
func (t *Table) mayHold(link uint32, at int64) bool {
	for range maxWalk {
		k, off := locate(link&^lateBit - 1)
		c := t.chunks[k]
		link = c.prev[off]
		switch time := c.times[off]; {
		case time == at:
			return true
		case link == 0 || time < at && link&lateBit == 0:
			return false
		}
	}
	return true
}

// Snapshot returns the table as it is now; the owner's lock is held.
func (t *Table) Snapshot() *Snapshot {
	return &Snapshot{
		table: t, chunks: t.chunks, rows: t.rows, series: t.series.count, blocks: t.series.blocks,
		times:  t.times,
		unique: !t.repeats && t.deletes == 0, deletes: t.deletes > 0,
	}
}

// A Snapshot is the rows of a Table at one moment. Any number of goroutines
// may use it, for as long as they like.
type Snapshot struct {
	table  *Table
	chunks []*chunk
	blocks []*seriesBlock
	rows   uint32
	series uint32

	times   table.TimeRange
	unique  bool
	deletes bool
}

// Rows returns the number of rows, all versions of an identity counted.
func (s *Snapshot) Rows() int { return int(s.rows) }

// Series returns the number of series.
func (s *Snapshot) Series() int { return int(s.series) }

// Times returns the range of the rows' times, empty if there are none.
func (s *Snapshot) Times() table.TimeRange { return s.times }

// Unique reports that no identity has two rows and that all rows are puts, so
// that the rows can be read without a merge where nothing else overlaps them.
func (s *Snapshot) Unique() bool { return s.unique }
