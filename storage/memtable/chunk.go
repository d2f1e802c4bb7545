package memtable

import (
	"math/bits"
	"sync/atomic"

	"github.com/varvedb/varve/table"
)

// Chunks, and blocks of series, grow from 8 entries by doubling to 8192, so
// that a table of a few rows takes little and a large one long runs.
const (
	firstShift = 3
	lastShift  = 13
	chunkRows  = 1 << lastShift
)

// locate returns the chunk of entry i and its place there.
func locate(i uint32) (chunk, offset uint32) {
	i += 1 << firstShift
	if i < 1<<(lastShift+1) {
		k := uint32(bits.Len32(i) - 1)
		return k - firstShift, i - 1<<k
	}
	i -= 1 << (lastShift + 1)
	return lastShift - firstShift + 1 + i>>lastShift, i & (chunkRows - 1)
}

// chunkSize returns the number of entries of chunk k.
func chunkSize(k int) int { return 1 << min(firstShift+k, lastShift) }

// A chunk is a run of rows in arrival order.
type chunk struct {
	series    []uint32
	prev      []uint32 // the previous row of the same series + 1, and lateBit; 0: none
	times     []int64
	sequences []uint64
	ops       atomic.Pointer[[]table.Op] // nil: all are puts
	columns   atomic.Pointer[[]*column]  // in order of their first value
}

func newChunk(n int) *chunk {
	c := &chunk{
		series: make([]uint32, n), prev: make([]uint32, n),
		times: make([]int64, n), sequences: make([]uint64, n),
	}
	c.columns.Store(new([]*column))
	return c
}

func (c *chunk) identityBytes() int64 { return int64(len(c.times))*24 + 128 }

func (c *chunk) setOps(off, n int, op table.Op) (grown int64) {
	ops := c.ops.Load()
	if ops == nil {
		s := make([]table.Op, len(c.times))
		ops, grown = &s, int64(len(s))
		c.ops.Store(ops)
	}
	for i := range n {
		(*ops)[off+i] = op
	}
	return grown
}

// A column is one field of a chunk's rows.
type column struct {
	id    table.ColumnID
	typ   table.Type
	valid atomic.Pointer[[]bool] // nil: no nulls so far; a byte a row, because bits of one word would be shared by writer and readers

	ints   []int64
	floats []float64
	other  *otherValues
}

type otherValues struct {
	bools   []bool
	offsets []uint32
	data    atomic.Pointer[[]byte] // replaced when it grows; rows lie at the same offsets in every version
}

// column returns the column with the given id, or nil. Hint is where it may be.
func (c *chunk) column(id table.ColumnID, hint int) *column {
	columns := *c.columns.Load()
	if hint < len(columns) && columns[hint].id == id {
		return columns[hint]
	}
	for _, col := range columns {
		if col.id == id {
			return col
		}
	}
	return nil
}

// appendFields writes the fields of the stretch from row off on and returns
// the bytes allocated.
func (c *chunk) appendFields(off int, in input) (grown int64) {
	for f := range in.rows.Fields {
		v := &in.rows.Fields[f]
		col := c.column(v.ID, f)
		if col == nil {
			if allNull(&v.Vector, in) {
				continue
			}
			col = newColumn(v.ID, v.Type, len(c.times))
			grown += col.fixedBytes(len(c.times))
			if off > 0 {
				grown += col.ensureValid(0, len(c.times))
			}
			next := append(*c.columns.Load(), col)
			grown += col.write(off, &v.Vector, in)
			c.columns.Store(&next)
			continue
		}
		grown += col.write(off, &v.Vector, in)
	}
	if columns := *c.columns.Load(); len(columns) != len(in.rows.Fields) || !sameIDs(columns, in.rows.Fields) {
		for _, col := range columns {
			if !hasField(in.rows.Fields, col.id) {
				grown += col.skip(off, in.n, len(c.times))
			}
		}
	}
	return grown
}

func sameIDs(columns []*column, fields []table.FieldVector) bool {
	for i, c := range columns {
		if fields[i].ID != c.id {
			return false
		}
	}
	return true
}

