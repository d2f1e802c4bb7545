// Package run is how the parts of the engine hand each other sorted rows: a
// memtable or an SST is a Source, a merge of several is one again, and a flush
// or compaction writes one out.
package run

import (
	"context"

	"github.com/varvedb/varve/table"
)

// A Batch is consecutive rows of one Source, sorted by series key, then time,
// then sequence with the newest first. It is good until the Source's next
// call; only its Dicts live on.
type Batch struct {
	Len     int
	Columns []table.Vector // as asked for, in that order

	// The identity and age of the rows, filled only if Request.Identity.
	Keys      [][]byte // the series keys of the stretches of this batch, ascending
	Starts    []uint32 // Starts[i] is the first row of the stretch with Keys[i]
	Times     []int64
	Sequences []uint64   // nil: all rows have Sequence
	Sequence  uint64     //
	Ops       []table.Op // nil: all are puts
}

// A Source is a stream of sorted rows. One goroutine uses it at a time.
type Source interface {
	// Next returns the next batch, of at least one row, or nil at the end.
	Next(ctx context.Context) (*Batch, error)
	// Close releases memory; it may be called at any time, and twice.
	Close()
}

// Distinct is implemented by a Source that can promise that no two of its rows
// share an identity; a merge then need not look.
type Distinct interface {
	// Distinct reports whether the promise is given.
	Distinct() bool
}

// A Request says which rows and columns of a source are wanted.
type Request struct {
	Schema  *table.Schema    // names and types to answer in
	Columns []table.ColumnID // a column the source lacks is all nulls

	// Rows outside Times, rows outside [FirstKey, EndKey), and rows that fail
	// a predicate on a tag are never returned.
	Times            table.TimeRange
	FirstKey, EndKey []byte // nil: unbounded
	Predicates       []table.Predicate

	// Alone says that no other source holds rows of the identities in this
	// one, and this one no two rows of one identity (unless every row is to be
	// kept), so that predicates on fields may prune too. Where it is false
	// they must be ignored: an older or newer version may change the row.
	Alone bool

	// Selection, if not nil, narrows the request further. Who sets it has
	// applied the predicates on tags to Selection.Series.
	Selection *Selection

	// Identity asks for keys, times, sequences and operations.
	Identity bool

	Stats *table.ScanStats // never nil
}
