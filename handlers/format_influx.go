package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/table"
)

// parseEpoch returns the nanoseconds of the unit that the parameter epoch
// names, or 0 without one.
func parseEpoch(text string) (int64, error) {
	units := map[string]time.Duration{"": 0, "ns": time.Nanosecond, "n": time.Nanosecond, "u": time.Microsecond,
		"us": time.Microsecond, "µ": time.Microsecond, "μ": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour}
	unit, ok := units[text]
	if !ok {
		return 0, fault.Errorf(fault.Invalid, "unknown epoch %q; there are ns, u, µ, ms, s, m, h", text)
	}
	return int64(unit), nil
}

// An influxEncoder writes the format influxdb_v1:
//
//	{"results":[{"statement_id":0,"series":[{"name":"","columns":["ts"],"values":[[0]]}]}],"execution_time_ms":7}
//
// Times are in the unit of the parameter epoch, else in their column's own.
// After an error the results before it stay, of the one that failed at most
// the rows that were already sent, and "code" and "error" follow.
type influxEncoder struct {
	*answer
	results  int
	rowCount int64
	times    []timeScale // of each column
	complete int         // length of buf behind the last complete result
	open     bool        // whether bytes of an incomplete result are out
}

func newInfluxEncoder(a *answer) sqlEncoder {
	a.buf = append(a.buf, `{"results":[`...)
	return &influxEncoder{answer: a, complete: len(a.buf)}
}

func (e *influxEncoder) result(ctx context.Context, r sql.Result) error {
	if e.results > 0 {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(e.buf, `{"statement_id":`...)
	e.buf = strconv.AppendInt(e.buf, int64(e.results), 10)
	e.buf = append(e.buf, `,"series":[`...)
	if r.Records == nil {
		e.cost.affected(r)
		e.buf = append(e.buf, `]}`...)
	} else if err := e.series(ctx, r.Records); err != nil {
		return err
	}
	e.results++
	e.complete, e.open = len(e.buf), false
	return nil
}

func (e *influxEncoder) series(ctx context.Context, r sql.Records) error {
	e.buf = append(e.buf, `{"name":"","columns":[`...)
	e.times, e.rowCount = e.times[:0], 0
	for i, c := range r.Columns() {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = query.AppendJSONString(e.buf, c.Name)
		e.times = append(e.times, newTimeScale(c.Table, e.format.epoch))
	}
	e.buf = append(e.buf, `],"values":[`...)
	if _, err := e.rows(ctx, r, e.row); err != nil {
		return err
	}
	e.buf = append(e.buf, `]}]}`...)
	return nil
}

func (e *influxEncoder) row(chunk sql.Chunk, row int) {
	buf := e.buf
	if e.rowCount > 0 {
		buf = append(buf, ',')
	}
	e.rowCount++
	buf = append(buf, '[')
	for col, scale := range e.times {
		if col > 0 {
			buf = append(buf, ',')
		}
		start := len(buf)
		buf = chunk.AppendJSON(buf, col, row)
		buf = scale.apply(buf, start)
	}
	e.buf = append(buf, ']')
	e.open = e.open || len(e.buf) >= flushBytes // rows sends it next
}

func (e *influxEncoder) end() {
	e.buf = append(e.buf, ']')
	e.took()
}

func (e *influxEncoder) fail(r *http.Request, err error) bool {
	if !e.sent && e.results == 0 {
		return false
	}
	if e.open {
		e.buf = append(e.buf, `]}]}`...)
	} else {
		e.buf = e.buf[:e.complete]
	}
	e.buf = append(e.buf, ']')
	e.fault(r, err)
	return true
}

// A timeScale turns times of one unit into another. The zero value leaves
// everything as it is.
type timeScale struct {
	zeros   string // to append: the other unit is finer by this power of ten
	divisor int64  // or to divide by: it is coarser
}

func newTimeScale(t table.Type, epoch int64) timeScale {
	if epoch == 0 || !t.IsTimestamp() {
		return timeScale{}
	}
	unit := map[table.Type]int64{table.TimestampSecond: 1e9, table.TimestampMillisecond: 1e6,
		table.TimestampMicrosecond: 1e3, table.TimestampNanosecond: 1}[t]
	if unit >= epoch {
		return timeScale{zeros: strconv.FormatInt(unit/epoch, 10)[1:]}
	}
	return timeScale{divisor: epoch / unit}
}

// apply scales the integer at buf[start:]. Digits are appended and not
// multiplied, so that a time never leaves its range: JSON has integers of any
// size. Division rounds down, so that times before the epoch stay in order.
func (s timeScale) apply(buf []byte, start int) []byte {
	text := buf[start:]
	switch {
	case s == timeScale{} || slices.Equal(text, []byte("null")) || slices.Equal(text, []byte("0")):
		return buf
	case s.divisor == 0:
		return append(buf, s.zeros...)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return buf // not a plain integer: not a time
	}
	q := n / s.divisor
	if n%s.divisor < 0 {
		q--
	}
	return strconv.AppendInt(buf[:start], q, 10)
}
