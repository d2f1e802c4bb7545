package sst

import (
	"bytes"
	"math"

	"github.com/varvedb/varve/table"
)

// bounds is what is known of the values of some rows of a column.
type bounds struct {
	min, max table.Value // if known
	known    bool        // not so where no value exists, or a NaN, or a long string
	nulls    int
	rows     int
}

// maxBoundBytes is the length above which a string is no bound. Columns of
// such values are not worth pruning, and cut bounds confuse readers.
const maxBoundBytes = 256

// union widens b to the rows of o.
func (b *bounds) union(t table.Type, o *bounds) {
	empty, oEmpty := b.nulls == b.rows, o.nulls == o.rows
	b.nulls, b.rows = b.nulls+o.nulls, b.rows+o.rows
	switch {
	case oEmpty:
		return
	case empty:
		b.min, b.max, b.known = o.min, o.max, o.known
		return
	case !b.known || !o.known:
		b.known = false
		return
	}
	if compareValues(t, &o.min, &b.min) < 0 {
		b.min = o.min
	}
	if compareValues(t, &o.max, &b.max) > 0 {
		b.max = o.max
	}
}

// boundsOf returns the bounds of rows [from, to).
func (c *column) boundsOf(from, to, nulls int, stamps *stamps) bounds {
	b := bounds{nulls: nulls, rows: to - from}
	b.min.Type, b.max.Type = c.typ, c.typ
	if nulls == to-from {
		return b
	}
	valid := c.valid
	if nulls == 0 {
		valid = nil
	}
	switch c.typ.Layout() {
	case table.Ints:
		c.intBounds(&b, from, to, valid)
	case table.Floats:
		c.floatBounds(&b, from, to, valid)
	case table.Bools:
		c.boolBounds(&b, from, to, valid)
	case table.Bytes:
		c.byteBounds(&b, from, to, valid, stamps)
	}
	return b
}

func (c *column) intBounds(b *bounds, from, to int, valid table.Bitmap) {
	flip := int64(0) // turns the order of UInt64 into that of int64
	if c.typ == table.UInt64 {
		flip = -1 << 63
	}
	first := from
	for !valid.Get(first) {
		first++
	}
	lo, hi := c.ints[first]^flip, c.ints[first]^flip
	for i, v := range c.ints[first:to] {
		if valid == nil || valid.Get(first+i) {
			lo, hi = min(lo, v^flip), max(hi, v^flip)
		}
	}
	b.min.Int, b.max.Int, b.known = lo^flip, hi^flip, true
}

func (c *column) floatBounds(b *bounds, from, to int, valid table.Bitmap) {
	first := from
	for !valid.Get(first) {
		first++
	}
	lo, hi := c.floats[first], c.floats[first]
	for i, v := range c.floats[first:to] {
		if valid != nil && !valid.Get(first+i) {
			continue
		}
		if v != v {
			return
		}
		if v < lo {
			lo = v
		}
		if v > hi {
			hi = v
		}
	}
	if lo != lo {
		return
	}
	if lo == 0 {
		lo = math.Copysign(0, -1) // Parquet: a bound of zero covers both zeros
	}
	if hi == 0 {
		hi = 0
	}
	b.min.Float, b.max.Float, b.known = lo, hi, true
}

func (c *column) boolBounds(b *bounds, from, to int, valid table.Bitmap) {
	var seen [2]bool
	for i := from; i < to; i++ {
		if valid.Get(i) {
			if c.bools[i] {
				seen[1] = true
			} else {
				seen[0] = true
			}
		}
	}
	if !seen[0] {
		b.min.Int = 1
	}
	if seen[1] {
		b.max.Int = 1
	}
	b.known = true
}

func (c *column) byteBounds(b *bounds, from, to int, valid table.Bitmap, stamps *stamps) {
	var lo, hi []byte
	look := func(v []byte) {
		if lo == nil || bytes.Compare(v, lo) < 0 {
			lo = v
		}
		if hi == nil || bytes.Compare(v, hi) > 0 {
			hi = v
		}
	}
	if c.dict != nil {
		stamps.next(c.dict.len())
		last := uint32(1<<32 - 1)
		for i := from; i < to; i++ {
			if code := c.codes[i]; code != last && valid.Get(i) {
				last = code
				if stamps.first(code) {
					look(c.dict.value(code))
				}
			}
		}
	} else {
		for i := from; i < to; i++ {
			if valid.Get(i) {
				look(c.data[c.offsets[i]:c.offsets[i+1]:c.offsets[i+1]])
			}
		}
	}
	if len(lo) > maxBoundBytes || len(hi) > maxBoundBytes {
		return
	}
	b.min.Bytes, b.max.Bytes, b.known = string(lo), string(hi), true
}

// stamps finds the first use of each code in a page without being cleared.
type stamps struct {
	seen []uint32
	page uint32
}

func (s *stamps) next(n int) {
	s.page++
	if len(s.seen) < n {
		s.seen = append(s.seen, make([]uint32, n-len(s.seen))...)
	}
}

func (s *stamps) first(code uint32) bool {
	if s.seen[code] == s.page {
		return false
	}
	s.seen[code] = s.page
	return true
}
