package sql

import (
	"context"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// One query evaluates at most so many cells, and bytes of them if more than
// one.
const (
	cellsPerQuery     = 256
	cellBytesPerQuery = 256 << 10
)

// insert runs an INSERT. Its rows are all written or none.
func (e *Engine) insert(ctx context.Context, s *Session, text string, n insert) (affected int64, err error) {
	info, err := e.resolve(s, n.name)
	if err != nil {
		return 0, err
	}
	conv := converter{zone: s.zone(), now: coarseNow(s.now(), info.Schema)}
	var b *rowBuilder
	if n.rows >= 0 {
		b, err = e.insertValues(ctx, s, text, n, info, conv)
	} else {
		b, err = e.insertQuery(ctx, s, n, info, conv)
	}
	if err != nil || b.rows == 0 {
		return 0, err
	}
	release, err := e.opts.Ingest.Admit(ctx, int64(b.bytes()))
	if err != nil {
		return 0, err
	}
	defer release()
	if err := e.opts.Ingest.Rows(ctx, info, b.finish()); err != nil {
		return 0, err
	}
	return int64(b.rows), nil
}

// coarseNow cuts now to the coarsest unit among the timestamps of the schema,
// so that now() - INTERVAL '1 hour' can be stored in each without a loss.
func coarseNow(now time.Time, schema *table.Schema) time.Time {
	for i := range schema.Columns {
		if unit := schema.Columns[i].Type.UnitNanos(); unit > 0 {
			now = now.Truncate(time.Duration(unit))
		}
	}
	return now
}

// insertValues reads the rows of VALUES. Where they hold expressions it stops
// at the first, collects all of them, has them evaluated, and starts again.
func (e *Engine) insertValues(ctx context.Context, s *Session, text string, n insert, info *table.Info, conv converter) (*rowBuilder, error) {
	var known []value
	for {
		b, err := e.newRowBuilder(info, n.columns, conv)
		if err != nil {
			return nil, err
		}
		r := rowReader{parser: newParserAt(text, n.rows), width: len(b.targets), known: known}
		if err := r.rows(b.set, b.endRow); err != nil {
			return nil, err
		}
		if !r.unknown {
			return b, nil
		}
		all := rowReader{parser: newParserAt(text, n.rows), width: len(b.targets), collect: true}
		if err := all.rows(nil, nil); err != nil {
			return nil, err
		}
		if known, err = e.evaluate(ctx, s, all.cells, conv.now); err != nil {
			return nil, err
		}
	}
}

// evaluate returns the values of the cells.
func (e *Engine) evaluate(ctx context.Context, s *Session, cells []cell, now time.Time) ([]value, error) {
	known := make([]value, 0, len(cells))
	for len(cells) > 0 {
		n, size := 1, len(cells[0].text)
		for n < min(len(cells), cellsPerQuery) && size < cellBytesPerQuery {
			size += len(cells[n].text)
			n++
		}
		some := cells[:n]
		cells = cells[n:]
		values, err := e.evaluateSome(ctx, s, some, now)
		if err != nil {
			return nil, e.blame(ctx, s, some, now, err)
		}
		known = append(known, values...)
	}
	return known, nil
}

// blame adds to err, which came from evaluating cells together, the row of the
// first cell that fails alone.
func (e *Engine) blame(ctx context.Context, s *Session, cells []cell, now time.Time, err error) error {
	if len(cells) == 1 {
		return inRow(err, cells[0].row)
	}
	for i := range cells {
		if fault.Retryable(err) {
			break
		}
		if _, err := e.evaluateSome(ctx, s, cells[i:i+1], now); err != nil {
			return inRow(err, cells[i].row)
		}
	}
	return err
}

func (e *Engine) evaluateSome(ctx context.Context, s *Session, cells []cell, now time.Time) ([]value, error) {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, c := range cells {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + c.text + "\n)") // the newline ends a comment
	}
	text, err := rewrite(b.String(), s, e.opts.Version)
	if err != nil {
		return nil, err
	}
	records, err := e.query(ctx, s, text, now)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	chunk, err := records.Next(ctx)
	switch {
	case err != nil:
		return nil, err
	case Whole(records) != nil:
		return nil, Whole(records)
	case chunk == nil || chunk.Len() != 1 || len(records.Columns()) != len(cells):
		return nil, fault.Errorf(fault.Plan, "a value in VALUES must be one value")
	}
	values := make([]value, len(cells))
	for i := range cells {
		column := newChunkColumn(records.Columns()[i], chunk, i)
		values[i] = column.value(0)
	}
	return values, nil
}

// insertQuery reads the rows of a query.
func (e *Engine) insertQuery(ctx context.Context, s *Session, n insert, info *table.Info, conv converter) (*rowBuilder, error) {
	b, err := e.newRowBuilder(info, n.columns, conv)
	if err != nil {
		return nil, err
	}
	text, err := rewrite(n.query, s, e.opts.Version)
	if err != nil {
		return nil, err
	}
	records, err := e.query(ctx, s, text, conv.now)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	columns := records.Columns()
	if len(columns) != len(b.targets) {
		return nil, fault.Errorf(fault.Plan, "the query has %d columns, INSERT needs %d", len(columns), len(b.targets))
	}
	for {
		chunk, err := records.Next(ctx)
		if err == nil {
			err = Whole(records) // a copy without the lost rows would make the loss permanent
		}
		if err != nil || chunk == nil {
			return b, err
		}
		if err := b.appendChunk(columns, chunk); err != nil {
			return nil, err
		}
	}
}

// appendChunk adds the rows of a chunk, column by column.
func (b *rowBuilder) appendChunk(columns []Column, chunk Chunk) error {
	n := chunk.Len()
	for i, c := range columns {
		source, target := newChunkColumn(c, chunk, i), b.targets[i]
		if source.vector != nil && source.typ == target.Column.Type {
			if err := target.appendVector(source.vector, n); err != nil {
				return err
			}
			continue
		}
		for row := range n {
			if err := b.set(i, source.value(row)); err != nil {
				return inRow(err, b.rows+row+1)
			}
		}
	}
	return b.endRows(n)
}
