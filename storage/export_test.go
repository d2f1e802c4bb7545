package storage

import (
	"context"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/table"
)

// CacheStats returns what the page cache did and holds.
func (e *Engine) CacheStats() cache.Stats { return e.pages.Stats() }

// SetMaxTableRows makes memtables full at n rows.
func (e *Engine) SetMaxTableRows(n int) { e.maxTableRows = n }

// Windows returns how many memtables the region has for windows, and whether it
// has one for strays.
func (e *Engine) Windows(id table.RegionID) (windows int, strays bool) {
	for _, r := range e.openRegions() {
		if r.id == id {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.mu.windows), r.mu.strays != nil
		}
	}
	return 0, false
}

// AwaitDeletes returns when the files are gone that closed snapshots left.
func (e *Engine) AwaitDeletes() { e.deletes.Wait() }

// DropFooters forgets all footers, as many other files would do.
func (e *Engine) DropFooters() {
	for _, r := range e.openRegions() {
		r.mu.Lock()
		for _, f := range r.mu.version.files {
			e.readers.forget(f.key)
		}
		r.mu.Unlock()
	}
}

// RecoveryRelief returns how often Open flushed, and the largest size of the
// memtables while it replayed the log.
func (e *Engine) RecoveryRelief() (flushes int, peak int64) {
	return e.recovered.flushes, e.recovered.peak
}

// RelocateOldest copies the regions' records from the log's oldest closed
// segment to its head.
func (e *Engine) RelocateOldest(regions ...table.RegionID) error {
	return e.relocate(e.log.Pressure().Segment, regions)
}

// HoldFlushes keeps everybody from flushing a region until release is called,
// so that a test sees what writes alone do to its memtables.
func (e *Engine) HoldFlushes(id table.RegionID) (release func(), err error) {
	r, err := e.region(context.Background(), id)
	if err != nil {
		return nil, err
	}
	r.flushing <- struct{}{}
	return func() { <-r.flushing }, nil
}

// LargestTable returns the rows of the region's longest memtable that takes
// rows.
func (e *Engine) LargestTable(id table.RegionID) (rows int) {
	for _, r := range e.openRegions() {
		if r.id == id {
			r.mu.Lock()
			for _, t := range r.memtablesLocked() {
				rows = max(rows, t.Rows())
			}
			r.mu.Unlock()
		}
	}
	return rows
}
