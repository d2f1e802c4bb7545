package memtable

import (
	"bytes"
	"cmp"

	"github.com/varvedb/varve/table"
)

// selectSeries returns the ranks, in key order, of the series that pass the
// key range and the predicates on tags.
func (q *query) selectSeries() []uint32 {
	x := q.index
	lo, hi := x.keyRange(q.req.FirstKey, q.req.EndKey)
	tests := make([]func(uint32) bool, len(q.tagPredicates))
	for i, p := range q.tagPredicates {
		tests[i] = x.test(p)
	}
	ranks := make([]uint32, 0, hi-lo)
next:
	for rank := lo; rank < hi; rank++ {
		if q.cuts != nil && !q.sel.Except && !q.cuts.has(x.order[rank]) {
			continue
		}
		for _, test := range tests {
			if !test(x.order[rank]) {
				continue next
			}
		}
		ranks = append(ranks, uint32(rank))
	}
	return ranks
}

// keyRange returns the part of x.order with keys in [first, end).
func (x *index) keyRange(first, end []byte) (lo, hi int) {
	find := func(key []byte) int {
		lo, hi := 0, len(x.order)
		for lo < hi {
			m := int(uint(lo+hi) >> 1)
			if bytes.Compare(x.key(x.order[m]), key) < 0 {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}
	hi = len(x.order)
	if first != nil {
		lo = find(first)
	}
	if end != nil {
		hi = max(lo, find(end))
	}
	return lo, hi
}

// test returns a function that tells whether a series passes p.
func (x *index) test(p table.Predicate) func(series uint32) bool {
	var tag *tagValues
	for i := range x.tags {
		if x.tags[i].id == p.Column {
			tag = &x.tags[i]
		}
	}
	switch {
	case p.Op == table.IsNull:
		return func(id uint32) bool { return tag == nil || tag.null(id) }
	case p.Op == table.IsNotNull:
		return func(id uint32) bool { return tag != nil && !tag.null(id) }
	case tag == nil:
		return func(uint32) bool { return false }
	}
	switch tag.typ.Layout() {
	case table.Bytes:
		pass := make([]bool, tag.dict.Len())
		for i := range pass {
			pass[i] = holds(p, func(v *table.Value) int { return compareBytes(tag.dict.Value(uint32(i)), v.Bytes) })
		}
		return func(id uint32) bool { return !tag.null(id) && pass[tag.codes[id]] }
	case table.Floats:
		return func(id uint32) bool {
			return !tag.null(id) && holds(p, func(v *table.Value) int { return table.CompareFloats(tag.floats[id], v.Float) })
		}
	case table.Bools:
		return func(id uint32) bool {
			return !tag.null(id) && holds(p, func(v *table.Value) int {
				var b int64
				if tag.bools[id] {
					b = 1
				}
				return cmp.Compare(b, v.Int)
			})
		}
	default:
		return func(id uint32) bool {
			return !tag.null(id) && holds(p, func(v *table.Value) int {
				if tag.typ == table.UInt64 {
					return cmp.Compare(uint64(tag.ints[id]), uint64(v.Int))
				}
				return cmp.Compare(tag.ints[id], v.Int)
			})
		}
	}
}

// holds reports whether a value passes p; compare orders it against a constant.
func holds(p table.Predicate, compare func(*table.Value) int) bool {
	if p.Op == table.In {
		for i := range p.Values {
			if compare(&p.Values[i]) == 0 {
				return true
			}
		}
		return false
	}
	return p.Op.Holds(compare(&p.Values[0]))
}

func compareBytes(a []byte, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}
