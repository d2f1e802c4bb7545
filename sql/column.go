package sql

import (
	"math"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// A columnBuilder collects the values of one column.
type columnBuilder struct {
	*table.Column
	table.Vector
	nulls   int
	missing *value // for a row that does not give the column; nil: the column is left out
}

func (c *columnBuilder) appendNull() {
	if c.nulls == 0 {
		c.Valid = allValid(c.Len)
	}
	c.nulls++
	c.grow()
	c.Valid.Clear(c.Len)
	switch c.Column.Type.Layout() {
	case table.Ints:
		c.Ints = append(c.Ints, 0)
	case table.Floats:
		c.Floats = append(c.Floats, 0)
	case table.Bools:
		c.Bools = append(c.Bools, false)
	case table.Bytes:
		c.Offsets = append(c.Offsets, uint32(len(c.Data)))
	}
	c.Len++
}

// grow makes room for one more bit in a non-nil Valid.
func (c *columnBuilder) grow() {
	if c.Len>>6 == len(c.Valid) {
		c.Valid = append(c.Valid, 0)
	}
}

func allValid(n int) table.Bitmap {
	b := table.NewBitmap(n)
	for i := range n {
		b.Set(i)
	}
	return b
}

// append adds v, which is neither null nor DEFAULT.
func (c *columnBuilder) append(v value, conv *converter) (err error) {
	typ := c.Column.Type
	switch typ.Layout() {
	case table.Ints:
		var n int64
		n, err = conv.ints(v, typ)
		c.Ints = append(c.Ints, n)
	case table.Floats:
		var f float64
		f, err = conv.float(v, typ)
		c.Floats = append(c.Floats, f)
	case table.Bools:
		var b bool
		b, err = conv.boolean(v)
		c.Bools = append(c.Bools, b)
	case table.Bytes:
		var s string
		s, err = conv.bytes(v, typ)
		if err == nil {
			err = appendBytes(c, s)
		}
	}
	switch {
	case err == nil:
		c.appended()
		return nil
	case fault.KindOf(err) == fault.TooLarge:
		return err
	default:
		return fault.Errorf(fault.Invalid, "%s", explain(v, c.Name, typ, err))
	}
}

// appendVector adds the first n values of v, which has the column's type.
func (c *columnBuilder) appendVector(v *table.Vector, n int) error {
	if err := c.checkTimes(v, n); err != nil {
		return err
	}
	if v.Valid != nil || c.nulls > 0 || v.Type.Layout() == table.Bytes {
		return c.appendEach(v, n)
	}
	switch v.Type.Layout() {
	case table.Ints:
		c.Ints = append(c.Ints, v.Ints[:n]...)
	case table.Floats:
		c.Floats = append(c.Floats, v.Floats[:n]...)
	case table.Bools:
		c.Bools = append(c.Bools, v.Bools[:n]...)
	}
	c.Len += n
	return nil
}

// checkTimes refuses times that no column may hold, such as DuckDB's infinity.
func (c *columnBuilder) checkTimes(v *table.Vector, n int) error {
	if !v.Type.IsTimestamp() && v.Type != table.Date {
		return nil
	}
	low, high := v.Type.Range()
	for i, raw := range v.Ints[:n] {
		if (raw < low || raw > high) && !v.IsNull(i) {
			return inRow(fault.Errorf(fault.Invalid, "%s", explain(value{kind: timeKind, num: raw, typ: v.Type}, c.Name, c.Column.Type, errRange)), c.Len+i+1)
		}
	}
	return nil
}

func (c *columnBuilder) appendEach(v *table.Vector, n int) error {
	for i := range n {
		if v.IsNull(i) {
			if !c.Nullable {
				return c.needsValue()
			}
			c.appendNull()
			continue
		}
		switch v.Type.Layout() {
		case table.Ints:
			c.Ints = append(c.Ints, v.Ints[i])
		case table.Floats:
			c.Floats = append(c.Floats, v.Floats[i])
		case table.Bools:
			c.Bools = append(c.Bools, v.Bools[i])
		case table.Bytes:
			if err := appendBytes(c, v.Bytes(i)); err != nil {
				return err
			}
		}
		c.appended()
	}
	return nil
}

func appendBytes[T string | []byte](c *columnBuilder, b T) error {
	if len(c.Data)+len(b) > math.MaxUint32 {
		return fault.Errorf(fault.TooLarge, "column %q: the values of one INSERT are over 4 GiB", c.Name)
	}
	c.Data = append(c.Data, b...)
	c.Offsets = append(c.Offsets, uint32(len(c.Data)))
	return nil
}

// appended counts a value that was added and marks it as no null.
func (c *columnBuilder) appended() {
	if c.nulls > 0 {
		c.grow()
		c.Valid.Set(c.Len)
	}
	c.Len++
}

func (c *columnBuilder) needsValue() error {
	return fault.Errorf(fault.Invalid, "column %q is NOT NULL and has no default: a value is needed", c.Name)
}
