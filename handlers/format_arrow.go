package handlers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/varvedb/varve/sql"
)

const (
	// batchRows and batchBytes are when a record batch is full. A codec starts
	// anew for each column of a batch: 64 Ki rows make zstd twice as fast as
	// 16 Ki do.
	batchRows  = 64 << 10
	batchBytes = 4 << 20
)

// An arrowEncoder writes an Arrow IPC stream, one record batch at a time, and
// nothing for a statement without rows. It has no place for an error: after
// the first bytes the connection is cut, and the stream has no end marker.
type arrowEncoder struct {
	*answer
	builder *array.RecordBuilder
	writer  *ipc.Writer
	rows    int // in builder
	bytes   int // in builder, about
}

func newArrowEncoder(a *answer) sqlEncoder { return &arrowEncoder{answer: a} }

func (e *arrowEncoder) result(ctx context.Context, r sql.Result) error {
	if r.Records == nil {
		e.cost.affected(r)
		return nil
	}
	schema := sql.ArrowSchema(r.Records)
	options := []ipc.Option{ipc.WithSchema(schema)}
	switch e.format.compression {
	case "zstd":
		options = append(options, ipc.WithZstd())
	case "lz4":
		options = append(options, ipc.WithLZ4())
	}
	e.writer = ipc.NewWriter((*answerWriter)(e.answer), options...)
	e.builder = array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer e.builder.Release()
	if _, err := e.chunks(ctx, r.Records, e.add); err != nil {
		return err
	}
	if err := e.batch(); err != nil {
		return err
	}
	if err := e.writer.Close(); err != nil {
		return fmt.Errorf("end the Arrow stream: %w", err)
	}
	return nil
}

func (e *arrowEncoder) add(c sql.Chunk, rows int) error {
	bytes, err := sql.AppendArrow(e.builder, c, rows)
	if err != nil {
		return err
	}
	if e.rows, e.bytes = e.rows+rows, e.bytes+bytes; e.rows < batchRows && e.bytes < batchBytes {
		return nil
	}
	return e.batch()
}

// batch writes the rows that were added since the last batch.
func (e *arrowEncoder) batch() error {
	if e.rows == 0 {
		return nil
	}
	e.rows, e.bytes = 0, 0
	batch := e.builder.NewRecordBatch()
	defer batch.Release()
	if err := e.writer.Write(batch); err != nil {
		return fmt.Errorf("write an Arrow batch: %w", err)
	}
	return nil
}

func (e *arrowEncoder) end() {}

func (e *arrowEncoder) fail(*http.Request, error) bool { return false }

// An answerWriter is an answer as an io.Writer.
type answerWriter answer

// Write collects p, and sends the buffer when it is full.
func (w *answerWriter) Write(p []byte) (int, error) {
	a := (*answer)(w)
	a.buf = append(a.buf, p...)
	if len(a.buf) >= flushBytes {
		if err := a.flush(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
