package lineprotocol

import (
	"github.com/varvedb/varve/table"
)

// A column collects the values that a request has for one column of a table.
// Rows without a value are filled in with nulls when the next value, or the
// end, comes.
type column struct {
	name   string
	id     table.ColumnID // 0: the column does not exist yet
	typ    table.Type
	role   table.Role
	keyPos int    // of a tag: its place in the key
	line   uint64 // the line that used it last, by Decoder.lines

	active bool // it is in tableRows.active
	n      int  // rows that have a value or are known to be null
	vec    table.Vector
}

// next makes row the row that is appended next.
func (c *column) next(row int) {
	if c.n > row {
		c.truncate(row) // the key twice in one line: the last one wins
		return
	}
	if c.vec.Valid == nil {
		c.vec.Valid = ones(c.vec.Valid, c.n)
	}
	for missing := row - c.n; missing > 0; missing-- {
		switch c.typ.Layout() {
		case table.Floats:
			c.vec.Floats = append(c.vec.Floats, 0)
		case table.Bools:
			c.vec.Bools = append(c.vec.Bools, false)
		case table.Bytes:
			c.vec.Offsets = append(c.vec.Offsets, uint32(len(c.vec.Data)))
		default:
			c.vec.Ints = append(c.vec.Ints, 0)
		}
	}
	c.n = row
	c.vec.Valid = grow(c.vec.Valid, row)
}

// added ends an append.
func (c *column) added() {
	if c.vec.Valid != nil {
		c.vec.Valid = grow(c.vec.Valid, c.n+1)
		c.vec.Valid.Set(c.n)
	}
	c.n++
}

// truncate forgets the rows from row on.
func (c *column) truncate(row int) {
	if c.n <= row {
		return
	}
	switch c.typ.Layout() {
	case table.Floats:
		c.vec.Floats = c.vec.Floats[:row]
	case table.Bools:
		c.vec.Bools = c.vec.Bools[:row]
	case table.Bytes:
		c.vec.Data = c.vec.Data[:c.vec.Offsets[row]]
		c.vec.Offsets = c.vec.Offsets[:row+1]
	default:
		c.vec.Ints = c.vec.Ints[:row]
	}
	if c.vec.Valid != nil {
		for i := row; i < c.n; i++ {
			c.vec.Valid.Clear(i)
		}
	}
	c.n = row
}

// reset forgets all rows and keeps the memory.
func (c *column) reset() {
	v := &c.vec
	*v = table.Vector{
		Type: c.typ, Ints: v.Ints[:0], Floats: v.Floats[:0], Bools: v.Bools[:0],
		Offsets: v.Offsets[:0], Data: v.Data[:0],
	}
	if c.typ.Layout() == table.Bytes {
		v.Offsets = append(v.Offsets, 0)
	}
	c.active, c.n = false, 0
}

// vector returns the values of all rows.
func (c *column) vector(rows int) table.Vector {
	if c.n < rows {
		c.next(rows)
	}
	v := c.vec
	v.Len = rows
	return v
}

func (c *column) putFloat(row int, f float64) {
	if c.n != row {
		c.next(row)
	}
	c.vec.Floats = append(c.vec.Floats, f)
	c.added()
}

func (c *column) putInt(row int, n int64) {
	if c.n != row {
		c.next(row)
	}
	c.vec.Ints = append(c.vec.Ints, n)
	c.added()
}

func (c *column) putBool(row int, b bool) {
	if c.n != row {
		c.next(row)
	}
	c.vec.Bools = append(c.vec.Bools, b)
	c.added()
}

func (c *column) putBytes(row int, b []byte) {
	if c.n != row {
		c.next(row)
	}
	c.vec.Data = append(c.vec.Data, b...)
	c.vec.Offsets = append(c.vec.Offsets, uint32(len(c.vec.Data)))
	c.added()
}

// ones returns a Bitmap whose first n bits are set.
func ones(b table.Bitmap, n int) table.Bitmap {
	b = grow(b[:0], n)
	for i := range n {
		b.Set(i)
	}
	if b == nil {
		b = table.Bitmap{0} // nil would mean that all are set
	}
	return b
}

// grow makes room for n bits.
func grow(b table.Bitmap, n int) table.Bitmap {
	for len(b)*64 < n {
		b = append(b, 0)
	}
	return b
}
