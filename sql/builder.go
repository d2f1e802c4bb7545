package sql

import (
	"fmt"
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
		if len(c.Data)+len(s) > math.MaxUint32 {
			return fault.Errorf(fault.TooLarge, "column %q: the values of one INSERT are over 4 GiB", c.Name)
		}
		c.Data = append(c.Data, s...)
		c.Offsets = append(c.Offsets, uint32(len(c.Data)))
	}
	if err != nil {
		return fault.Errorf(fault.Invalid, "%s", explain(v, c.Name, typ, err))
	}
	if c.nulls > 0 {
		c.grow()
		c.Valid.Set(c.Len)
	}
	c.Len++
	return nil
}

// A rowBuilder collects the rows of one INSERT, column by column.
type rowBuilder struct {
	info    *table.Info
	conv    converter
	columns []*columnBuilder // of the schema, in its order
	targets []*columnBuilder // of the statement, in its order
	rows    int
}

// newRowBuilder returns a builder for rows that give the named columns.
func newRowBuilder(info *table.Info, names []name, conv converter) (*rowBuilder, error) {
	b := &rowBuilder{info: info, conv: conv}
	for i := range info.Schema.Columns {
		c := &info.Schema.Columns[i]
		cb := &columnBuilder{Column: c, Vector: table.Vector{Type: c.Type}}
		if c.Type.Layout() == table.Bytes {
			cb.Offsets = append(cb.Offsets, 0)
		}
		b.columns = append(b.columns, cb)
	}
	if err := b.setTargets(names); err != nil {
		return nil, err
	}
	for _, c := range b.columns {
		if err := b.setMissing(c); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *rowBuilder) setTargets(names []name) error {
	if names == nil {
		b.targets = b.columns
		return nil
	}
	named := make(map[*columnBuilder]bool, len(names))
	for _, n := range names {
		i, err := resolveColumn(b.info, n)
		if err != nil {
			return err
		}
		c := b.columns[i]
		if named[c] {
			return fault.Errorf(fault.Plan, "column %q is named twice", c.Name)
		}
		named[c] = true
		b.targets = append(b.targets, c)
	}
	return nil
}

// setMissing finds what a row has in a column that it does not give.
func (b *rowBuilder) setMissing(c *columnBuilder) error {
	switch {
	case c.Default != "":
		p := newParser(c.Default)
		v, ok := p.value()
		if !ok || p.tok.kind != endToken || v.kind == defaultKind {
			return fmt.Errorf("column %q of table %q has the default %s, which is no constant", c.Name, b.info.Name, c.Default)
		}
		c.missing = &v
	case c.Nullable && c.Role == table.Tag:
		c.missing = &value{}
	}
	return nil
}

// resolveColumn returns the position of the column that n means: the one of
// exactly this name, else, if n is unquoted, the only one that differs just in
// case.
func resolveColumn(info *table.Info, n name) (int, error) {
	found, others := -1, 0
	for i := range info.Schema.Columns {
		switch c := &info.Schema.Columns[i]; {
		case c.Name == n.text:
			return i, nil
		case !n.quoted && equalFold(c.Name, n.text):
			found = i
			others++
		}
	}
	switch others {
	case 0:
		return 0, fault.Errorf(fault.ColumnNotFound, "table %q has no column %q", info.Name, n.text)
	case 1:
		return found, nil
	default:
		return 0, fault.Errorf(fault.Plan, "column name %s is ambiguous in table %q; quote it", n.text, info.Name)
	}
}

// equalFold compares names as DuckDB does: only ASCII letters have a case.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && (x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z') {
			return false
		}
	}
	return true
}

// set adds the value of the statement's column i to the row in the making.
func (b *rowBuilder) set(i int, v value) error {
	c := b.targets[i]
	if v.kind == defaultKind {
		if v = (value{}); c.missing != nil {
			v = *c.missing
		}
	}
	if v.kind != nullKind {
		return c.append(v, &b.conv)
	}
	if !c.Nullable {
		return fault.Errorf(fault.Invalid, "column %q is NOT NULL and has no default: a value is needed", c.Name)
	}
	c.appendNull()
	return nil
}

// endRow fills in the columns that the row did not give.
func (b *rowBuilder) endRow() error {
	for _, c := range b.columns {
		switch {
		case c.Len > b.rows:
		case c.missing != nil && c.missing.kind != nullKind:
			if err := c.append(*c.missing, &b.conv); err != nil {
				return err
			}
		case !c.Nullable:
			return fault.Errorf(fault.Invalid, "column %q is NOT NULL and has no default: a value is needed", c.Name)
		case c.missing != nil:
			c.appendNull()
		}
	}
	b.rows++
	return nil
}

// bytes returns about how much memory the rows take.
func (b *rowBuilder) bytes() (n int) {
	for _, c := range b.columns {
		n += 8*(len(c.Ints)+len(c.Floats)) + len(c.Bools) + 4*len(c.Offsets) + len(c.Data)
	}
	return n
}

// finish returns the rows with their series keys.
func (b *rowBuilder) finish() *table.Rows {
	rows := &table.Rows{Series: make([]uint32, b.rows)}
	tags := make([]*columnBuilder, len(b.info.Schema.Key))
	for i := range b.columns {
		c := b.columns[i]
		switch {
		case c.Role == table.Timestamp:
			rows.Times = c.Ints
		case c.Role == table.Field && c.Len > 0:
			rows.Fields = append(rows.Fields, table.FieldVector{ID: c.ID, Vector: c.Vector})
		case c.Role == table.Tag:
			for k, id := range b.info.Schema.Key {
				if id == c.ID {
					tags[k] = c
				}
			}
		}
	}
	seen := make(map[string]uint32)
	var key []byte
	for row := range b.rows {
		key = appendKey(key[:0], tags, row)
		series, ok := seen[string(key)]
		if !ok {
			series = rows.Keys.Append(key, table.HashKey(key))
			seen[string(key)] = series
		}
		rows.Series[row] = series
	}
	return rows
}

// appendKey appends the series key of a row.
func appendKey(key []byte, tags []*columnBuilder, row int) []byte {
	nulls := 0
	for _, c := range tags {
		if c.IsNull(row) {
			key = table.AppendKeyNull(key)
			nulls++
			continue
		}
		nulls = 0
		switch c.Column.Type.Layout() {
		case table.Ints:
			key = table.AppendKeyInt(key, c.Column.Type, c.Ints[row])
		case table.Floats:
			key = table.AppendKeyFloat(key, c.Floats[row])
		case table.Bools:
			n := int64(0)
			if c.Bools[row] {
				n = 1
			}
			key = table.AppendKeyInt(key, table.Boolean, n)
		case table.Bytes:
			key = table.AppendKeyBytes(key, c.Bytes(row))
		}
	}
	return table.TrimKey(key, nulls)
}
