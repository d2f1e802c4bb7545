// Package ingest takes what clients send and turns it into rows of tables:
// it makes the tables and columns that clients need, admits writes against
// the memory that they may take, and hands the rows to the engine.
package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest/lineprotocol"
	"github.com/varvedb/varve/table"
)

// Options tunes an Ingester. A zero field means its default.
type Options struct {
	NoCreate      bool                 // clients get no tables or columns that do not exist; they do
	InFlightBytes int64                // bytes of requests being worked on; 64 MiB
	AdmitWait     time.Duration        // how long a request waits for its share of them; 5s
	ParallelWrite int                  // tables of one request that are written at once; 8
	IdleDecoders  int                  // decoders kept with what they have seen; 2 for each CPU
	LineProtocol  lineprotocol.Options // limits of lines
	Now           func() time.Time     // time.Now
}

func (o Options) withDefaults() Options {
	o.InFlightBytes = cmp.Or(o.InFlightBytes, 64<<20)
	o.AdmitWait = cmp.Or(o.AdmitWait, 5*time.Second)
	o.ParallelWrite = cmp.Or(o.ParallelWrite, 8)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// An Ingester takes writes. It is safe for use by several goroutines.
type Ingester struct {
	opts     Options
	catalog  *catalog.Catalog
	writer   table.Writer
	inFlight *semaphore.Weighted
	decoders decoderPool

	beforeCreate func() // for tests: called before missing tables are created
}

// New returns an Ingester that keeps its tables in c and writes to w.
func New(c *catalog.Catalog, w table.Writer, opts Options) *Ingester {
	opts = opts.withDefaults()
	in := &Ingester{opts: opts, catalog: c, writer: w, inFlight: semaphore.NewWeighted(opts.InFlightBytes)}
	in.decoders.init(opts.IdleDecoders, opts.LineProtocol)
	return in
}

// Admit waits until n more bytes of writes may be worked on. Over a limit of
// time that is a fault.Unavailable: the client should try again later.
func (in *Ingester) Admit(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, in.opts.InFlightBytes) // a request over the limit runs alone
	wait, cancel := context.WithTimeout(ctx, in.opts.AdmitWait)
	defer cancel()
	if in.inFlight.Acquire(wait, n) == nil {
		return func() { in.inFlight.Release(n) }, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, fault.Errorf(fault.Unavailable,
		"writes are over their %d bytes of memory; try again later", in.opts.InFlightBytes)
}

// A Report says what became of a request.
type Report struct {
	Rows    int // rows that are written
	Dropped int // lines or rows that never can be
	Errors  []lineprotocol.LineError
}

// maxPasses bounds how often a request is decoded. Twice is the rule where it
// needs new columns; more often only where tables are dropped meanwhile.
const maxPasses = 5

// LineProtocol writes the lines of body into a database. Lines that cannot be
// written are in the Report and do not keep others from being written. An
// error means that the request as a whole failed, and a retryable one that it
// may be repeated.
func (in *Ingester) LineProtocol(ctx context.Context, db string, body []byte, p lineprotocol.Precision) (*Report, error) {
	if _, err := in.catalog.Database(db); err != nil {
		return nil, err
	}
	release, err := in.Admit(ctx, int64(len(body)))
	if err != nil {
		return nil, err
	}
	defer release()
	decoder := in.decoders.get(db)
	report, err := in.writeLines(ctx, decoder, db, body, p)
	in.decoders.put(db, decoder) // not deferred: a decoder that panicked is not used again
	return report, err
}

// writeLines decodes and writes, in several steps if one would take too much
// memory.
func (in *Ingester) writeLines(ctx context.Context, decoder *lineprotocol.Decoder, db string, body []byte, p lineprotocol.Precision) (*Report, error) {
	refusals := refusals{off: in.opts.NoCreate}
	request := lineprotocol.Request{Body: body, Precision: p, Now: in.opts.Now().UnixNano(), Refuse: refusals.why}
	report := &Report{}
	for {
		result, err := in.decode(ctx, decoder, db, request, &refusals)
		if err != nil {
			return nil, err
		}
		if err := in.write(ctx, result, report); err != nil {
			return nil, err
		}
		request.Body, request.FirstLine = request.Body[result.Used:], result.NextLine
		if len(request.Body) == 0 {
			return report, nil
		}
	}
}

// decode decodes against the tables as they are, after it has created those
// that are missing.
func (in *Ingester) decode(ctx context.Context, decoder *lineprotocol.Decoder, db string, request lineprotocol.Request, refused *refusals) (*lineprotocol.Result, error) {
	for range maxPasses {
		view := in.catalog.View()
		request.Lookup = func(name string) *table.Info {
			info, err := view.Table(db, name)
			if err != nil {
				return nil
			}
			return info
		}
		result := decoder.Decode(&request)
		if len(result.Missing) == 0 {
			return result, nil
		}
		if err := in.create(ctx, db, result.Missing, refused); err != nil {
			return nil, fmt.Errorf("create what the lines need: %w", err)
		}
		request.Again = true
	}
	return nil, fault.Errorf(fault.Unavailable, "the tables of database %q change too fast; try again later", db)
}

// refusals remembers what cannot be created, and why.
type refusals struct {
	off bool // nothing can
	of  map[[2]string]string
}

// why returns why a column, or with an empty name the table, cannot be
// created.
func (r *refusals) why(table, column string) string {
	switch {
	case !r.off:
		return r.of[[2]string{table, column}]
	case column == "":
		return fmt.Sprintf("table %q does not exist, and writes may not create it", table)
	default:
		return fmt.Sprintf("table %q has no column %q, and writes may not add it", table, column)
	}
}

func (r *refusals) add(table, column string, err error) {
	if r.of == nil {
		r.of = make(map[[2]string]string)
	}
	r.of[[2]string{table, column}] = err.Error()
}

// create makes everything that is missing in one change of the catalog.
func (in *Ingester) create(ctx context.Context, db string, missing []lineprotocol.Missing, refused *refusals) error {
	if in.beforeCreate != nil {
		in.beforeCreate()
	}
	return in.catalog.Update(ctx, func(t *catalog.Txn) error {
		database, err := t.Database(db)
		if err != nil {
			return err
		}
		for i := range missing {
			createOne(t, database, &missing[i], refused)
		}
		return nil
	})
}

// createOne makes a table with its columns, or adds those that it lacks.
// Another writer may have done part of it; what exists is left as it is.
func createOne(t *catalog.Txn, db *catalog.Database, m *lineprotocol.Missing, refused *refusals) {
	info := m.Info
	if info == nil {
		spec := catalog.Spec{Database: db.Name, Name: m.Name, Columns: m.Columns, Comment: "Created on insertion"}
		spec.Options, spec.Merge = db.Inherit(nil, table.LastNonNull) // a line may hold a part of the fields
		var created bool
		var err error
		if info, created, err = t.CreateTable(spec, true); created {
			return
		}
		if err != nil { // perhaps for one of the columns
			spec.Columns = timeIndexOf(m.Columns)
			if info, _, err = t.CreateTable(spec, true); err != nil {
				refused.add(m.Name, "", err)
				return
			}
		}
	}
	columns := make([]table.Column, 0, len(m.Columns))
	for _, c := range m.Columns {
		if c.Role != table.Timestamp {
			columns = append(columns, c)
		}
	}
	_, not, err := t.Widen(info.ID, columns)
	if err != nil {
		return // the table is gone: the next pass makes a new one
	}
	for _, r := range not {
		refused.add(m.Name, r.Column, r.Err)
	}
}

func timeIndexOf(columns []table.Column) []table.Column {
	for _, c := range columns {
		if c.Role == table.Timestamp {
			return []table.Column{c}
		}
	}
	return nil
}
