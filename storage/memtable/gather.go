package memtable

import (
	"fmt"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A query is a request resolved against a snapshot.
type query struct {
	req           run.Request
	columns       []output
	tagPredicates []table.Predicate
	index         *index
	sel           *run.Selection
	cuts          cuts // of sel; nil: it has no stretches
	allTimes      bool // the snapshot has no row outside the request's times
	byteColumns   bool // some output is a byte string of its own
}

// An output is one requested column.
type output struct {
	kind   outputKind
	typ    table.Type
	tag    *tagValues // kindTag
	perRow []*column  // kindField: by chunk; nil where the chunk has no value
	nulls  bool       // kindField: a row may be null
}

type outputKind uint8

const (
	kindNull outputKind = iota
	kindTag
	kindTime
	kindField
)

// resolve finds what the request names.
func (s *Snapshot) resolve(req run.Request) (*query, error) {
	q := &query{req: req, index: s.index(req.Schema), allTimes: req.Times.Covers(s.times)}
	q.addTagPredicates()
	if q.sel = req.Selection; q.sel != nil {
		q.cuts = newCuts(q.sel, s.series)
	}
	for _, id := range req.Columns {
		out, err := s.output(q, id)
		if err != nil {
			return nil, err
		}
		q.columns = append(q.columns, out)
		q.byteColumns = q.byteColumns || out.kind == kindField && out.typ.Layout() == table.Bytes
	}
	return q, nil
}

func (q *query) addTagPredicates() {
	for _, p := range q.req.Predicates {
		if c := q.req.Schema.Column(p.Column); c != nil && c.Role == table.Tag {
			q.tagPredicates = append(q.tagPredicates, p)
		}
	}
}

func (s *Snapshot) output(q *query, id table.ColumnID) (output, error) {
	c := q.req.Schema.Column(id)
	if c == nil {
		return output{}, fmt.Errorf("memtable: the request's schema has no column %d", id)
	}
	out := output{typ: c.Type}
	switch c.Role {
	case table.Timestamp:
		out.kind = kindTime
	case table.Tag:
		for i := range q.index.tags {
			if q.index.tags[i].id == id {
				out.kind, out.tag = kindTag, &q.index.tags[i]
			}
		}
	default:
		return s.field(out, id)
	}
	return out, nil
}

func (s *Snapshot) field(out output, id table.ColumnID) (output, error) {
	out.perRow = make([]*column, len(s.chunks))
	for k, c := range s.chunks {
		col := c.column(id, 0)
		if col == nil {
			out.nulls = true
			continue
		}
		if col.typ.Layout() != out.typ.Layout() {
			return out, fault.Errorf(fault.Unsupported, "column %d is in memory as %s and cannot be read as %s", id, col.typ, out.typ)
		}
		out.kind, out.perRow[k] = kindField, col
		out.nulls = out.nulls || col.valid.Load() != nil
	}
	return out, nil
}

// A gatherer copies the values of chosen rows into vectors, which it uses
// again for the next batch.
type gatherer struct {
	s       *Snapshot
	q       *query
	vectors []table.Vector // own memory
	views   []table.Vector // memory of chunks

	chunks  []uint32 // of the rows of the batch
	offsets []uint32
	series  []uint32
}

func newGatherer(s *Snapshot, q *query) *gatherer {
	return &gatherer{s: s, q: q, vectors: make([]table.Vector, len(q.columns)), views: make([]table.Vector, len(q.columns))}
}

// gather fills the vectors with the given rows; series are theirs.
func (g *gatherer) gather(rows []uint32) []table.Vector {
	g.chunks, g.offsets, g.series = resize(g.chunks, len(rows)), resize(g.offsets, len(rows)), resize(g.series, len(rows))
	for i, row := range rows {
		k, off := locate(row)
		g.chunks[i], g.offsets[i] = k, off
		g.series[i] = g.s.chunks[k].series[off]
	}
	for i := range g.q.columns {
		g.column(&g.vectors[i], &g.q.columns[i], len(rows))
	}
	return g.vectors
}

func (g *gatherer) column(v *table.Vector, out *output, n int) {
	v.Type, v.Len = out.typ, n
	switch out.kind {
	case kindTime:
		v.Ints = resize(v.Ints, n)
		for i, k := range g.chunks {
			v.Ints[i] = g.s.chunks[k].times[g.offsets[i]]
		}
	case kindTag:
		fillTag(v, out.tag, g.series)
	case kindField:
		g.field(v, out, n)
	default:
		fillNull(v, n)
	}
}

// fillNull makes v n nulls.
func fillNull(v *table.Vector, n int) {
	v.Valid = clearBitmap(v.Valid, n)
	switch v.Type.Layout() {
	case table.Ints:
		v.Ints = resize(v.Ints, n)
	case table.Floats:
		v.Floats = resize(v.Floats, n)
	case table.Bools:
		v.Bools = resize(v.Bools, n)
	default:
		v.Offsets, v.Data = resize(v.Offsets, n+1), v.Data[:0]
		clear(v.Offsets)
	}
}

// fillTag fills v with the tag of each row's series.
func fillTag(v *table.Vector, tag *tagValues, series []uint32) {
	n := len(series)
	v.Valid = nil
	if tag.nulls != nil {
		v.Valid = clearBitmap(v.Valid, n)
		for i, id := range series {
			if !tag.nulls[id] {
				v.Valid.Set(i)
			}
		}
	}
	switch {
	case tag.dict != nil:
		v.Dict = tag.dict
		v.Codes = pick(v.Codes, tag.codes, series)
	case tag.ints != nil:
		v.Ints = pick(v.Ints, tag.ints, series)
	case tag.floats != nil:
		v.Floats = pick(v.Floats, tag.floats, series)
	default:
		v.Bools = pick(v.Bools, tag.bools, series)
	}
}

func pick[T any](dst, src []T, at []uint32) []T {
	dst = resize(dst, len(at))
	for i, k := range at {
		dst[i] = src[k]
	}
	return dst
}

func (g *gatherer) field(v *table.Vector, out *output, n int) {
	v.Valid = g.validity(v.Valid, out, n)
	switch v.Type.Layout() {
	case table.Ints:
		v.Ints = resize(v.Ints, n)
		gatherValues(g, v.Ints, out, func(c *column) []int64 { return c.ints })
	case table.Floats:
		v.Floats = resize(v.Floats, n)
		gatherValues(g, v.Floats, out, func(c *column) []float64 { return c.floats })
	case table.Bools:
		v.Bools = resize(v.Bools, n)
		gatherValues(g, v.Bools, out, func(c *column) []bool { return c.other.bools })
	default:
		g.byteStrings(v, out, n)
	}
}

func (g *gatherer) validity(valid table.Bitmap, out *output, n int) table.Bitmap {
	if !out.nulls {
		return nil
	}
	byChunk := make([]*[]bool, len(out.perRow))
	for k, col := range out.perRow {
		if col != nil {
			byChunk[k] = col.valid.Load()
		}
	}
	valid = clearBitmap(valid, n)
	for i, k := range g.chunks {
		if out.perRow[k] == nil {
			continue
		}
		if p := byChunk[k]; p == nil || (*p)[g.offsets[i]] {
			valid.Set(i)
		}
	}
	return valid
}

func gatherValues[T any](g *gatherer, dst []T, out *output, values func(*column) []T) {
	byChunk := make([][]T, len(out.perRow))
	for k, col := range out.perRow {
		if col != nil {
			byChunk[k] = values(col)
		}
	}
	var zero T
	for i, k := range g.chunks {
		if src := byChunk[k]; src != nil {
			dst[i] = src[g.offsets[i]]
		} else {
			dst[i] = zero
		}
	}
}

func (g *gatherer) byteStrings(v *table.Vector, out *output, n int) {
	arenas := make([][]byte, len(out.perRow))
	for k, col := range out.perRow {
		if col != nil {
			arenas[k] = *col.other.data.Load()
		}
	}
	v.Offsets, v.Data = resize(v.Offsets, n+1), v.Data[:0]
	v.Offsets[0] = 0
	for i, k := range g.chunks {
		if v.Valid.Get(i) {
			off := g.offsets[i]
			o := out.perRow[k].other
			v.Data = append(v.Data, arenas[k][o.offsets[off]:o.offsets[off+1]]...)
		}
		v.Offsets[i+1] = uint32(len(v.Data))
	}
}

// fit returns how many of rows, at least one, bring a batch that has size
// bytes of byte strings to batchBytes, and its size then.
func (g *gatherer) fit(rows []uint32, size int) (n, newSize int) {
	for i, row := range rows {
		k, off := locate(row)
		for c := range g.q.columns {
			out := &g.q.columns[c]
			if out.kind != kindField || out.typ.Layout() != table.Bytes || out.perRow[k] == nil {
				continue
			}
			o := out.perRow[k].other
			size += int(o.offsets[off+1] - o.offsets[off])
		}
		if size >= batchBytes {
			return i + 1, size
		}
	}
	return len(rows), size
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func clearBitmap(b table.Bitmap, n int) table.Bitmap {
	b = resize(b, (n+63)/64)
	clear(b)
	return b
}
