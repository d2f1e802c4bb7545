package storage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

// A relief flushes regions while the log is replayed, so that a log with more
// rows than the memtables may hold can be recovered. That happens when the
// memory limit is smaller than it was, or when flushes failed for long.
//
// A flush says that everything of the region up to some sequence is in files,
// and the rows of a file must be a contiguous part of the region's history. But
// the log is not in the order of sequences: writers race, and records are
// relocated. So the log is read ahead once for its sequences, and a region is
// flushed only when all that the log has of it up to the largest applied
// sequence is applied.
type relief struct {
	ahead    map[table.RegionID]*roaring64.Bitmap // all sequences in the log; nil: not read yet
	look     int64                                // size of the memtables at which all regions are looked at
	flushes  int
	failures int
	peak     int64 // bytes of the memtables
}

// maxReliefFailures is how many flushes may fail until the rest is recovered
// into memory: a disk that is full must not keep its rows from being read.
const maxReliefFailures = 3

// relieve is called when a record of the region was applied.
func (rec *recovery) relieve(id table.RegionID) error {
	r := &rec.relief
	held, limit := rec.e.memBytes.Load(), rec.e.softLimit()
	r.peak = max(r.peak, held)
	if held < limit || r.failures >= maxReliefFailures {
		return nil
	}
	if r.ahead == nil {
		if err := rec.readAhead(); err != nil {
			return err
		}
		r.look = held
	}
	step := max(limit/16, 1)
	if held >= r.look {
		rec.flushLargest(limit / 2)
		r.look = rec.e.memBytes.Load() + step
		return nil
	}
	if to := rec.regions[id]; to.bytes() >= step {
		rec.flush(to, id)
	}
	return nil
}

func (rec *recovery) readAhead() error {
	ahead := make(map[table.RegionID]*roaring64.Bitmap)
	_, err := wal.Check(rec.ctx, rec.e.opts.Disk, WALDir(rec.e.opts.DataDir), func(_ uint64, r wal.Record) error {
		if ahead[r.Region] == nil {
			ahead[r.Region] = roaring64.New()
		}
		ahead[r.Region].Add(r.Sequence)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read ahead: %w", err)
	}
	rec.relief.ahead = ahead
	return nil
}

// flushLargest flushes regions, the largest first, until the memtables hold no
// more than goal.
func (rec *recovery) flushLargest(goal int64) {
	var ids []table.RegionID
	sizes := make(map[table.RegionID]int64)
	for id, to := range rec.regions {
		if n := to.bytes(); n > 0 {
			ids, sizes[id] = append(ids, id), n
		}
	}
	slices.SortFunc(ids, func(a, b table.RegionID) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	for _, id := range ids {
		if rec.e.memBytes.Load() <= goal || rec.relief.failures >= maxReliefFailures {
			return
		}
		rec.flush(rec.regions[id], id)
	}
}

// flush flushes a region if everything up to its largest applied sequence is
// applied. What cannot be flushed stays in memory and in the log.
func (rec *recovery) flush(to *recovered, id table.RegionID) {
	if !to.complete(rec.relief.ahead[id]) {
		return
	}
	to.region.mu.Lock()
	to.region.mu.assigned, to.region.mu.applied = to.last, to.last
	to.region.mu.Unlock()
	if err := to.region.flush(rec.ctx, "recovery"); err != nil {
		rec.relief.failures++
		rec.e.opts.Logger.Error("storage: a flush during recovery failed; the rows stay in memory", "region", id, "error", err)
		return
	}
	to.seen.Clear() // what comes again is not above the flushed sequence
	rec.relief.flushes++
}

// complete reports whether all sequences of ahead that are not flushed, up to
// the largest one that was met, are applied.
func (to *recovered) complete(ahead *roaring64.Bitmap) bool {
	flushed := to.region.mu.version.FlushedSequence // nobody else is here yet
	return ahead != nil && to.last > flushed && ahead.Rank(to.last)-ahead.Rank(flushed) == to.seen.Rank(to.last)-to.seen.Rank(flushed)
}

// bytes returns the size of the region's open memtables.
func (to *recovered) bytes() int64 {
	if to.region == nil {
		return 0
	}
	to.region.mu.Lock()
	defer to.region.mu.Unlock()
	return to.region.mu.bytes
}
