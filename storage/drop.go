package storage

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/table"
)

// Drop forgets a table that the catalog no longer holds. Snapshots that have
// it pinned can be read to their end; files go when the last one is closed.
// What a crash before that leaves is removed after the next Open.
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
	e.mu.dropped[id] = true
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
	case r.flushing <- struct{}{}:
		defer func() { <-r.flushing }()
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

// RemoveDropped deletes the files of tables that the catalog knows to be
// dropped: their ids are below NextTable and it does not hold them. A crash
// between the catalog's edit and the end of Drop leaves such files. Open starts
// it in the background; without NextTable it does nothing.
//
// A table that is dropped while the engine runs is Drop's alone, because
// snapshots may have its files pinned.
func (e *Engine) RemoveDropped(ctx context.Context) error {
	if e.opts.NextTable == 0 {
		return nil
	}
	objects, err := e.opts.Bucket.List(ctx, e.opts.Prefix+"/")
	if err != nil {
		return fmt.Errorf("remove files of dropped tables: %w", err)
	}
	// Manifests go last, so that what is left of a table says what it was.
	for _, manifests := range []bool{false, true} {
		for _, o := range objects {
			id, ok := tableOf(e.opts.Prefix, o.Key)
			if !ok || strings.Contains(o.Key, "/manifest/") != manifests || !e.isLeftover(id) {
				continue
			}
			if err := e.opts.Bucket.Delete(ctx, o.Key); err != nil {
				return fmt.Errorf("remove files of dropped table %d: delete %s: %w", id, o.Key, err)
			}
			e.opts.Logger.Info("storage: a file of a dropped table is removed", "key", o.Key)
		}
	}
	return nil
}

// tableOf returns the table that an object belongs to.
func tableOf(prefix, key string) (table.ID, bool) {
	rest, ok := strings.CutPrefix(key, prefix+"/")
	word, _, found := strings.Cut(rest, "/")
	id, err := strconv.ParseUint(word, 10, 32)
	return table.ID(id), ok && found && err == nil && id > 0
}

// isLeftover reports whether the table was dropped before the engine opened: a
// region of it can never be open. Whoever opens a region enters its slot
// before it asks for the table, so that one of the two shows it here.
func (e *Engine) isLeftover(id table.ID) bool {
	if _, ok := e.opts.Tables.TableByID(id); ok || id >= e.opts.NextTable {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.dropped[id] {
		return false
	}
	for region := range e.mu.regions {
		if region.Table() == id {
			return false
		}
	}
	return true
}
