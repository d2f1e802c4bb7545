package handlers

import (
	"github.com/varvedb/varve/sql"
)

// exactChunk returns a chunk whose values keep in JSON what JSON's numbers
// lose to most readers: integers beyond 2^53, NaN and the infinities are
// strings. A chunk that has no such values stays as it is.
func exactChunk(c sql.Chunk) sql.Chunk {
	if e, ok := c.(exactValues); ok {
		return exact{c, e}
	}
	return c
}

// exactValues is what a chunk needs for that.
type exactValues interface {
	AppendExactJSON(dst []byte, col, row int) []byte
}

// exact is a chunk with the values of its exactValues.
type exact struct {
	sql.Chunk
	values exactValues
}

// AppendJSON appends a value in JSON.
func (c exact) AppendJSON(dst []byte, col, row int) []byte {
	return c.values.AppendExactJSON(dst, col, row)
}

// AppendText appends a value as the text of a CSV cell.
func (c exact) AppendText(dst []byte, col, row int) []byte {
	start := len(dst)
	if dst = c.Chunk.AppendText(dst, col, row); len(dst) > start && dst[start] != '[' && dst[start] != '{' {
		return dst
	}
	// Empty is null, an empty text, or a number that JSON does not have; a list
	// may have such numbers in it.
	text := c.values.AppendExactJSON(nil, col, row)
	switch string(text) {
	case `"NaN"`, `"Infinity"`, `"-Infinity"`:
		return append(dst, text[1:len(text)-1]...)
	}
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		return append(dst[:start], text...)
	}
	return dst
}
