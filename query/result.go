package query

import (
	"context"

	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// A Result is the rows of a statement. One goroutine uses it at a time.
type Result struct {
	st      *statement
	columns []Column
	chunk   Chunk
	texts   [][2]string // of an EXPLAIN: all rows
	ended   bool
	closed  bool
}

func newResult(st *statement) *Result {
	r := &Result{st: st}
	for _, c := range st.result.Columns {
		col := Column{Name: unmark(c.Name), Type: typeName(c.Type), Table: typeInfos[c.Type.ID].typ}
		r.columns = append(r.columns, col)
	}
	r.chunk.columns = r.columns
	return r
}

// textResult is a result of two columns of text.
func textResult(st *statement, names []string, rows [][2]string) *Result {
	r := &Result{st: st, texts: rows, ended: true}
	for _, name := range names {
		r.columns = append(r.columns, Column{Name: name, Type: "String", Table: table.String})
	}
	r.chunk.columns = r.columns
	return r
}

// Columns returns the columns of the rows.
func (r *Result) Columns() []Column { return r.columns }

// Next returns the next chunk, of at least one row, or nil at the end. A chunk
// is good until the next call.
func (r *Result) Next(ctx context.Context) (*Chunk, error) {
	if len(r.texts) > 0 {
		r.chunk.texts, r.texts = r.texts, nil
		return &r.chunk, nil
	}
	if r.ended || r.closed {
		return nil, nil
	}
	if ctx.Done() != r.st.parent.Done() {
		stop := context.AfterFunc(ctx, r.st.cancel)
		defer stop()
	}
	var c *duckdb.Chunk
	var err error
	if !r.st.wait(ctx, func() { c, err = r.st.result.Next() }, func() { r.st.release(false) }) {
		r.closed = true // its end closes it
		return nil, r.st.over(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, r.st.fault(err)
	}
	if c == nil {
		r.ended = true
		return nil, nil
	}
	r.chunk.c = c
	return &r.chunk, nil
}

// Stats returns what each table of the statement has cost so far.
func (r *Result) Stats() []TableStats { return r.st.stats }

// Close ends the statement, if it still runs, and releases its snapshots. It
// may be called more than once.
func (r *Result) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.st.close(r.ended)
}

// A Chunk is a run of rows of a Result.
type Chunk struct {
	columns []Column
	c       *duckdb.Chunk
	texts   [][2]string
	vector  table.Vector
}

// Len returns the number of rows.
func (c *Chunk) Len() int {
	if c.texts != nil {
		return len(c.texts)
	}
	return c.c.Len
}

// AppendJSON appends the value as JSON.
func (c *Chunk) AppendJSON(dst []byte, col, row int) []byte {
	if c.texts != nil {
		return appendJSONString(dst, []byte(c.texts[row][col]))
	}
	return appendJSON(dst, &c.c.Vectors[col], row)
}

// AppendText appends the value as the text of a CSV cell, without quotes;
// nothing for null.
func (c *Chunk) AppendText(dst []byte, col, row int) []byte {
	if c.texts != nil {
		return append(dst, c.texts[row][col]...)
	}
	v := &c.c.Vectors[col]
	switch {
	case v.IsNull(row):
		return dst
	case v.Type.ID == duckdb.Varchar:
		return append(dst, v.Bytes(row)...)
	case v.Type.ID == duckdb.Enum:
		return append(dst, v.Type.Values[smallUint(v, v.Type.Physical, row)]...)
	}
	start := len(dst)
	dst = appendJSON(dst, v, row)
	switch {
	case dst[start] == '"': // a string that needs no escapes
		return append(dst[:start], dst[start+1:len(dst)-1]...)
	case dst[start] == 'n': // NaN or infinite
		return dst[:start]
	}
	return dst
}

// Vector returns a column of a table type as a vector that is good until the
// next call of Vector or Next; false for columns whose Table type is
// InvalidType, and for sums beyond 64 bits.
func (c *Chunk) Vector(col int) (*table.Vector, bool) {
	typ := c.columns[col].Table
	if typ == table.InvalidType {
		return nil, false
	}
	out := &c.vector
	*out = table.Vector{Type: typ, Len: c.Len(), Ints: out.Ints[:0], Floats: out.Floats[:0], Bools: out.Bools[:0],
		Offsets: out.Offsets[:0], Data: out.Data[:0]}
	if c.texts != nil {
		out.Offsets = append(out.Offsets, 0)
		for _, t := range c.texts {
			out.Data = append(out.Data, t[col]...)
			out.Offsets = append(out.Offsets, uint32(len(out.Data)))
		}
		return out, true
	}
	return out, readVector(out, &c.c.Vectors[col])
}

// readVector copies the values of v, widened as table.Vector holds them.
func readVector(out *table.Vector, v *duckdb.Vector) bool {
	n := out.Len
	if bits := v.Validity(n); bits != nil {
		out.Valid = append(table.Bitmap(nil), bits...)
	}
	switch v.Type.ID {
	case duckdb.Boolean:
		out.Bools = append(out.Bools, duckdb.Values[bool](v, n)...)
	case duckdb.Float:
		out.Floats = widen[float32](out.Floats, v, n)
	case duckdb.Double:
		out.Floats = append(out.Floats, duckdb.Values[float64](v, n)...)
	case duckdb.TinyInt:
		out.Ints = widen[int8](out.Ints, v, n)
	case duckdb.SmallInt:
		out.Ints = widen[int16](out.Ints, v, n)
	case duckdb.Integer, duckdb.Date:
		out.Ints = widen[int32](out.Ints, v, n)
	case duckdb.UTinyInt:
		out.Ints = widen[uint8](out.Ints, v, n)
	case duckdb.USmallInt:
		out.Ints = widen[uint16](out.Ints, v, n)
	case duckdb.UInteger:
		out.Ints = widen[uint32](out.Ints, v, n)
	case duckdb.HugeInt, duckdb.UHugeInt:
		return readHuge(out, v)
	case duckdb.Varchar, duckdb.Blob:
		out.Offsets = append(out.Offsets, 0)
		for i := range n {
			if !v.IsNull(i) {
				out.Data = append(out.Data, v.Bytes(i)...)
			}
			out.Offsets = append(out.Offsets, uint32(len(out.Data)))
		}
	default: // 64 bits wide
		out.Ints = append(out.Ints, duckdb.Values[int64](v, n)...)
	}
	return true
}

func widen[From int8 | int16 | int32 | uint8 | uint16 | uint32 | float32, To int64 | float64](dst []To, v *duckdb.Vector, n int) []To {
	for _, x := range duckdb.Values[From](v, n) {
		dst = append(dst, To(x))
	}
	return dst
}

// readHuge narrows 128-bit integers and reports whether all of them fit.
func readHuge(out *table.Vector, v *duckdb.Vector) bool {
	for i := range out.Len {
		h := duckdb.At[duckdb.HugeValue](v, i)
		fits := h.Upper == int64(h.Lower)>>63
		if v.Type.ID == duckdb.UHugeInt {
			fits = h.Upper == 0
		}
		if !fits && !v.IsNull(i) {
			return false
		}
		out.Ints = append(out.Ints, int64(h.Lower))
	}
	return true
}
