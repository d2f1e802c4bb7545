// Package merge makes one sorted stream of rows out of several, and of several
// versions of a row one.
package merge

import (
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// Options says what New makes.
type Options struct {
	Request run.Request     // what the merged Source answers
	Mode    table.MergeMode // what becomes of several rows with one identity

	// KeepTombstones keeps the newest tombstone of an identity, for a file
	// that is not the oldest: it still hides rows elsewhere. Without it
	// tombstones hide what is older here, and are gone.
	KeepTombstones bool
}

// SourceRequest returns what the sources of a merge that answers req must be
// asked for.
func SourceRequest(req run.Request) run.Request {
	req.Identity, req.Alone = true, false
	return req
}

// New merges sources that answer SourceRequest(opts.Request) and takes them
// over: closing the merge closes them. Where sequences are equal, a later
// source is newer. A single source is legal, and has its own repeats merged.
func New(sources []run.Source, opts Options) run.Source { panic("merge: being built") }
