package table

import "context"

// A Writer takes rows.
type Writer interface {
	// Write returns when the rows are durable and visible to every later
	// Snapshot. After an error none or all of them may be there; writing them
	// again is safe outside append tables. Errors carry a fault kind:
	// Unavailable for passing trouble, Invalid for rows that can never be
	// written.
	Write(ctx context.Context, info *Info, region uint32, rows *Rows) error
}

// A Reader gives consistent views of tables.
type Reader interface {
	// Snapshot pins the table as it is now, in all its regions. The caller
	// closes it.
	Snapshot(ctx context.Context, info *Info) (Snapshot, error)
}

// A Snapshot is one table at one moment. It may be used by several goroutines
// and scanned several times; every scan sees the same rows.
type Snapshot interface {
	// Info returns the table as it was given to Reader.Snapshot; its schema
	// is the one that scans answer in.
	Info() *Info

	// Scan plans a read and returns its partitions. They hold disjoint rows,
	// may be read in parallel, and must all be closed before the Snapshot is.
	Scan(ctx context.Context, spec ScanSpec) ([]Partition, error)

	// Close releases what the snapshot pins.
	Close()
}

// A Partition is a stream of batches. One goroutine reads it at a time.
type Partition interface {
	// Rows returns an estimate of how many rows are to come.
	Rows() int64

	// Next returns the next batch, of at least one row, or nil at the end. The
	// batch belongs to the partition and is good until the next call; only its
	// Dicts live on.
	Next(ctx context.Context) (*Batch, error)

	// Close releases the partition's memory. It may be called at any time, and
	// more than once.
	Close()
}

// A Maintainer does to tables what is neither reading nor writing.
type Maintainer interface {
	// Flush writes what the table has in memory to SSTs.
	Flush(ctx context.Context, info *Info) error

	// Drop forgets a table that the catalog no longer holds, and frees its
	// memory and files.
	Drop(ctx context.Context, id ID) error
}

// A Resolver knows the tables that exist. The engine asks it for the current
// schema when it flushes, and after a crash for which tables still exist.
type Resolver interface {
	// TableByID returns the table, or false if it does not exist (any more).
	TableByID(id ID) (*Info, bool)
}
