package storage

import (
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

// OverlapBytes returns how much is kept of the overlaps of files.
func (e *Engine) OverlapBytes() int64 {
	e.overlap.mu.Lock()
	defer e.overlap.mu.Unlock()
	return e.overlap.bytes
}
