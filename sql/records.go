package sql

import (
	"context"
	"strconv"
	"strings"

	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/table"
)

// A Column is the name and type of a result's column.
type Column = query.Column

// Records is the rows of a result, a chunk at a time.
type Records interface {
	// Columns returns the columns, in order.
	Columns() []Column

	// Next returns the next chunk, or nil at the end. A chunk is good until
	// the next call.
	Next(ctx context.Context) (Chunk, error)

	// Close ends the query. It may be called at any time, and twice.
	Close()
}

// A Chunk is a run of rows.
type Chunk interface {
	// Len returns the number of rows.
	Len() int

	// AppendJSON appends a value in JSON.
	AppendJSON(dst []byte, col, row int) []byte

	// AppendText appends a value as text; nothing for null.
	AppendText(dst []byte, col, row int) []byte

	// Vector returns a column as a table's, if its type has one.
	Vector(col int) (*table.Vector, bool)
}

// queryRecords are the Records of package query.
type queryRecords struct{ *query.Result }

// Next returns the next chunk, and a nil Chunk rather than a nil *query.Chunk.
func (r queryRecords) Next(ctx context.Context) (Chunk, error) {
	c, err := r.Result.Next(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	return c, nil
}

// A listing is the rows of a SHOW: a few texts, held in memory. It is its own
// only chunk.
type listing struct {
	columns []Column
	rows    [][]string
	read    bool
}

// newListing returns an empty listing with text columns of these names.
func newListing(columns ...string) *listing {
	l := &listing{}
	for _, c := range columns {
		l.columns = append(l.columns, Column{Name: c, Type: table.String.String(), Table: table.String})
	}
	return l
}

func (l *listing) add(row ...string) { l.rows = append(l.rows, row) }

// Columns returns the columns, all of text.
func (l *listing) Columns() []Column { return l.columns }

// Next returns the listing itself, once.
func (l *listing) Next(context.Context) (Chunk, error) {
	if l.read || len(l.rows) == 0 {
		return nil, nil
	}
	l.read = true
	return l, nil
}

// Close does nothing.
func (l *listing) Close() {}

// Len returns the number of rows.
func (l *listing) Len() int { return len(l.rows) }

// AppendJSON appends a text as a JSON string.
func (l *listing) AppendJSON(dst []byte, col, row int) []byte {
	return query.AppendJSONString(dst, l.rows[row][col])
}

// AppendText appends a text.
func (l *listing) AppendText(dst []byte, col, row int) []byte {
	return append(dst, l.rows[row][col]...)
}

// Vector returns false: a listing has no vectors.
func (l *listing) Vector(int) (*table.Vector, bool) { return nil, false }

// A chunkColumn hands out the values of one column of a chunk.
type chunkColumn struct {
	typ    table.Type
	vector *table.Vector // nil: only as text
	number bool          // the text is a number
	chunk  Chunk
	col    int
}

func newChunkColumn(c Column, chunk Chunk, col int) chunkColumn {
	cc := chunkColumn{chunk: chunk, col: col}
	if v, ok := chunk.Vector(col); ok {
		cc.vector, cc.typ = v, v.Type
	}
	cc.number = strings.HasPrefix(c.Type, "Decimal(")
	return cc
}

// value returns the value of a row.
func (c *chunkColumn) value(row int) value {
	v := c.vector
	if v == nil {
		return c.text(row)
	}
	if v.IsNull(row) {
		return value{}
	}
	switch c.typ.Layout() {
	case table.Ints:
		n := v.Ints[row]
		switch {
		case c.typ.IsTimestamp() || c.typ == table.Date:
			return value{kind: timeKind, num: n, typ: c.typ}
		case c.typ == table.UInt64 && n < 0:
			return value{kind: numberKind, text: strconv.FormatUint(uint64(n), 10)}
		}
		return value{kind: intKind, num: n}
	case table.Floats:
		return value{kind: numberKind, text: strconv.FormatFloat(v.Floats[row], 'g', -1, 64)}
	case table.Bools:
		return value{kind: boolKind, text: strconv.FormatBool(v.Bools[row])}
	}
	kind := textKind
	if c.typ == table.Binary {
		kind = bytesKind
	}
	return value{kind: kind, text: string(v.Bytes(row))}
}

// text returns a value of a type that tables do not have. Its JSON tells null
// from an empty text.
func (c *chunkColumn) text(row int) value {
	if string(c.chunk.AppendJSON(nil, c.col, row)) == "null" {
		return value{}
	}
	v := value{kind: textKind, text: string(c.chunk.AppendText(nil, c.col, row))}
	if c.number {
		v.kind = numberKind
	}
	return v
}
