package sql

import (
	"fmt"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// A rowBuilder collects the rows of one INSERT, column by column.
type rowBuilder struct {
	info    *table.Info
	conv    converter
	columns []*columnBuilder // of the schema, in its order
	targets []*columnBuilder // of the statement, in its order
	rows    int
	limit   int // bytes that the rows may take
	memory  *admission
}

// newRowBuilder returns a builder for rows that give the named columns.
func (e *Engine) newRowBuilder(info *table.Info, names []name, conv converter, memory *admission) (*rowBuilder, error) {
	b := &rowBuilder{info: info, conv: conv, limit: e.opts.InsertBytes, memory: memory}
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
		return c.needsValue()
	}
	c.appendNull()
	return nil
}

// endRow ends a row: columns that it did not give are filled in.
func (b *rowBuilder) endRow() error { return b.endRows(1) }

// endRows ends n rows.
func (b *rowBuilder) endRows(n int) error {
	for _, c := range b.columns {
		switch {
		case c.Len >= b.rows+n:
			continue
		case c.missing == nil && c.Nullable: // left out: all null
			continue
		case c.missing == nil:
			return c.needsValue()
		}
		for c.Len < b.rows+n {
			if c.missing.kind == nullKind {
				c.appendNull()
			} else if err := c.append(*c.missing, &b.conv); err != nil {
				return err
			}
		}
	}
	b.rows += n
	if n > 1 || b.rows%checkRows == 0 {
		return b.checkSize()
	}
	return nil
}

// checkRows is after how many rows of VALUES their size is looked at.
const checkRows = 512

func (b *rowBuilder) checkSize() error {
	size := b.bytes()
	if size > b.limit {
		return fault.Errorf(fault.TooLarge, "the rows of one INSERT may take %d bytes of memory; insert them in parts", b.limit)
	}
	return b.memory.grow(size, admitStep)
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
		key = table.AppendKeyValue(key, &c.Vector, row)
	}
	return table.TrimKey(key, nulls)
}
