package handlers

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/varvedb/varve/sql"
)

const (
	// measuredRows is how many rows a table's widths are taken from; a wider
	// cell behind them stands out of its column.
	measuredRows = 1000
	// measuredBytes ends that earlier, where rows are large.
	measuredBytes = 1 << 20
)

// A tableEncoder draws a table. Cells are JSON.
//
//	┌─host─┬─ts─┐
//	│ "a"  │ 1  │
//	└──────┴────┘
//
// It has no place for an error: after the first bytes the connection is cut.
type tableEncoder struct {
	*answer
	names  []string
	widths []int // in bytes, as GreptimeDB takes them
	drawn  bool  // whether the head is drawn, so that widths are decided

	cells []byte // of the rows before that
	ends  []int  // where each cell ends in cells
}

func newTableEncoder(a *answer) sqlEncoder { return &tableEncoder{answer: a} }

func (e *tableEncoder) result(ctx context.Context, r sql.Result) error {
	if r.Records == nil {
		e.buf = append(strconv.AppendInt(e.buf, e.cost.affected(r), 10), '\n')
		return nil
	}
	for _, c := range r.Records.Columns() {
		name := strings.ReplaceAll(c.Name, "\n", " ")
		e.names = append(e.names, name)
		e.widths = append(e.widths, len(name))
	}
	if _, err := e.rows(ctx, r.Records, e.row); err != nil {
		return err
	}
	e.head()
	e.line("└", "┴", "┘", func(col int) { e.fill("─", e.widths[col]+2) })
	return nil
}

func (e *tableEncoder) row(chunk sql.Chunk, row int) {
	if !e.drawn {
		e.measure(chunk, row)
		return
	}
	e.line("│", "│", "│", func(col int) {
		e.buf = append(e.buf, ' ')
		start := len(e.buf)
		e.buf = chunk.AppendJSON(e.buf, col, row)
		e.pad(start, col)
	})
}

// measure keeps a row until the widths are known.
func (e *tableEncoder) measure(chunk sql.Chunk, row int) {
	for col := range e.widths {
		start := len(e.cells)
		e.cells = chunk.AppendJSON(e.cells, col, row)
		e.ends = append(e.ends, len(e.cells))
		e.widths[col] = max(e.widths[col], len(e.cells)-start)
	}
	if len(e.ends) >= measuredRows*len(e.widths) || len(e.cells) >= measuredBytes {
		e.head()
	}
}

// head draws the names and the rows that were kept.
func (e *tableEncoder) head() {
	if e.drawn {
		return
	}
	e.drawn = true
	e.line("┌", "┬", "┐", func(col int) {
		e.buf = append(append(e.buf, "─"...), e.names[col]...)
		e.fill("─", e.widths[col]-utf8.RuneCountInString(e.names[col])+1)
	})
	from := 0
	for len(e.ends) > 0 && len(e.widths) > 0 {
		e.line("│", "│", "│", func(col int) {
			e.buf = append(e.buf, ' ')
			start := len(e.buf)
			e.buf = append(e.buf, e.cells[from:e.ends[col]]...)
			from = e.ends[col]
			e.pad(start, col)
		})
		e.ends = e.ends[len(e.widths):]
	}
	e.cells, e.ends = nil, nil
}

func (e *tableEncoder) line(left, between, right string, cell func(col int)) {
	e.buf = append(e.buf, left...)
	for col := range e.widths {
		if col > 0 {
			e.buf = append(e.buf, between...)
		}
		cell(col)
	}
	e.buf = append(append(e.buf, right...), '\n')
}

// pad ends the cell that begins at start. A JSON column may have line ends
// between its values, where a space means the same.
func (e *tableEncoder) pad(start, col int) {
	cell := e.buf[start:]
	for i := bytes.IndexByte(cell, '\n'); i >= 0; i = bytes.IndexByte(cell, '\n') {
		cell[i] = ' '
	}
	e.fill(" ", e.widths[col]-utf8.RuneCount(cell)+1)
}

func (e *tableEncoder) fill(with string, n int) {
	for range n {
		e.buf = append(e.buf, with...)
	}
}

func (e *tableEncoder) end() {}

func (e *tableEncoder) fail(*http.Request, error) bool { return false }
