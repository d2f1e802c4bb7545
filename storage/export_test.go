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
