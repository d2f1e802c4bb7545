package storage

import "github.com/varvedb/varve/storage/cache"

// CacheStats returns what the page cache did and holds.
func (e *Engine) CacheStats() cache.Stats { return e.pages.Stats() }
