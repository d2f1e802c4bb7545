package memtable

import (
	"bytes"
	"slices"

	"github.com/varvedb/varve/table"
)

// An index is what scans need of the series: their order and the values of
// their tags. It is immutable, and made by readers: the writer never takes a
// key apart.
type index struct {
	series uint32         // the series it covers are those below this
	blocks []*seriesBlock // that hold them
	order  []uint32       // series in key order
	tags   []tagValues
}

func (x *index) key(id uint32) []byte {
	k, off := locate(id)
	return (*x.blocks[k])[off].key
}

// tagValues are the values of one tag, by series.
type tagValues struct {
	id    table.ColumnID
	typ   table.Type
	nulls []bool // nil: none is null

	codes  []uint32 // into dict; 0 for null
	dict   *table.Dict
	ints   []int64
	floats []float64
	bools  []bool
}

func (v *tagValues) null(series uint32) bool { return v.nulls != nil && v.nulls[series] }

// A tagBuilder extends one tag's values by those of new series. What it
// published before stays as it was: it only ever appends.
type tagBuilder struct {
	tagValues
	entries map[string]uint32
	offsets []uint32
	data    []byte
}

// index returns an index of at least the snapshot's series, with the tags of
// schema.
func (s *Snapshot) index(schema *table.Schema) *index {
	t := s.table
	t.read.Lock()
	defer t.read.Unlock()
	old := t.read.index
	if old != nil && old.series >= s.series && len(old.tags) >= len(schema.Key) {
		return old
	}
	next := &index{series: s.series, blocks: s.blocks}
	from, sorted := uint32(0), uint32(0)
	if old != nil {
		if old.series > s.series { // made by a younger snapshot, for fewer tags
			next.series, next.blocks = old.series, old.blocks
		}
		next.order, sorted = old.order, old.series
	}
	if old != nil && len(old.tags) >= len(schema.Key) {
		from = old.series
	} else {
		t.read.tags = newTagBuilders(schema)
	}
	grown := next.extendTags(t.read.tags, from)
	for i := range t.read.tags {
		next.tags = append(next.tags, t.read.tags[i].publish())
	}
	next.extendOrder(sorted)
	t.grow(grown + int64(next.series-sorted)*4)
	t.read.index = next
	return next
}

func newTagBuilders(schema *table.Schema) []tagBuilder {
	builders := make([]tagBuilder, len(schema.Key))
	for i, c := range schema.Tags() {
		builders[i].id, builders[i].typ = c.ID, c.Type
		if c.Type.Layout() == table.Bytes {
			builders[i].entries = make(map[string]uint32)
			builders[i].offsets = []uint32{0}
		}
	}
	return builders
}

// extendTags takes the keys of the series from from on apart.
func (x *index) extendTags(builders []tagBuilder, from uint32) (grown int64) {
	var r table.KeyReader
	for id := from; id < x.series; id++ {
		r.Reset(x.key(id))
		for i := range builders {
			grown += builders[i].add(&r, id)
		}
		if r.Err() != nil {
			panic("memtable: series key: " + r.Err().Error()) // keys are checked before they are logged
		}
	}
	return grown
}

func (b *tagBuilder) add(r *table.KeyReader, id uint32) (grown int64) {
	var ok bool
	switch b.typ.Layout() {
	case table.Ints:
		var v int64
		v, ok = r.Int(b.typ)
		b.ints, grown = append(b.ints, v), 8
		if !ok {
			b.ints[id] = 0
		}
	case table.Floats:
		var v float64
		v, ok = r.Float()
		b.floats, grown = append(b.floats, v), 8
		if !ok {
			b.floats[id] = 0
		}
	case table.Bools:
		var v int64
		v, ok = r.Int(b.typ)
		b.bools, grown = append(b.bools, ok && v != 0), 1
	default:
		var v []byte
		v, ok = r.Bytes()
		var code uint32
		code, grown = b.code(v)
		b.codes = append(b.codes, code)
	}
	if !ok && b.nulls == nil {
		b.nulls = make([]bool, id, id+1)
	}
	if b.nulls != nil {
		b.nulls = append(b.nulls, !ok)
		grown++
	}
	return grown
}

func (b *tagBuilder) code(v []byte) (code uint32, grown int64) {
	if code, ok := b.entries[string(v)]; ok {
		return code, 4
	}
	code = uint32(len(b.offsets) - 1)
	b.entries[string(v)] = code
	b.data = append(b.data, v...)
	b.offsets = append(b.offsets, uint32(len(b.data)))
	return code, 64 + 2*int64(len(v))
}

func (b *tagBuilder) publish() tagValues {
	v := b.tagValues
	if b.entries == nil {
		return v
	}
	if d := b.dict; d != nil && len(d.Offsets) == len(b.offsets) {
		return v // nothing new: scans go on sharing one Dict
	}
	v.dict = &table.Dict{Offsets: b.offsets[:len(b.offsets):len(b.offsets)], Data: b.data[:len(b.data):len(b.data)]}
	b.dict = v.dict
	return v
}

// extendOrder merges the series from from on into the order.
func (x *index) extendOrder(from uint32) {
	if from >= x.series {
		return
	}
	order, added := x.order, make([]uint32, 0, x.series-from)
	for id := from; id < x.series; id++ {
		added = append(added, id)
	}
	slices.SortFunc(added, func(a, b uint32) int { return bytes.Compare(x.key(a), x.key(b)) })
	merged := make([]uint32, 0, x.series)
	for len(order) > 0 && len(added) > 0 {
		if bytes.Compare(x.key(order[0]), x.key(added[0])) < 0 {
			merged, order = append(merged, order[0]), order[1:]
		} else {
			merged, added = append(merged, added[0]), added[1:]
		}
	}
	x.order = append(append(merged, order...), added...)
}
