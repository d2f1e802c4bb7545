package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
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

	formatOptions
}

// formatOptions are the parameters that only some formats know.
type formatOptions struct {
	epoch       int64  // influxdb_v1: nanoseconds of the unit of times; 0: the column's own
	compression string // arrow: zstd or lz4; "": none
	exact       bool   // JSON, table, CSV: numbers that JSON loses are strings
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

const (
	jsonType  = "application/json"
	csvType   = "text/csv; charset=utf-8"
	textType  = "text/plain; charset=utf-8"
	arrowType = "application/arrow"
)

var sqlFormats = []sqlFormat{
	{name: "greptimedb_v1", family: "greptimedb_v1", contentType: jsonType, several: true, encoder: newGreptimeEncoder},
	{name: "json", family: "json", contentType: jsonType, encoder: newObjectEncoder},
	{name: "csv", family: "csv", contentType: csvType, encoder: newCSVEncoder(0)},
	{name: "csvwithnames", family: "csv", contentType: csvType, encoder: newCSVEncoder(1)},
	{name: "csvwithnamesandtypes", family: "csv", contentType: csvType, encoder: newCSVEncoder(2)},
	{name: "table", family: "table", contentType: textType, encoder: newTableEncoder},
	{name: "arrow", family: "arrow", contentType: arrowType, encoder: newArrowEncoder},
	{name: "influxdb_v1", family: "influxdb_v1", contentType: jsonType, several: true, encoder: newInfluxEncoder},
	{name: "null", family: "null", contentType: textType, encoder: newNullEncoder},
}

// formatOf returns the format that the parameters of a request ask for, with
// its options; param returns the value of a parameter.
func formatOf(param func(name string) string) (*sqlFormat, error) {
	f, err := formatNamed(param("format"))
	if err != nil {
		return nil, err
	}
	format := *f
	if format.formatOptions, err = readFormatOptions(param); err != nil {
		return nil, err
	}
	return &format, nil
}

// readFormatOptions reads the options of all formats, so that a wrong one is
// an error even where it would not matter.
func readFormatOptions(param func(name string) string) (o formatOptions, err error) {
	if o.epoch, err = parseEpoch(param("epoch")); err != nil {
		return o, err
	}
	switch o.compression = strings.ToLower(param("compression")); o.compression {
	case "", "zstd", "lz4":
	default:
		return o, fault.Errorf(fault.Invalid, "unknown compression %q; there are zstd and lz4", o.compression)
	}
	if text := param("exact"); text != "" {
		if o.exact, err = strconv.ParseBool(text); err != nil {
			return o, fault.Errorf(fault.Invalid, "the parameter exact must be true or false, not %q", text)
		}
	}
	return o, nil
}

// formatNamed returns the format of this name; the empty one is greptimedb_v1.
func formatNamed(name string) (*sqlFormat, error) {
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
	cost   cost // of the results so far

	strict  bool        // whether missing rows are an error
	reading sql.Records // the result that is being read; nil between results
	damages []sql.Damage
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

// finish sends what is left of the answer, what it has cost and what it lacks:
// as headers if the answer fit into the buffer, else as trailers.
func (a *answer) finish() error {
	if !a.sent {
		a.w.Header().Set(costHeader, a.cost.json())
		return a.flush()
	}
	err := a.flush()
	a.w.Header().Set(costHeader, a.cost.json())
	a.setWarnings(http.TrailerPrefix)
	return err
}

// flush sends what is in the buffer; the first time, behind the headers. Then
// the execution time is the time until now.
func (a *answer) flush() error {
	if !a.sent {
		a.sent = true
		h := a.w.Header()
		h.Set("Content-Type", a.format.contentType)
		h.Set("x-greptime-format", a.format.family)
		h.Set("x-greptime-execution-time", millis(a.start))
		a.noteDamage()
		a.setWarnings("")
		if h.Get(costHeader) == "" {
			h.Set("Trailer", costHeader)
		}
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
	return a.chunks(ctx, r, func(chunk sql.Chunk, rows int) error {
		for i := range rows {
			row(chunk, i)
			if len(a.buf) >= flushBytes {
				if err := a.flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// chunks calls add for the first rows of each chunk of r up to the limit. It
// returns the number of rows.
func (a *answer) chunks(ctx context.Context, r sql.Records, add func(c sql.Chunk, rows int) error) (int64, error) {
	a.reading = r
	defer a.readTo(r)
	n := int64(0)
	for n < a.limit {
		chunk, err := r.Next(ctx)
		if err == nil && a.strict {
			err = sql.Whole(r)
		}
		if err != nil || chunk == nil {
			return n, err
		}
		if a.format.exact {
			chunk = exactChunk(chunk)
		}
		rows := int(min(int64(chunk.Len()), a.limit-n))
		if err := add(chunk, rows); err != nil {
			return n, err
		}
		n += int64(rows)
	}
	return n, nil
}

// readTo ends the reading of a result.
func (a *answer) readTo(r sql.Records) {
	a.cost.read(r)
	a.noteDamage()
	a.reading = nil
}
