package catalog

import (
	"context"
	"fmt"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
)

// Open reads the catalog kept in the edit log under prefix in bucket, or
// starts an empty one. A damaged record is an error that says which.
//
// Only one open Catalog may change a log. Another one that has changed it
// since makes every Update fail.
func Open(ctx context.Context, bucket objectstore.Bucket, prefix string, opts Options) (*Catalog, error) {
	opts = opts.withDefaults()
	log, state, err := editlog.Open(ctx, bucket, prefix, editlog.Options{Logger: opts.Logger})
	if err != nil {
		return nil, err // names the step and the log
	}
	view, err := Replay(state)
	if err != nil {
		return nil, fmt.Errorf("replay log %s: %w", prefix, err)
	}
	c := newCatalog(opts, log, view)
	c.edits = len(state.Edits)
	return c, nil
}

// Replay returns the catalog that a log holds; tools use it to check one that
// they do not open.
func Replay(state editlog.State) (*View, error) {
	view := emptyView()
	if state.Checkpoint != nil {
		var err error
		if view, err = decodeCheckpoint(state.Checkpoint); err != nil {
			return nil, fmt.Errorf("checkpoint: %w", err)
		}
	}
	for i, data := range state.Edits {
		next, err := decodeEdit(data, view)
		if err != nil {
			return nil, fmt.Errorf("edit %d of %d after the checkpoint: %w", i+1, len(state.Edits), err)
		}
		view = next
	}
	return view, nil
}
