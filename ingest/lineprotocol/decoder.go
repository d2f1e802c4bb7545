// Package lineprotocol decodes InfluxDB's line protocol straight into the
// rows that the engine takes.
//
// A line costs a few hundred nanoseconds, because most of it was seen before:
// the bytes up to the first field name a series, and are looked up as they
// are; field number k of a line is most often the column that it was in the
// line before. What was not seen before is parsed by the grammar, with every
// check; so a shortcut never accepts what the grammar would not.
package lineprotocol

import (
	"cmp"

	"github.com/varvedb/varve/table"
)

// Options tunes a Decoder. A zero field means its default.
type Options struct {
	MaxValueBytes int    // of a tag or string; 1 MiB
	MaxColumns    int    // tags and fields of one line; 4,096
	MaxNew        int    // tables and columns that one request may create; 100,000
	MaxErrors     int    // lines that are reported one by one; 10
	CacheBytes    int    // kept of the series seen before, and of buffers; 32 MiB
	TimeIndex     string // time index of new tables; greptime_timestamp
}

func (o Options) withDefaults() Options {
	o.MaxValueBytes = cmp.Or(o.MaxValueBytes, 1<<20)
	o.MaxColumns = cmp.Or(o.MaxColumns, 4096)
	o.MaxNew = cmp.Or(o.MaxNew, 100_000)
	o.MaxErrors = cmp.Or(o.MaxErrors, 10)
	o.CacheBytes = cmp.Or(o.CacheBytes, 32<<20)
	o.TimeIndex = cmp.Or(o.TimeIndex, "greptime_timestamp")
	return o
}

// A Request is what to decode, and against what.
type Request struct {
	Body      []byte
	Precision Precision
	Now       int64 // Unix time in nanoseconds, for lines without a timestamp

	// Again says that this is the last request once more, after what it
	// missed was created.
	Again bool

	// Lookup returns the table that a measurement names, or nil. It gives the
	// same answer as long as the request is decoded.
	Lookup func(name string) *table.Info
	// Refuse says why a table (with an empty column) or a column that does not
	// exist cannot be created; an empty answer means that it can.
	Refuse func(table, column string) string
}

// A Result is what a request holds. It is good until the Decoder is used
// again.
type Result struct {
	Tables  []Table
	Missing []Missing // not empty: create these and decode again
	Rows    int       // lines that became rows
	Dropped int       // lines that did not
	Errors  []LineError
}

// A Table is the rows for one table.
type Table struct {
	Info *table.Info
	Rows *table.Rows
}

// A Missing is what lines need of one table that does not exist.
type Missing struct {
	Name    string
	Info    *table.Info // nil: the table itself
	Columns []table.Column
}

// A LineError says why a line did not become a row.
type LineError struct {
	Line   int // from 1; where the line starts
	Reason string
}

// A Decoder decodes one request after the other. It is meant to be kept: what
// it has seen makes the next request cheaper.
type Decoder struct {
	opts   Options
	lex    lexer
	req    *Request
	passes uint64
	lines  uint64 // lines begun in all passes
	result Result

	tables   map[string]*tableRows // by measurement
	touched  []*tableRows          // those of the last pass
	prefixes map[string]*series    // by the bytes before the first field
	cached   int                   // bytes kept of prefixes and series
	buffers  int                   // bytes kept of tables
	created  int                   // what the request would create, in all its passes

	at place
}

// A place is what a Decoder must know of the line that it is in, to take it
// back if it fails.
type place struct {
	table  *tableRows // nil: not known yet
	row    int
	active int       // columns that were active before
	used   []*column // fields with a value
	fresh  []*column // columns that this line is the first to need
	ended  bool      // nothing of the line is left

	tagText [][]byte // values of the tags, by place in the key
	key     []byte
}

// NewDecoder returns a Decoder. Decoders are not shared by goroutines, and one
// is only used for one database.
func NewDecoder(opts Options) *Decoder {
	return &Decoder{
		opts: opts.withDefaults(), tables: make(map[string]*tableRows), prefixes: make(map[string]*series),
	}
}

// Decode decodes a request. Every line of it becomes a row or is counted as
// dropped; blank lines and comments are neither.
func (d *Decoder) Decode(req *Request) *Result {
	if !req.Again {
		d.Trim()
		d.created = 0
	}
	d.req = req
	d.passes++
	d.touched = d.touched[:0]
	d.result = Result{Tables: d.result.Tables[:0], Errors: d.result.Errors[:0]}
	d.lex.reset(req.Body)
	for d.lex.next() {
		line := d.lex.line
		if !d.line() {
			d.reject(line)
		}
	}
	for _, t := range d.touched {
		if len(t.missing) > 0 || t.info.ID == 0 && t.rows.Len() > 0 {
			d.result.Missing = append(d.result.Missing, t.wanted())
		}
		if t.rows.Len() > 0 {
			d.result.Tables = append(d.result.Tables, Table{t.info, t.finish()})
		}
	}
	d.req = nil
	d.lex.buf = nil
	return &d.result
}

