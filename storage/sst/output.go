package sst

import (
	"sync"

	"github.com/varvedb/varve/table"
)

// An output is one requested column.
type output struct {
	column int // in the file; -1: all null, or from the series index
	typ    table.Type
	page   int // where the last row was

	tag    int           // number in the series index + 1; 0: not from there
	buffer *table.Vector // where values are expanded
}

// seek moves to the page with the given row, which is not before the last one
// asked for, and returns where that page ends.
func (o *output) seek(g *groupReader, row int) int {
	pages := g.columns[o.column].info.pages
	for pages[o.page].end <= row {
		o.page++
	}
	return pages[o.page].end
}

// vector returns rows [from, to), which lie in the page that was sought.
func (o *output) vector(g *groupReader, from, to int) (table.Vector, error) {
	if o.column < 0 {
		return nullVector(o.typ, to-from), nil
	}
	pg, err := g.page(o.column, o.page)
	if err != nil {
		return table.Vector{}, err
	}
	base := g.columns[o.column].info.pages[o.page].first
	return pg.rows(o.memory(), from-base, to-base), nil
}

// buffers are where columns are expanded. Scans of one row group after the
// other use the same ones, which so stay in the processor's cache.
var buffers = sync.Pool{New: func() any { return new(table.Vector) }}

func (o *output) memory() *table.Vector {
	if o.buffer == nil {
		o.buffer = buffers.Get().(*table.Vector)
	}
	return o.buffer
}

// release gives the buffers back once nobody looks at the last batch. A scan
// that is closed early does not do so, since Close may come at any time.
func (s *scan) release() {
	all := []*output{&s.ident.time, &s.ident.sequence, &s.ident.op}
	for i := range s.columns {
		all = append(all, &s.columns[i])
	}
	for i := range s.ident.tags {
		all = append(all, &s.ident.tags[i])
	}
	for _, o := range all {
		if o.buffer != nil {
			buffers.Put(o.buffer)
			o.buffer = nil
		}
	}
}

// nullDict is the Dict of columns that are all null.
var nullDict = &table.Dict{Offsets: []uint32{0, 0}}

// nullVector returns n nulls.
func nullVector(t table.Type, n int) table.Vector {
	v := table.Vector{Type: t, Len: n, Valid: table.NewBitmap(n)}
	switch t.Layout() {
	case table.Ints:
		v.Ints = make([]int64, n)
	case table.Floats:
		v.Floats = make([]float64, n)
	case table.Bools:
		v.Bools = make([]bool, n)
	case table.Bytes:
		v.Codes, v.Dict = make([]uint32, n), nullDict
	}
	return v
}
