package sql

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/table"
)

// An Ingester writes the rows of one table to its regions.
type Ingester interface {
	// Admit waits until n more bytes of writes may be worked on.
	Admit(ctx context.Context, n int64) (release func(), err error)

	// Rows writes all rows, or returns an error.
	Rows(ctx context.Context, info *table.Info, rows *table.Rows) error
}

// Options says what an Engine works with. A zero field means its default,
// where one is stated.
type Options struct {
	Catalog     *catalog.Catalog
	Query       *query.Engine
	Ingest      Ingester
	Reader      table.Reader
	Maintainer  table.Maintainer
	InsertBytes int          // memory that the rows of one INSERT may take; 256 MiB
	Version     string       // what version() answers; "dev"
	Logger      *slog.Logger // slog.Default()
}

// An Engine runs statements. It is safe for use by several goroutines.
type Engine struct {
	opts Options

	// run is Query.Query, except in tests.
	run func(ctx context.Context, req query.Request) (Records, error)
}

// New returns an Engine.
func New(opts Options) *Engine {
	opts.InsertBytes = cmp.Or(opts.InsertBytes, 256<<20)
	opts.Version = cmp.Or(opts.Version, "dev")
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	e := &Engine{opts: opts}
	e.run = func(ctx context.Context, req query.Request) (Records, error) {
		r, err := e.opts.Query.Query(ctx, req)
		if err != nil {
			return nil, err
		}
		return queryRecords{r}, nil
	}
	return e
}

// A Session is what statements find and may change: USE and SET act on the
// ones behind them. One goroutine uses it at a time.
type Session struct {
	Database string         // of names without one; empty: public
	TimeZone *time.Location // of times without an offset; nil: UTC
	Now      time.Time      // what now() is; zero: the time of each statement
}

func (s *Session) zone() *time.Location {
	if s.TimeZone == nil {
		return time.UTC
	}
	return s.TimeZone
}

func (s *Session) now() time.Time {
	if s.Now.IsZero() {
		return time.Now()
	}
	return s.Now
}

func (s *Session) database() string { return cmp.Or(s.Database, catalog.Public) }

// A Result is what one statement gave: Records, or else a number of rows.
type Result struct {
	Records  Records // nil for a statement that changes something
	Affected int64
}

// Run runs the statements of a script one after the other and gives the result
// of each to yield, which reads its Records before it returns; Run closes
// them. The first error, of a statement or of yield, ends the script. What the
// statements before it have done stays done.
func (e *Engine) Run(ctx context.Context, s *Session, script Script, yield func(Result) error) error {
	for i := range script {
		if err := ctx.Err(); err != nil {
			return err
		}
		result, err := e.statement(ctx, s, &script[i])
		if err == nil {
			err = yield(result)
		}
		if result.Records != nil {
			result.Records.Close()
		}
		if err != nil {
			return inStatement(err, i, len(script))
		}
	}
	return nil
}

func (e *Engine) statement(ctx context.Context, s *Session, st *Statement) (Result, error) {
	switch n := st.node.(type) {
	case selectQuery:
		return e.selectQuery(ctx, s, st.Text)
	case insert:
		return affected(e.insert(ctx, s, st.Text, n))
	case createDatabase:
		return affected(1, e.createDatabase(ctx, n))
	case createTable:
		return affected(0, e.createTable(ctx, s, n))
	case dropTable:
		return affected(0, e.dropTable(ctx, s, n))
	case dropDatabase:
		return affected(0, e.dropDatabase(ctx, n))
	case showDatabases:
		return rows(e.showDatabases(n))
	case showTables:
		return rows(e.showTables(s, n))
	case showCreateTable:
		return rows(e.showCreateTable(s, n))
	case describeTable:
		return rows(e.describeTable(s, n))
	case flushTable:
		return affected(0, e.flushTable(ctx, s, n))
	case useDatabase:
		_, err := e.opts.Catalog.Database(n.name.text)
		if err == nil {
			s.Database = n.name.text
		}
		return affected(0, err)
	case setTimeZone:
		zone, err := table.ParseZone(n.zone)
		if err == nil {
			s.TimeZone = zone
		}
		return affected(0, err)
	default:
		panic(fmt.Sprintf("sql: no way to run a %T", n))
	}
}

func affected(n int64, err error) (Result, error) { return Result{Affected: n}, err }

func rows(l *listing, err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	return Result{Records: l}, nil
}

func (e *Engine) selectQuery(ctx context.Context, s *Session, text string) (Result, error) {
	text, err := rewrite(text, s, e.opts.Version)
	if err != nil {
		return Result{}, err
	}
	r, err := e.query(ctx, s, text, s.now())
	return Result{Records: r}, err
}

// query runs a query that is already rewritten.
func (e *Engine) query(ctx context.Context, s *Session, text string, now time.Time) (Records, error) {
	return e.run(ctx, query.Request{
		SQL: text, Database: s.database(), TimeZone: s.zone(), Now: now,
		Tables: e.opts.Catalog, Reader: e.opts.Reader,
	})
}

// CheckDatabase returns a fault.DatabaseMissing unless the database exists.
func (e *Engine) CheckDatabase(name string) error {
	_, err := e.opts.Catalog.Database(name)
	return err
}

// resolve returns the table that n means.
func (e *Engine) resolve(s *Session, n tableName) (*table.Info, error) {
	database := cmp.Or(n.database.text, s.database())
	if n.table.quoted {
		return e.opts.Catalog.Table(database, n.table.text)
	}
	return e.opts.Catalog.Resolve(database, n.table.text)
}

func (e *Engine) flushTable(ctx context.Context, s *Session, n flushTable) error {
	info, err := e.resolve(s, n.name)
	if err != nil {
		return err
	}
	return e.opts.Maintainer.Flush(ctx, info)
}

// forget drops the data of tables that the catalog no longer holds. The
// statement stands where that fails: the engine frees what belongs to no table
// when it opens.
func (e *Engine) forget(ctx context.Context, dropped ...*table.Info) {
	for _, info := range dropped {
		if err := e.opts.Maintainer.Drop(context.WithoutCancel(ctx), info.ID); err != nil {
			e.opts.Logger.Warn("sql: free a dropped table", "database", info.Database, "table", info.Name, "id", info.ID, "error", err)
		}
	}
}

// skipMissing turns the absence of something into no error, if skip is set.
func skipMissing(err error, skip bool) error {
	if k := fault.KindOf(err); err != nil && skip && (k == fault.TableNotFound || k == fault.DatabaseMissing) {
		return nil
	}
	return err
}
