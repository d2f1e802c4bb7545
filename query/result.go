package query

import (
	"context"

	"github.com/varvedb/varve/table"
)

// A Result is the rows of a statement. One goroutine uses it at a time.
type Result struct{}

// Columns returns the columns of the rows.
func (r *Result) Columns() []Column { return nil }

// Next returns the next chunk, of at least one row, or nil at the end. A chunk
// is good until the next call.
func (r *Result) Next(ctx context.Context) (*Chunk, error) { return nil, nil }

// Stats returns what each table of the statement has cost so far.
func (r *Result) Stats() []TableStats { return nil }

// Close ends the statement, if it still runs, and releases its snapshots. It
// may be called more than once.
func (r *Result) Close() {}

// A Chunk is a run of rows of a Result.
type Chunk struct{}

// Len returns the number of rows.
func (c *Chunk) Len() int { return 0 }

// AppendJSON appends the value as JSON.
func (c *Chunk) AppendJSON(dst []byte, col, row int) []byte { return dst }

// AppendText appends the value as the text of a CSV cell, without quotes;
// nothing for null.
func (c *Chunk) AppendText(dst []byte, col, row int) []byte { return dst }

// Vector returns a column of a table type as a vector that is good as long as
// the chunk; false for columns whose Table type is InvalidType.
func (c *Chunk) Vector(col int) (*table.Vector, bool) { return nil, false }
