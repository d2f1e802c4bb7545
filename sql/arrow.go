package sql

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// arrowRecords are Records that know their own Arrow types.
type arrowRecords interface {
	ArrowSchema() *arrow.Schema
}

// arrowChunk is a chunk of arrowRecords.
type arrowChunk interface {
	AppendArrow(b *array.RecordBuilder, n int) (bytes int, err error)
}

// ArrowSchema returns the Arrow types of the columns. What is no query, such as
// SHOW, is text.
func ArrowSchema(r Records) *arrow.Schema {
	if a, ok := r.(arrowRecords); ok {
		return a.ArrowSchema()
	}
	fields := make([]arrow.Field, len(r.Columns()))
	for i, c := range r.Columns() {
		fields[i] = arrow.Field{Name: c.Name, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// AppendArrow appends the first n rows of a chunk to a builder of its
// Records' ArrowSchema, and returns about how many bytes they took.
func AppendArrow(b *array.RecordBuilder, c Chunk, n int) (bytes int, err error) {
	if a, ok := c.(arrowChunk); ok {
		return a.AppendArrow(b, n)
	}
	var text []byte
	for col, field := range b.Fields() {
		for row := range n {
			if text = c.AppendJSON(text[:0], col, row); string(text) == "null" {
				field.AppendNull()
				continue
			}
			text = c.AppendText(text[:0], col, row)
			field.(*array.StringBuilder).BinaryBuilder.Append(text)
			bytes += len(text)
		}
	}
	return bytes, nil
}
