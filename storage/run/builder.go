package run

import (
	"bytes"
	"slices"

	"github.com/varvedb/varve/table"
)

// A Builder copies rows of several batches into one. Append copies; Take hands
// out what was copied, and the next Append starts anew.
type Builder struct {
	identity bool
	batch    Batch
	columns  []vectorBuilder
	keyData  []byte
	taken    bool

	later     []piece // rows that wait for Flush
	laterRows int
}

// A piece is rows [from, to) of a batch.
type piece struct {
	src      *Batch
	from, to int
}

// NewBuilder returns a Builder for batches whose columns have the given types.
// With identity it copies keys, times, sequences and operations too.
func NewBuilder(types []table.Type, identity bool) *Builder {
	b := &Builder{identity: identity, columns: make([]vectorBuilder, len(types))}
	for i, t := range types {
		b.columns[i].vec.Type = t
	}
	return b
}

// Types returns the types of the columns that req asks for.
func Types(req *Request) []table.Type {
	types := make([]table.Type, len(req.Columns))
	for i, id := range req.Columns {
		if c := req.Schema.Column(id); c != nil {
			types[i] = c.Type
		}
	}
	return types
}

// Len returns the number of rows appended since the last Take.
func (b *Builder) Len() int {
	if b.taken {
		return 0
	}
	return b.batch.Len + b.laterRows
}

// Append copies rows [from, to) of src.
func (b *Builder) Append(src *Batch, from, to int) {
	b.AppendLater(src, from, to)
	b.Flush()
}

// AppendLater is Append for a batch that stays good until Flush is called. Many
// short pieces are copied faster together, column by column.
func (b *Builder) AppendLater(src *Batch, from, to int) {
	if b.taken {
		b.reset()
	}
	b.laterRows += to - from
	if n := len(b.later); n > 0 && b.later[n-1].src == src && b.later[n-1].to == from {
		b.later[n-1].to = to
		return
	}
	b.later = append(b.later, piece{src, from, to})
}

// Flush copies the rows of AppendLater.
func (b *Builder) Flush() {
	if len(b.later) == 0 {
		return
	}
	for i := range b.columns {
		b.columns[i].append(b.later, i, b.laterRows)
	}
	for _, p := range b.later {
		if b.identity {
			b.appendIdentity(p.src, p.from, p.to)
		}
		b.batch.Len += p.to - p.from
	}
	clear(b.later)
	b.later, b.laterRows = b.later[:0], 0
}

// FillNulls replaces the nulls of the last row appended by the values of row i
// of src, and reports whether nulls are left. Only columns whose flag in mask
// is set take part.
func (b *Builder) FillNulls(src *Batch, i int, mask []bool) (left bool) {
	b.Flush()
	for c := range b.columns {
		if mask[c] && b.columns[c].lastNull() {
			left = !b.columns[c].replaceLast(&src.Columns[c], i) || left
		}
	}
	return left
}

// Take returns the rows appended so far, at least one. The batch is good until
// the next Append.
func (b *Builder) Take() *Batch {
	b.Flush()
	b.batch.Columns = b.batch.Columns[:0]
	for i := range b.columns {
		b.batch.Columns = append(b.batch.Columns, b.columns[i].take())
	}
	b.taken = true
	return &b.batch
}

func (b *Builder) reset() {
	b.taken = false
	old := &b.batch
	b.batch = Batch{
		Columns: old.Columns[:0], Keys: old.Keys[:0], Starts: old.Starts[:0],
		Times: old.Times[:0], Sequences: old.Sequences[:0],
	}
	b.keyData = b.keyData[:0]
	for i := range b.columns {
		b.columns[i].reset()
	}
}

func (b *Builder) appendIdentity(src *Batch, from, to int) {
	out := &b.batch
	for s, row := src.Stretch(from), from; row < to; s++ {
		end := min(src.StretchEnd(s), to)
		key := src.Keys[s]
		if n := len(out.Keys); n == 0 || !bytes.Equal(out.Keys[n-1], key) {
			at := len(b.keyData)
			b.keyData = append(b.keyData, key...)
			out.Keys = append(out.Keys, b.keyData[at:len(b.keyData):len(b.keyData)])
			out.Starts = append(out.Starts, uint32(len(out.Times)))
		}
		out.Times = append(out.Times, src.Times[row:end]...)
		row = end
	}
	for i := from; i < to; i++ {
		out.Sequences = append(out.Sequences, src.SequenceOf(i))
	}
	if src.Ops != nil || out.Ops != nil {
		for len(out.Ops) < out.Len {
			out.Ops = append(out.Ops, table.Put)
		}
		for i := from; i < to; i++ {
			out.Ops = append(out.Ops, src.OpOf(i))
		}
	}
}

// A vectorBuilder collects the values of one column.
//
// Byte strings stay dictionary-coded while every source vector is: the codes
// of each source Dict are mapped, once a value, to those of a Dict that grows
// over the life of the Builder. Batches that were taken keep the part of it
// that they saw. A plain vector turns the batch's column into a plain one.
type vectorBuilder struct {
	vec   table.Vector
	plain bool // Offsets and Data hold the values, not Codes

	// The previous arrays of the merged Dict are never written again below
	// their lengths, so that shared ones stay immutable.
	dict   dictGrower
	shared *table.Dict // as last handed out
	before int         // bytes of dict when the batch was begun
}

