package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/table"
)

// A csvEncoder writes RFC 4180: lines end in CRLF, cells with a comma, quote
// or line end are quoted, null is an empty cell. CSV has no place for an
// error: after the first bytes the connection is cut.
type csvEncoder struct {
	*answer
	headers int    // lines before the first row: 1 for names, 2 for types too
	plain   []bool // columns whose values never need quotes
}

func newCSVEncoder(headers int) func(*answer) sqlEncoder {
	return func(a *answer) sqlEncoder { return &csvEncoder{answer: a, headers: headers} }
}

func (e *csvEncoder) result(ctx context.Context, r sql.Result) error {
	if r.Records == nil {
		e.buf = append(strconv.AppendInt(e.buf, e.cost.affected(r), 10), '\n')
		return nil
	}
	columns := r.Records.Columns()
	for _, c := range columns {
		layout := c.Table.Layout()
		e.plain = append(e.plain, layout != table.NoLayout && layout != table.Bytes)
	}
	if e.headers > 0 {
		e.line(columns, func(c sql.Column) string { return c.Name })
	}
	if e.headers > 1 {
		e.line(columns, func(c sql.Column) string { return c.Type })
	}
	_, err := e.rows(ctx, r.Records, e.row)
	return err
}

func (e *csvEncoder) line(columns []sql.Column, cell func(sql.Column) string) {
	for i, c := range columns {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		start := len(e.buf)
		e.buf = quoteCell(append(e.buf, cell(c)...), start)
	}
	e.buf = append(e.buf, '\r', '\n')
}

func (e *csvEncoder) row(chunk sql.Chunk, row int) {
	buf := e.buf
	for col, plain := range e.plain {
		if col > 0 {
			buf = append(buf, ',')
		}
		start := len(buf)
		if buf = chunk.AppendText(buf, col, row); !plain {
			buf = quoteCell(buf, start)
		}
	}
	e.buf = append(buf, '\r', '\n')
}

// quoteCell puts quotes around buf[start:], if it needs them.
func quoteCell(buf []byte, start int) []byte {
	special, quotes := false, 0
	for _, c := range buf[start:] {
		switch c {
		case '"':
			quotes++
			special = true
		case ',', '\r', '\n':
			special = true
		}
	}
	if !special {
		return buf
	}
	end := len(buf)
	for range quotes + 2 {
		buf = append(buf, '"')
	}
	to := len(buf) - 1 // the closing quote is there
	for from := end - 1; from >= start; from-- {
		to--
		buf[to] = buf[from]
		if buf[from] == '"' {
			to--
			buf[to] = '"'
		}
	}
	buf[start] = '"'
	return buf
}

func (e *csvEncoder) end() {}

func (e *csvEncoder) fail(*http.Request, error) bool { return false }
