package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// A greptimeEncoder writes the format greptimedb_v1:
//
//	{"output":[{"records":{"schema":{…},"rows":[[…]],"total_rows":1}},{"affectedrows":3}],"execution_time_ms":7}
//
// After an error the results before it stay, of the one that failed at most
// the rows that were already sent, and "code" and "error" follow.
type greptimeEncoder struct {
	*answer
	results  int
	rowCount int64 // rows of the current result, while it is open
	complete int   // length of buf behind the last complete result
	open     bool  // whether bytes of an incomplete result are out
}

func newGreptimeEncoder(a *answer) sqlEncoder {
	a.buf = append(a.buf, `{"output":[`...)
	return &greptimeEncoder{answer: a, complete: len(a.buf)}
}

func (e *greptimeEncoder) result(ctx context.Context, r sql.Result) error {
	if e.results > 0 {
		e.buf = append(e.buf, ',')
	}
	if r.Records == nil {
		e.buf = append(e.buf, `{"affectedrows":`...)
		e.buf = strconv.AppendInt(e.buf, e.cost.affected(r), 10)
		e.buf = append(e.buf, '}')
	} else if err := e.records(ctx, r.Records); err != nil {
		return err
	}
	e.results++
	e.complete, e.open = len(e.buf), false
	return nil
}

func (e *greptimeEncoder) records(ctx context.Context, r sql.Records) error {
	columns := r.Columns()
	e.buf = append(e.buf, `{"records":{"schema":{"column_schemas":[`...)
	for i, c := range columns {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, `{"name":`...)
		e.buf = query.AppendJSONString(e.buf, c.Name)
		e.buf = append(e.buf, `,"data_type":`...)
		e.buf = query.AppendJSONString(e.buf, c.Type)
		e.buf = append(e.buf, '}')
	}
	e.buf = append(e.buf, `]},"rows":[`...)
	e.rowCount = 0
	_, err := e.rows(ctx, r, func(chunk sql.Chunk, row int) { e.row(chunk, row, len(columns)) })
	if err != nil {
		return err
	}
	e.closeRecords()
	return nil
}

func (e *greptimeEncoder) row(chunk sql.Chunk, row, columns int) {
	buf := e.buf
	if e.rowCount > 0 {
		buf = append(buf, ',')
	}
	e.rowCount++
	buf = append(buf, '[')
	for col := range columns {
		if col > 0 {
			buf = append(buf, ',')
		}
		buf = chunk.AppendJSON(buf, col, row)
	}
	e.buf = append(buf, ']')
	e.open = e.open || len(e.buf) >= flushBytes // rows sends it next
}

func (e *greptimeEncoder) closeRecords() {
	e.buf = append(e.buf, `],"total_rows":`...)
	e.buf = strconv.AppendInt(e.buf, e.rowCount, 10)
	e.buf = append(e.buf, `}}`...)
}

func (e *greptimeEncoder) end() {
	e.buf = append(e.buf, ']')
	e.took()
}

func (e *greptimeEncoder) fail(r *http.Request, err error) bool {
	if !e.sent && e.results == 0 {
		return false
	}
	if e.open {
		e.closeRecords()
	} else {
		e.buf = e.buf[:e.complete]
	}
	e.buf = append(e.buf, ']')
	e.fault(r, err)
	return true
}

// fault ends a JSON document with an error.
func (a *answer) fault(r *http.Request, err error) {
	if !a.sent {
		a.status = StatusOf(err)
		setErrorHeaders(a.w.Header(), r, a.status, err)
	}
	a.buf = append(a.buf, `,"code":`...)
	a.buf = strconv.AppendInt(a.buf, int64(Code(fault.KindOf(err))), 10)
	a.buf = append(a.buf, `,"error":`...)
	a.buf = query.AppendJSONString(a.buf, Message(r, err))
	a.took()
}

// An objectEncoder writes the format json: one object a row.
//
//	{"data":[{"host":"a","ts":0}],"execution_time_ms":7}
//
// An error after the first bytes ends it with "code" and "error".
type objectEncoder struct {
	*answer
	keys  [][]byte // of each column: its name in JSON and a colon
	count int64
}

func newObjectEncoder(a *answer) sqlEncoder { return &objectEncoder{answer: a} }

func (e *objectEncoder) result(ctx context.Context, r sql.Result) error {
	e.buf = append(e.buf, `{"data":[`...)
	if r.Records == nil {
		e.buf = append(e.buf, `],"affected_rows":`...)
		e.buf = strconv.AppendInt(e.buf, e.cost.affected(r), 10)
		return nil
	}
	for i, name := range uniqueNames(r.Records.Columns()) {
		key := []byte{','}
		if i == 0 {
			key = key[:0]
		}
		e.keys = append(e.keys, append(query.AppendJSONString(key, name), ':'))
	}
	if _, err := e.rows(ctx, r.Records, e.row); err != nil {
		return err
	}
	e.buf = append(e.buf, ']')
	return nil
}

// uniqueNames gives columns of the same name different keys, because readers
// of JSON keep only one value of a key: a, a_1, a_2.
func uniqueNames(columns []sql.Column) []string {
	seen := map[string]bool{}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
		for n := 1; seen[names[i]]; n++ {
			names[i] = c.Name + "_" + strconv.Itoa(n)
		}
		seen[names[i]] = true
	}
	return names
}

func (e *objectEncoder) row(chunk sql.Chunk, row int) {
	buf := e.buf
	if e.count > 0 {
		buf = append(buf, ',')
	}
	e.count++
	buf = append(buf, '{')
	for col, key := range e.keys {
		buf = chunk.AppendJSON(append(buf, key...), col, row)
	}
	e.buf = append(buf, '}')
}

func (e *objectEncoder) end() { e.took() }

func (e *objectEncoder) fail(r *http.Request, err error) bool {
	if !e.sent {
		return false
	}
	e.buf = append(e.buf, ']')
	e.fault(r, err)
	return true
}