func (v *vectorBuilder) reset() {
	old := &v.vec
	v.vec = table.Vector{
		Type: old.Type, Ints: old.Ints[:0], Floats: old.Floats[:0], Bools: old.Bools[:0],
		Codes: old.Codes[:0], Offsets: old.Offsets[:0], Data: old.Data[:0],
	}
	v.plain = false
	if v.dict.bytes() > maxBuilderDict {
		v.dict, v.shared = dictGrower{}, nil
	}
	v.before = v.dict.bytes()
}

// maxBuilderDict bounds the merged Dict; beyond it a new one is begun.
const maxBuilderDict = 1 << 20

// append copies the rows of pieces, rows altogether, of the column that is
// number i of their batches.
func (v *vectorBuilder) append(pieces []piece, i, rows int) {
	out := &v.vec
	v.appendValid(pieces, i)
	switch out.Type.Layout() {
	case table.Ints:
		out.Ints = appendPieces(slices.Grow(out.Ints, rows), pieces, func(b *Batch) []int64 { return b.Columns[i].Ints })
	case table.Floats:
		out.Floats = appendPieces(slices.Grow(out.Floats, rows), pieces, func(b *Batch) []float64 { return b.Columns[i].Floats })
	case table.Bools:
		out.Bools = appendPieces(slices.Grow(out.Bools, rows), pieces, func(b *Batch) []bool { return b.Columns[i].Bools })
	case table.Bytes:
		for _, p := range pieces {
			v.appendBytes(&p.src.Columns[i], p.from, p.to)
		}
	}
	out.Len += rows
}

func (v *vectorBuilder) appendValid(pieces []piece, i int) {
	out := &v.vec
	n := out.Len
	for k, p := range pieces {
		if src := p.src.Columns[i].Valid; src != nil || out.Valid != nil {
			if out.Valid == nil {
				n = out.Len + rowsOf(pieces[:k])
				out.Valid = AppendBits(nil, 0, nil, 0, n)
			}
			out.Valid = AppendBits(out.Valid, n, src, p.from, p.to)
			n += p.to - p.from
		}
	}
}

func rowsOf(pieces []piece) (n int) {
	for _, p := range pieces {
		n += p.to - p.from
	}
	return n
}

func appendPieces[T any](dst []T, pieces []piece, values func(*Batch) []T) []T {
	for _, p := range pieces {
		src := values(p.src)
		if p.to == p.from+1 {
			dst = append(dst, src[p.from])
		} else {
			dst = append(dst, src[p.from:p.to]...)
		}
	}
	return dst
}

func (v *vectorBuilder) appendBytes(src *table.Vector, from, to int) {
	if src.Dict == nil && !v.plain {
		v.toPlain()
	}
	if !v.plain {
		v.vec.Codes = v.dict.appendCodes(v.vec.Codes, src, from, to)
		return
	}
	out := &v.vec
	for i := from; i < to; i++ {
		if !src.IsNull(i) {
			out.Data = append(out.Data, src.Bytes(i)...)
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Data)))
	}
}

func (v *vectorBuilder) toPlain() {
	out := &v.vec
	v.plain = true
	out.Offsets, out.Data = append(out.Offsets[:0], 0), out.Data[:0]
	for i, code := range out.Codes {
		if !out.IsNull(i) {
			out.Data = append(out.Data, v.dict.value(code)...)
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Data)))
	}
}

func (v *vectorBuilder) lastNull() bool { return v.vec.IsNull(v.vec.Len - 1) }

// replaceLast gives the last row, which is null, the value of row i of src. It
// returns false if that is null too.
func (v *vectorBuilder) replaceLast(src *table.Vector, i int) bool {
	if src.IsNull(i) {
		return false
	}
	out := &v.vec
	last := out.Len - 1
	switch out.Type.Layout() {
	case table.Ints:
		out.Ints[last] = src.Ints[i]
	case table.Floats:
		out.Floats[last] = src.Floats[i]
	case table.Bools:
		out.Bools[last] = src.Bools[i]
	case table.Bytes:
		if src.Dict == nil && !v.plain {
			v.toPlain()
		}
		if v.plain {
			out.Data = append(out.Data, src.Bytes(i)...)
			out.Offsets[out.Len] = uint32(len(out.Data))
		} else {
			out.Codes = v.dict.appendCodes(out.Codes[:last], src, i, i+1)
		}
	}
	out.Valid.Set(last)
	return true
}

func (v *vectorBuilder) take() table.Vector {
	out := v.vec
	if out.Type.Layout() != table.Bytes {
		return out
	}
	if v.plain {
		out.Codes = nil
		return out
	}
	out.Offsets, out.Data = nil, nil
	if v.shared == nil || v.shared.Len() != v.dict.len() {
		v.shared = v.dict.snapshot()
	}
	out.Dict = v.shared
	return out
}

// Bytes returns about how much memory the rows appended since the last Take
// occupy in byte-string columns, the only ones that a number of rows does not
// bound. Of the merged Dicts, which live on, it is what came to them since.
func (b *Builder) Bytes() (n int) {
	if b.taken {
		return 0
	}
	for i := range b.columns {
		c := &b.columns[i]
		n += len(c.vec.Data) + c.dict.bytes() - c.before
	}
	return n
}
