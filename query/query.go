// Package query runs SELECT statements on the tables of a table.Reader, with
// DuckDB embedded. All of cgo and DuckDB in Varve is in here.
//
// A statement goes through four steps:
//
//  1. parse: DuckDB's own parser turns the text into a tree.
//  2. rewrite: the tree is checked against what may be reached by SQL, its
//     tables are resolved and pinned by one snapshot each, its time literals
//     become values of the columns they meet, and what a table reference is
//     filtered by becomes the spec of its scan.
//  3. run: DuckDB plans the tree printed as SQL again; its scans read the
//     snapshots.
//  4. stream: the rows come back chunk by chunk, in bounded memory.
package query

import (
	"context"
	"time"

	"github.com/varvedb/varve/table"
)

// Tables resolves the names in a statement.
type Tables interface {
	// Resolve returns the table that name means in database: the one of exactly
	// that name, else the only one that differs just in case. Errors have the
	// kinds TableNotFound, DatabaseMissing, or Plan where several tables differ
	// just in case.
	Resolve(database, name string) (*table.Info, error)
}

// A Request is one statement to run.
type Request struct {
	SQL      string         // one SELECT, VALUES or WITH, or EXPLAIN [ANALYZE] of one
	Database string         // where unqualified names are looked up
	TimeZone *time.Location // of time literals without an offset; nil: UTC
	Now      time.Time      // what now() is; zero: the time of the call
	Tables   Tables
	Reader   table.Reader
}

// A Column is a column of a Result.
type Column struct {
	Name string

	// Type is the name of the type as results carry it, such as Int64,
	// TimestampNanosecond, Decimal(38, 2), List<String> or Json.
	Type string

	// Table is the table type that the column's values fit without change, or
	// InvalidType.
	Table table.Type
}

// TableStats is what one table of a statement cost to read.
type TableStats struct {
	Database, Table string
	*table.ScanStats
}

// Query starts a statement and returns when it is known to be right and its
// first rows are there. The caller closes the Result, which holds one of the
// engine's running slots until then; the end of ctx ends the statement.
func (e *Engine) Query(ctx context.Context, req Request) (*Result, error) {
	if req.TimeZone == nil {
		req.TimeZone = time.UTC
	}
	if req.Now.IsZero() {
		req.Now = time.Now()
	}
	return e.run(ctx, req)
}
