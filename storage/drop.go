package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/varvedb/varve/table"
)

// Drop forgets a table that the catalog no longer holds. Snapshots that have
// it pinned can be read to their end; files go when the last one is closed. A
// crash before that leaves files that nothing names.
func (e *Engine) Drop(ctx context.Context, id table.ID) error {
	open, err := e.takeRegions(ctx, id)
	if err != nil {
		return err
	}
	for _, r := range open {
		if err := r.drop(ctx); err != nil {
			return err
		}
	}
	return e.deleteClosed(ctx, id, open)
}

// takeRegions removes the table's open regions from the engine.
func (e *Engine) takeRegions(ctx context.Context, id table.ID) ([]*region, error) {
	e.mu.Lock()
	var slots []*slot
	for regionID, s := range e.mu.regions {
		if regionID.Table() == id {
			slots = append(slots, s)
			delete(e.mu.regions, regionID)
		}
	}
	e.mu.Unlock()
	var open []*region
	for _, s := range slots {
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if s.err == nil {
			open = append(open, s.region)
		}
	}
	return open, nil
}

// drop ends a region: no write or flush is under way when it returns.
func (r *region) drop(ctx context.Context) error {
	select {
	case r.flushing <- struct{}{}: // and keep it: nobody flushes again
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	r.mu.dropped = true
	last := r.mu.assigned
	r.mu.Unlock()
	if last > 0 {
		r.awaitTurn(last + 1)
	}
	r.mu.Lock()
	tables := r.memtablesLocked()
	for _, t := range tables {
		t.Seal()
	}
	for _, set := range r.mu.sealed {
		tables = append(tables, set.tables...)
	}
	r.mu.windows, r.mu.strays, r.mu.sealed, r.mu.bytes = nil, nil, nil, 0
	r.unpinLocked(r.mu.version)
	r.mu.Unlock()
	r.collect()
	for _, t := range tables {
		t.Release()
	}
	r.e.room.signal()
	r.e.log.Forget(r.id)
	return nil
}

// deleteClosed deletes the manifests of a dropped table, and the files of its
// regions that were not open, so that nobody can have them pinned.
func (e *Engine) deleteClosed(ctx context.Context, id table.ID, open []*region) error {
	prefix := fmt.Sprintf("%s/%d/", e.opts.Prefix, id)
	objects, err := e.opts.Bucket.List(ctx, prefix)
	if err != nil {
		return fmt.Errorf("drop table %d: list its files: %w", id, err)
	}
	for _, o := range objects {
		pinned := false
		for _, r := range open {
			pinned = pinned || strings.HasPrefix(o.Key, r.prefix+"sst/")
		}
		if pinned {
			continue
		}
		if err := e.opts.Bucket.Delete(ctx, o.Key); err != nil {
			return fmt.Errorf("drop table %d: delete %s: %w", id, o.Key, err)
		}
	}
	return nil
}
