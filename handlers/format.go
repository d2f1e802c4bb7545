package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/sql"
)

// A sqlFormat is one value of the parameter format of /v1/sql.
type sqlFormat struct {
	name        string // as the parameter spells it
	family      string // as x-greptime-format spells it
	contentType string
	several     bool // whether several statements have room in it
	encoder     func(*answer) sqlEncoder
}

// A sqlEncoder writes the results of a script into an answer.
type sqlEncoder interface {
	// result writes the result of one statement.
	result(ctx context.Context, r sql.Result) error
	// end writes what is behind the last result.
	end()
	// fail writes an error into the answer, so that it remains whole and says
	// that it is not complete. It returns false where the error must be
	// answered in place of the results, or the connection be cut.
	fail(r *http.Request, err error) bool
}

var sqlFormats = []sqlFormat{
	{"greptimedb_v1", "greptimedb_v1", "application/json", true, newGreptimeEncoder},
	{"json", "json", "application/json", false, newObjectEncoder},
	{"csv", "csv", "text/csv; charset=utf-8", false, newCSVEncoder(0)},
	{"csvwithnames", "csv", "text/csv; charset=utf-8", false, newCSVEncoder(1)},
	{"csvwithnamesandtypes", "csv", "text/csv; charset=utf-8", false, newCSVEncoder(2)},
}

// formatOf returns the format of this name; the empty one is greptimedb_v1.
func formatOf(name string) (*sqlFormat, error) {
	if name == "" {
		return &sqlFormats[0], nil
	}
	i := slices.IndexFunc(sqlFormats, func(f sqlFormat) bool { return strings.EqualFold(f.name, name) })
	if i < 0 {
		known := make([]string, len(sqlFormats))
		for i, f := range sqlFormats {
			known[i] = f.name
		}
		return nil, fault.Errorf(fault.Invalid, "unknown format %q; there are %s", name, strings.Join(known, ", "))
	}
	return &sqlFormats[i], nil
}

const (
	// flushBytes is how full an answer's buffer gets. Answers below it have
	// the right status even if their last row fails.
	flushBytes = 64 << 10
	// pooledAnswer is the largest buffer that is kept for the next answer.
	pooledAnswer = 1 << 20
)

var answerPool = sync.Pool{New: func() any {
	b := make([]byte, 0, flushBytes+4<<10)
	return &b
}}

// An answer is a body in the making. Its bytes are collected in buf; what is
// in there may still be taken back.
type answer struct {
	w      http.ResponseWriter
	format *sqlFormat
	limit  int64 // rows of each result
	start  time.Time
	buf    []byte
	pooled *[]byte
	sent   bool // whether the first bytes are out
	status int  // of the answer, if not 200
}

func newAnswer(w http.ResponseWriter, format *sqlFormat, limit int64, start time.Time) *answer {
	p := answerPool.Get().(*[]byte)
	return &answer{w: w, format: format, limit: limit, start: start, buf: (*p)[:0], pooled: p}
}

// release gives the buffer back.
func (a *answer) release() {
	if cap(a.buf) <= pooledAnswer {
		*a.pooled = a.buf
		answerPool.Put(a.pooled)
	}
	a.buf = nil
}

// flush sends what is in the buffer; the first time, behind the headers.
func (a *answer) flush() error {
	if !a.sent {
		a.sent = true
		h := a.w.Header()
		h.Set("Content-Type", a.format.contentType)
		h.Set("x-greptime-format", a.format.family)
		h.Set("x-greptime-execution-time", millis(a.start))
		if a.status != 0 {
			a.w.WriteHeader(a.status)
		}
	}
	_, err := a.w.Write(a.buf)
	a.buf = a.buf[:0]
	if err != nil {
		return fault.Errorf(fault.Cancelled, "send the answer: %w", err)
	}
	return nil
}

// rows calls row for each row of r up to the limit, and sends the buffer
// whenever it is full. It returns the number of rows.
func (a *answer) rows(ctx context.Context, r sql.Records, row func(c sql.Chunk, row int)) (int64, error) {
	n := int64(0)
	for n < a.limit {
		chunk, err := r.Next(ctx)
		if err != nil || chunk == nil {
			return n, err
		}
		for i := range int(min(int64(chunk.Len()), a.limit-n)) {
			row(chunk, i)
			if n++; len(a.buf) >= flushBytes {
				if err := a.flush(); err != nil {
					return n, err
				}
			}
		}
	}
	return n, nil
}
