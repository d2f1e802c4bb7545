package storage

import (
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/table"
)

// CacheStats returns what the page cache did and holds.
func (e *Engine) CacheStats() cache.Stats { return e.pages.Stats() }

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
