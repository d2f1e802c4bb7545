package sst

import (
	"bytes"
	"hash/maphash"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A column collects the values of one column of a row group.
type column struct {
	id       table.ColumnID
	name     string
	typ      table.Type
	required bool // never null
	tag      bool
	isTime   bool
	dictMax  int

	rows  int
	nulls int
	valid table.Bitmap // nil: no nulls yet

	ints   []int64
	floats []float64
	bools  []bool

	// Byte strings are dictionary-coded until that does not pay.
	dict     *dictBuilder
	codes    []uint32
	expanded int64 // bytes of the strings that codes stand for
	offsets  []uint32
	data     []byte
}

func (c *column) reset() {
	c.rows, c.nulls, c.valid = 0, 0, c.valid[:0]
	if len(c.valid) == 0 {
		c.valid = nil
	}
	c.ints, c.floats, c.bools = c.ints[:0], c.floats[:0], c.bools[:0]
	c.codes, c.expanded, c.offsets, c.data = c.codes[:0], 0, c.offsets[:0], c.data[:0]
	if c.typ.Layout() == table.Bytes {
		if c.dict == nil {
			c.dict = new(dictBuilder)
		}
		c.dict.reset()
	}
}

// bytes returns the memory that the values occupy.
func (c *column) bytes() int64 {
	n := 8*len(c.ints) + 8*len(c.floats) + len(c.bools) + 4*len(c.codes) + 4*len(c.offsets) + len(c.data)
	if c.dict != nil {
		n += len(c.dict.data)
	}
	return int64(n)
}

func (c *column) appendValid(src table.Bitmap, from, to int) {
	n := to - from
	if src != nil || c.valid != nil {
		if c.valid == nil {
			c.valid = run.AppendBits(nil, 0, nil, 0, c.rows)
		}
		c.valid = run.AppendBits(c.valid, c.rows, src, from, to)
		for i := from; i < to; i++ {
			if !src.Get(i) {
				c.nulls++
			}
		}
	}
	c.rows += n
}

// append adds rows [from, to) of v.
func (c *column) append(v *table.Vector, from, to int) {
	switch c.typ.Layout() {
	case table.Ints:
		c.ints = append(c.ints, v.Ints[from:to]...)
	case table.Floats:
		c.floats = append(c.floats, v.Floats[from:to]...)
	case table.Bools:
		c.bools = append(c.bools, v.Bools[from:to]...)
	case table.Bytes:
		c.appendBytes(v, from, to)
	}
	c.appendValid(v.Valid, from, to)
}

func (c *column) appendBytes(v *table.Vector, from, to int) {
	for i := from; i < to && c.dict != nil; i++ {
		switch {
		case v.IsNull(i):
			c.codes = append(c.codes, 0)
		case v.Dict != nil:
			c.addCode(c.dict.translate(v.Dict, v.Codes[i]))
		default:
			c.addCode(c.dict.code(v.Bytes(i)))
		}
		if len(c.dict.data) > c.dictMax && c.overflows() {
			c.toPlain(v.Valid, from)
			from = i + 1
		}
	}
	if c.dict != nil {
		return
	}
	for i := from; i < to; i++ {
		if !v.IsNull(i) {
			c.data = append(c.data, v.Bytes(i)...)
		}
		c.offsets = append(c.offsets, uint32(len(c.data)))
	}
}

func (c *column) addCode(code uint32) {
	c.codes = append(c.codes, code)
	c.expanded += int64(c.dict.offsets[code+1] - c.dict.offsets[code])
}

// overflows reports whether the dictionary is to be given up. One whose values
// come back four times and more stays: written out they would be larger than
// the row group may be.
func (c *column) overflows() bool { return c.expanded < 4*int64(len(c.dict.data)) }

// toPlain writes the codes out. Rows from c.rows on have the validity of src
// from row from on.
func (c *column) toPlain(src table.Bitmap, from int) {
	c.offsets, c.data = append(c.offsets[:0], 0), c.data[:0]
	for i, code := range c.codes {
		null := i < c.rows && !c.valid.Get(i) || i >= c.rows && !src.Get(from+i-c.rows)
		if !null {
			c.data = append(c.data, c.dict.value(code)...)
		}
		c.offsets = append(c.offsets, uint32(len(c.data)))
	}
	c.dict, c.codes = nil, c.codes[:0]
}

// appendRepeat adds one tag value n times; a null has v.ok false.
func (c *column) appendRepeat(v *tagValue, n int) {
	switch c.typ.Layout() {
	case table.Ints:
		c.ints = appendN(c.ints, v.int, n)
	case table.Floats:
		c.floats = appendN(c.floats, v.float, n)
	case table.Bools:
		c.bools = appendN(c.bools, v.int != 0, n)
	case table.Bytes:
		c.repeatBytes(v, n)
	}
	if v.ok && c.valid == nil {
		c.rows += n
		return
	}
	word := table.Bitmap(nil)
	if !v.ok {
		word = table.NewBitmap(n)
	}
	c.appendValid(word, 0, n)
}

func (c *column) repeatBytes(v *tagValue, n int) {
	if c.dict != nil && !v.ok {
		c.codes = appendN(c.codes, 0, n)
		return
	}
	if c.dict != nil {
		code := c.dict.code(v.bytes)
		c.codes = appendN(c.codes, code, n)
		c.expanded += int64(n) * int64(len(v.bytes))
		if len(c.dict.data) > c.dictMax && c.overflows() {
			c.toPlain(nil, 0)
		}
		return
	}
	for range n {
		c.data = append(c.data, v.bytes...) // empty if null
		c.offsets = append(c.offsets, uint32(len(c.data)))
	}
}

func appendN[T any](s []T, v T, n int) []T {
	for range n {
		s = append(s, v)
	}
	return s
}

// finish settles how byte strings are stored once all rows are there.
func (c *column) finish() {
	if c.dict != nil && c.dict.len() > (c.rows-c.nulls)/2 && c.rows > 1 && c.overflows() {
		c.toPlain(nil, 0)
	}
}

// A tagValue is one tag of the current series.
type tagValue struct {
	ok    bool
	int   int64
	float float64
	bytes []byte
}

// read takes the next tag from a series key.
func (v *tagValue) read(r *table.KeyReader, t table.Type) {
	*v = tagValue{bytes: v.bytes[:0]}
	switch t.Layout() {
	case table.Bytes:
		var b []byte
		b, v.ok = r.Bytes()
		v.bytes = append(v.bytes, b...)
	case table.Floats:
		v.float, v.ok = r.Float()
	default:
		v.int, v.ok = r.Int(t)
	}
	if !v.ok {
		v.int, v.float = 0, 0
	}
}

var dictSeed = maphash.MakeSeed()

// A dictBuilder numbers distinct byte strings in the order of their first use.
type dictBuilder struct {
	offsets []uint32
	data    []byte
	hashes  []uint64
	slots   []uint32 // code+1 by hash, open addressing
	recent  uint32   // the code returned last

	// The codes of source Dicts' entries, plus one; 0: not met yet.
	remaps map[*table.Dict][]uint32
	from   *table.Dict
	remap  []uint32
}

func (d *dictBuilder) reset() {
	d.offsets, d.data, d.hashes = append(d.offsets[:0], 0), d.data[:0], d.hashes[:0]
	clear(d.slots)
	clear(d.remaps)
	d.recent, d.from, d.remap = 0, nil, nil
}

func (d *dictBuilder) len() int { return len(d.hashes) }

func (d *dictBuilder) value(code uint32) []byte { return d.data[d.offsets[code]:d.offsets[code+1]] }

// translate returns the code of entry c of another Dict.
func (d *dictBuilder) translate(dict *table.Dict, c uint32) uint32 {
	if d.from != dict {
		if d.remaps == nil {
			d.remaps = make(map[*table.Dict][]uint32)
		}
		if d.remaps[dict] == nil {
			d.remaps[dict] = make([]uint32, dict.Len())
		}
		d.from, d.remap = dict, d.remaps[dict]
	}
	if d.remap[c] == 0 {
		d.remap[c] = d.code(dict.Value(c)) + 1
	}
	return d.remap[c] - 1
}

// code returns the number of value, a new one if it is new.
func (d *dictBuilder) code(value []byte) uint32 {
	if int(d.recent) < len(d.hashes) && bytes.Equal(d.value(d.recent), value) {
		return d.recent
	}
	if 2*len(d.hashes) >= len(d.slots) {
		d.grow()
	}
	h, mask := maphash.Bytes(dictSeed, value), uint64(len(d.slots)-1)
	i := h & mask
	for ; d.slots[i] != 0; i = (i + 1) & mask {
		if c := d.slots[i] - 1; d.hashes[c] == h && bytes.Equal(d.value(c), value) {
			d.recent = c
			return c
		}
	}
	d.recent = uint32(len(d.hashes))
	d.slots[i] = d.recent + 1
	d.hashes = append(d.hashes, h)
	d.data = append(d.data, value...)
	d.offsets = append(d.offsets, uint32(len(d.data)))
	return d.recent
}

func (d *dictBuilder) grow() {
	d.slots = make([]uint32, max(256, 2*len(d.slots)))
	mask := uint64(len(d.slots) - 1)
	for c, h := range d.hashes {
		i := h & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = uint32(c) + 1
	}
}