// line decodes one line, and reports false if it is no row.
func (d *Decoder) line() bool {
	d.lines++
	d.at.table, d.at.ended = nil, false
	d.at.used, d.at.fresh = d.at.used[:0], d.at.fresh[:0]
	s, ok := d.series()
	if !ok {
		return false
	}
	t := s.table
	d.enter(t)
	if !d.fields(t) {
		return false
	}
	time, given, ok := d.lex.time()
	if !ok {
		return false
	}
	d.at.ended = true
	if !given {
		time = t.time.now
	} else if scaled, ok := t.time.convert(time); ok {
		time = scaled
	} else {
		return d.lex.fail("%s", t.time.problem(time))
	}
	t.commit(s, time)
	t.missing = append(t.missing, d.at.fresh...)
	d.result.Rows++
	return true
}

// enter notes the table that the line is about.
func (d *Decoder) enter(t *tableRows) {
	if d.at.table == nil {
		d.at.table, d.at.row, d.at.active = t, t.rows.Len(), len(t.active)
	}
}

// reject takes back what a line has left behind, and notes why it failed.
func (d *Decoder) reject(line int) {
	for _, c := range d.at.used {
		c.truncate(d.at.row)
	}
	if t := d.at.table; t != nil {
		for _, c := range t.active[d.at.active:] {
			c.active = false
		}
		t.active = t.active[:d.at.active]
		t.discard(d.at.fresh)
		d.created -= len(d.at.fresh)
	}
	d.result.Dropped++
	if len(d.result.Errors) < d.opts.MaxErrors {
		d.result.Errors = append(d.result.Errors, LineError{line, d.lex.problem})
	}
	d.lex.quiet = len(d.result.Errors) >= d.opts.MaxErrors
	if !d.at.ended {
		d.lex.skipLine()
	}
}

// Trim forgets everything if that is over the limit, and so does Decode. The
// last Result must not be used after it. It happens between requests, so that
// all lines of one agree on what a series is.
func (d *Decoder) Trim() {
	for _, t := range d.touched {
		d.buffers -= t.size
		t.size = t.bytes()
		d.buffers += t.size
	}
	if d.cached+d.buffers > d.opts.CacheBytes {
		clear(d.prefixes)
		clear(d.tables)
		d.cached, d.buffers = 0, 0
		d.touched = nil
	}
}

// table returns the table of a measurement, ready to take rows.
func (d *Decoder) table(name []byte) (*tableRows, bool) {
	t := d.tables[string(name)]
	known := t != nil
	if !known {
		t = newTableRows(string(name))
	}
	if t.pass != d.passes && !d.start(t) {
		return nil, false
	}
	if !known {
		d.tables[t.name] = t
	}
	return t, true
}

// start begins with the rows of t, or fails if t cannot be created.
func (d *Decoder) start(t *tableRows) bool {
	info := d.req.Lookup(t.name)
	if info == nil {
		if why := d.req.Refuse(t.name, ""); why != "" {
			return d.lex.fail("%s", why)
		}
		if !d.create() {
			return false
		}
		info = d.absent(t)
	}
	if !t.start(d.passes, info, d.req) {
		t.forget()
	}
	d.touched = append(d.touched, t)
	return true
}

// absent returns a table with nothing but a time index.
func (d *Decoder) absent(t *tableRows) *table.Info {
	return &table.Info{Name: t.name, Schema: &table.Schema{Columns: []table.Column{
		{Name: d.opts.TimeIndex, Type: table.TimestampNanosecond, Role: table.Timestamp},
	}}}
}

// want makes a column that lines need and the table lacks.
func (d *Decoder) want(t *tableRows, name []byte, typ table.Type, role table.Role) (*column, bool) {
	if why := d.req.Refuse(t.name, string(name)); why != "" {
		return nil, d.lex.fail("%s", why)
	}
	if !d.create() {
		return nil, false
	}
	c := newColumn(string(name), 0, typ, role)
	t.columns[c.name] = c
	if role == table.Tag {
		c.keyPos = len(t.tags)
		t.tags = append(t.tags, c)
	}
	d.at.fresh = append(d.at.fresh, c)
	return c, true
}

// create counts something that this request would create.
func (d *Decoder) create() bool {
	if d.created >= d.opts.MaxNew {
		return d.lex.fail("the request would create more than %d tables and columns", d.opts.MaxNew)
	}
	d.created++
	return true
}
