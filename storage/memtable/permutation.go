package memtable

import (
	"cmp"
	"slices"
)

// A permutation lists the rows of a snapshot by series, in the index's order,
// and by time within. It is immutable.
type permutation struct {
	index  *index
	count  uint32   // of rows
	rows   []uint32 // row numbers
	starts []uint32 // rank of a series → where its rows start; one more than series
}

// permutation returns the rows of s in order, which it keeps until there are
// more rows.
func (s *Snapshot) permutation(x *index) *permutation {
	t := s.table
	t.read.Lock()
	defer t.read.Unlock()
	if p := t.read.perm; p != nil && p.count == s.rows && p.index == x {
		return p
	}
	p := s.sortRows(x)
	grown := cap(p.rows) + cap(p.starts)
	if old := t.read.perm; old != nil {
		grown -= cap(old.rows) + cap(old.starts)
	}
	t.grow(int64(grown) * 4)
	t.read.perm = p
	return p
}

// cachedPermutation returns the permutation if it is there.
func (s *Snapshot) cachedPermutation(x *index) *permutation {
	s.table.read.Lock()
	defer s.table.read.Unlock()
	if p := s.table.read.perm; p != nil && p.count == s.rows && p.index == x {
		return p
	}
	return nil
}

// sortRows counts the rows of each series, places them in arrival order, and
// sorts those series whose times did not only grow.
func (s *Snapshot) sortRows(x *index) *permutation {
	p := &permutation{index: x, count: s.rows, rows: make([]uint32, s.rows), starts: make([]uint32, len(x.order)+1)}
	rank := make([]uint32, len(x.order))
	for r, id := range x.order {
		rank[id] = uint32(r)
	}
	s.eachChunk(func(_ uint32, c *chunk, n int) {
		for _, id := range c.series[:n] {
			p.starts[rank[id]+1]++
		}
	})
	for r := range x.order {
		p.starts[r+1] += p.starts[r]
	}
	next := slices.Clone(p.starts[:len(x.order)])
	s.eachChunk(func(first uint32, c *chunk, n int) {
		for i, id := range c.series[:n] {
			r := rank[id]
			p.rows[next[r]] = first + uint32(i)
			next[r]++
		}
	})
	for r, id := range x.order {
		if rows := p.rows[p.starts[r]:p.starts[r+1]]; len(rows) > 1 && s.series > id && s.at(id).disordered.Load() {
			s.sortSeries(rows)
		}
	}
	return p
}

// eachChunk calls f with each chunk, the number of its first row, and how many
// of its rows belong to the snapshot.
func (s *Snapshot) eachChunk(f func(first uint32, c *chunk, n int)) {
	first := uint32(0)
	for _, c := range s.chunks {
		n := min(uint32(len(c.times)), s.rows-first)
		if n == 0 {
			return
		}
		f(first, c, int(n))
		first += n
	}
}

// chain appends the rows of one series in order.
func (s *Snapshot) chain(rows []uint32, id uint32) []uint32 {
	if id >= s.series {
		return rows
	}
	from := len(rows)
	entry := s.at(id)
	disordered := entry.disordered.Load()
	for last := entry.last.Load(); last != 0; {
		row := last - 1
		k, off := locate(row)
		if row < s.rows {
			rows = append(rows, row)
			last = s.chunks[k].prev[off] &^ lateBit
			continue
		}
		last = (*s.table.published.Load())[k].prev[off] &^ lateBit
	}
	slices.Reverse(rows[from:])
	if disordered {
		s.sortSeries(rows[from:])
	}
	return rows
}

// sortSeries sorts rows of one series by time, the newest write first.
func (s *Snapshot) sortSeries(rows []uint32) {
	type entry struct {
		time     int64
		sequence uint64
		row      uint32
	}
	entries := make([]entry, len(rows))
	for i, row := range rows {
		k, off := locate(row)
		c := s.chunks[k]
		entries[i] = entry{c.times[off], c.sequences[off], row}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.time != b.time {
			return cmp.Compare(a.time, b.time)
		}
		if a.sequence != b.sequence {
			return cmp.Compare(b.sequence, a.sequence)
		}
		return cmp.Compare(b.row, a.row)
	})
	for i := range entries {
		rows[i] = entries[i].row
	}
}