func hasField(fields []table.FieldVector, id table.ColumnID) bool {
	for i := range fields {
		if fields[i].ID == id {
			return true
		}
	}
	return false
}

func allNull(v *table.Vector, in input) bool {
	if v.Valid == nil {
		return false
	}
	for i := range in.n {
		if v.Valid.Get(in.at(i)) {
			return false
		}
	}
	return true
}

func newColumn(id table.ColumnID, typ table.Type, n int) *column {
	c := &column{id: id, typ: typ}
	switch typ.Layout() {
	case table.Ints:
		c.ints = make([]int64, n)
	case table.Floats:
		c.floats = make([]float64, n)
	case table.Bools:
		c.other = &otherValues{bools: make([]bool, n)}
	case table.Bytes:
		c.other = &otherValues{offsets: make([]uint32, n+1)}
		c.other.data.Store(new([]byte))
	default:
		panic("memtable: column of type " + typ.String())
	}
	return c
}

func (c *column) fixedBytes(n int) int64 {
	switch c.typ.Layout() {
	case table.Bools:
		return int64(n) + 160
	case table.Bytes:
		return int64(n)*4 + 160
	default:
		return int64(n)*8 + 88
	}
}

// ensureValid allocates the validity, with the rows before off valid.
func (c *column) ensureValid(off, n int) int64 {
	if c.valid.Load() != nil {
		return 0
	}
	valid := make([]bool, n)
	for i := range off {
		valid[i] = true
	}
	c.valid.Store(&valid)
	return int64(n)
}

// skip makes n rows from off on null.
func (c *column) skip(off, n, size int) int64 {
	grown := c.ensureValid(off, size)
	if c.other != nil && c.other.offsets != nil {
		end := c.other.offsets[off]
		for i := range n {
			c.other.offsets[off+i+1] = end
		}
	}
	return grown
}

// write copies the stretch of v to the rows from off on.
func (c *column) write(off int, v *table.Vector, in input) (grown int64) {
	switch {
	case c.ints != nil:
		copyValues(c.ints[off:], v.Ints, in)
	case c.floats != nil:
		copyValues(c.floats[off:], v.Floats, in)
	case c.other.bools != nil:
		copyValues(c.other.bools[off:], v.Bools, in)
	default:
		grown += c.other.write(off, v, in)
	}
	return grown + c.writeValid(off, v, in)
}

func (c *column) writeValid(off int, v *table.Vector, in input) (grown int64) {
	valid := c.valid.Load()
	if valid == nil {
		if v.Valid == nil || !anyNull(v, in) {
			return 0
		}
		grown = c.ensureValid(off, c.size())
		valid = c.valid.Load()
	}
	for i := range in.n {
		(*valid)[off+i] = v.Valid.Get(in.at(i))
	}
	return grown
}

func anyNull(v *table.Vector, in input) bool {
	for i := range in.n {
		if !v.Valid.Get(in.at(i)) {
			return true
		}
	}
	return false
}

func (c *column) size() int {
	switch {
	case c.ints != nil:
		return len(c.ints)
	case c.floats != nil:
		return len(c.floats)
	case c.other.bools != nil:
		return len(c.other.bools)
	default:
		return len(c.other.offsets) - 1
	}
}

func copyValues[T any](dst, src []T, in input) {
	if in.sel == nil {
		copy(dst, src[in.first:in.first+in.n])
		return
	}
	for i, r := range in.sel {
		dst[i] = src[r]
	}
}

// write appends byte strings to the arena. Readers of earlier rows keep the
// arena they have; a larger one begins with the same bytes.
func (o *otherValues) write(off int, v *table.Vector, in input) (grown int64) {
	data := *o.data.Load()
	before := cap(data)
	for i := range in.n {
		if r := in.at(i); !v.IsNull(r) {
			data = append(data, v.Bytes(r)...)
		}
		o.offsets[off+i+1] = uint32(len(data))
	}
	o.data.Store(&data)
	return int64(cap(data) - before)
}
