package merge

import (
	"bytes"
	"context"
	"sort"

	"github.com/varvedb/varve/storage/run"
)

// A cursor stands at a row of a source.
type cursor struct {
	source   run.Source
	rank     int  // the larger of two with one sequence is newer
	distinct bool // the source has no repeats

	batch   *run.Batch
	row     int
	stretch int // of row
	end     int // of the stretch

	// Cursors with one id, not 0, stand in one series: long keys are compared
	// once a stretch, not once a row.
	id  uint64
	ids *uint64 // the last one given out
}

// sameKey reports whether c and o stand in one series, if that is known.
func (c *cursor) sameKey(o *cursor) bool { return c.id != 0 && c.id == o.id }

// compareKey compares the series at which c and o stand.
func (c *cursor) compareKey(o *cursor) int {
	if c.sameKey(o) {
		return 0
	}
	k := bytes.Compare(c.key(), o.key())
	if k == 0 {
		if c.id == 0 && o.id == 0 {
			*c.ids++
			c.id = *c.ids
		}
		if c.id == 0 {
			c.id = o.id
		}
		o.id = c.id
	}
	return k
}

// load moves to the first row of the source's next batch; false at the end.
func (c *cursor) load(ctx context.Context) (bool, error) {
	b, err := c.source.Next(ctx)
	if err != nil || b == nil {
		return false, err
	}
	c.batch, c.row, c.stretch, c.end, c.id = b, 0, 0, b.StretchEnd(0), 0
	return true, nil
}

func (c *cursor) key() []byte      { return c.batch.Keys[c.stretch] }
func (c *cursor) time() int64      { return c.batch.Times[c.row] }
func (c *cursor) sequence() uint64 { return c.batch.SequenceOf(c.row) }

// seek moves forward to row, which may be the end of the batch.
func (c *cursor) seek(row int) {
	c.row = row
	if row < c.end || row >= c.batch.Len {
		return
	}
	c.id = 0
	if c.stretch++; row >= c.batch.StretchEnd(c.stretch) {
		c.stretch = c.batch.Stretch(row)
	}
	c.end = c.batch.StretchEnd(c.stretch)
}

// less orders cursors by key, time, and then newest first.
func (c *cursor) less(o *cursor) bool {
	if k := c.compareKey(o); k != 0 {
		return k < 0
	}
	if c.time() != o.time() {
		return c.time() < o.time()
	}
	if a, b := c.sequence(), o.sequence(); a != b {
		return a > b
	}
	return c.rank > o.rank
}

// before returns the first row of c's batch, from c.row on, whose identity is
// not smaller than the one at which o stands.
func (c *cursor) before(o *cursor) int {
	b, s, from, end, t := c.batch, c.stretch, c.row, c.end, o.time()
	if !c.sameKey(o) {
		key := o.key()
		s = gallop(s, len(b.Keys), func(i int) bool { return bytes.Compare(b.Keys[i], key) < 0 })
		if s == len(b.Keys) {
			return b.Len
		}
		from, end = max(from, int(b.Starts[s])), b.StretchEnd(s)
		if !bytes.Equal(b.Keys[s], key) {
			return from
		}
	}
	return gallop(from, end, func(i int) bool { return b.Times[i] < t })
}

// gallop returns the first number in [from, to) for which below, true up to
// some point, is false, in steps that double.
func gallop(from, to int, below func(int) bool) int {
	for step := 1; from < to && below(from); step *= 2 {
		if next := from + step; next >= to || !below(next) {
			from++
			to = min(to, next)
			return from + sort.Search(to-from, func(i int) bool { return !below(from + i) })
		}
		from += step
	}
	return from
}

// unrepeated returns where the rows from c.row to end stop being the only
// versions of their identities in this batch. If whole, a row of which an
// older version may come with the next batch is not one of them either.
func (c *cursor) unrepeated(end int, whole bool) int {
	if c.distinct {
		return end
	}
	b := c.batch
	row, stop := c.row, c.end
	for s := c.stretch; ; {
		times := b.Times[row:min(stop, end)]
		for i := 1; i < len(times); i++ {
			if times[i] == times[i-1] {
				return min(end, row+i-1)
			}
		}
		if stop >= end {
			break
		}
		s++
		row, stop = stop, b.StretchEnd(s)
	}
	if whole && end == b.Len {
		return end - 1
	}
	return end
}

// A cursorHeap is a binary heap of cursors, smallest first.
type cursorHeap []*cursor

func (h *cursorHeap) push(c *cursor) {
	a := append(*h, c)
	i := len(a) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !c.less(a[p]) {
			break
		}
		a[i] = a[p]
		i = p
	}
	a[i] = c
	*h = a
}

func (h *cursorHeap) pop() *cursor {
	a := *h
	top, last := a[0], a[len(a)-1]
	a[len(a)-1] = nil
	a = a[:len(a)-1]
	*h = a
	if len(a) == 0 {
		return top
	}
	i := 0
	for {
		k := 2*i + 1
		if k >= len(a) {
			break
		}
		if k+1 < len(a) && a[k+1].less(a[k]) {
			k++
		}
		if !a[k].less(last) {
			break
		}
		a[i] = a[k]
		i = k
	}
	a[i] = last
	return top
}
