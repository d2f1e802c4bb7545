package storage

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// lookEvery is how often the flusher looks at ages and the log when nobody
// wakes it.
const lookEvery = 15 * time.Second

// softLimit is the size of all memtables at which the largest are flushed.
func (e *Engine) softLimit() int64 { return e.opts.MemtableBytes / 2 }

// wakeFlusher makes the flusher look at the memtables.
func (e *Engine) wakeFlusher() {
	select {
	case e.kick <- struct{}{}:
	default: // a token is there already
	}
}

// runFlusher flushes what is due until Close.
func (e *Engine) runFlusher() error {
	var running errgroup.Group
	defer func() { _ = running.Wait() }()
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return nil
		case <-e.kick:
		case <-timer.C:
		}
		wait := lookEvery
		loads := e.loads()
		flush, segment, small := e.relieveLog(loads)
		if len(small) > 0 && e.relocating.CompareAndSwap(false, true) {
			running.Go(func() error { return e.relocate(segment, small) })
		}
		for _, d := range e.due(loads, flush) {
			if d.after > 0 {
				wait = min(wait, d.after)
				continue
			}
			select {
			case d.region.flushing <- struct{}{}:
			default:
				continue
			}
			running.Go(func() error {
				err := d.region.flushHeld(e.ctx, d.reason)
				if err != nil && !errors.Is(err, context.Canceled) {
					e.opts.Logger.Error("storage: a flush failed and will be tried again", "error", err)
				}
				return nil
			})
		}
		timer.Reset(wait)
	}
}

// A dueFlush is a region to flush, at once or after a while.
type dueFlush struct {
	region *region
	reason string
	after  time.Duration
}

// A load is what the choice of flushes is made from.
type load struct {
	region  *region
	bytes   int64 // in memtables that are not sealed
	sealed  int64 // bytes on their way to files
	busy    bool  // a flush is running
	failing bool  // the last flush failed
	age     time.Duration
	backOff time.Duration
}

func (r *region) load(now time.Time) load {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := load{region: r, bytes: r.mu.bytes, busy: len(r.flushing) > 0, failing: r.mu.backoff > 0}
	for _, set := range r.mu.sealed {
		for _, t := range set.tables {
			l.sealed += t.Bytes()
		}
	}
	if r.mu.bytes > 0 {
		l.age = now.Sub(r.mu.since)
	}
	if r.mu.retryAt.After(now) {
		l.backOff = r.mu.retryAt.Sub(now)
	}
	return l
}

// loads returns the regions that have something in memory, largest first.
func (e *Engine) loads() []load {
	var loads []load
	for _, r := range e.openRegions() {
		if l := r.load(e.opts.Now()); l.bytes > 0 || l.sealed > 0 {
			loads = append(loads, l)
		}
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(b.bytes, a.bytes) })
	return loads
}

// due returns what is to be flushed and why, in the order of loads; logged are
// the regions that the log wants flushed.
func (e *Engine) due(loads []load, logged map[table.RegionID]bool) []dueFlush {
	over := e.overSoftLimit(loads)
	var due []dueFlush
	for _, l := range loads {
		d := dueFlush{region: l.region, after: l.backOff}
		switch {
		case l.busy:
			continue // it wakes the flusher at its end
		case l.bytes >= e.opts.FlushBytes:
			d.reason = "size"
		case over > 0 && l.bytes > 0:
			d.reason = "memory"
		case l.sealed > 0:
			d.reason = "retry"
		case logged[l.region.id]:
			d.reason = "wal"
		case l.age >= e.maxAge(l.region.id):
			d.reason = "age"
		default:
			continue
		}
		if !l.failing {
			over -= l.bytes
		}
		due = append(due, d)
	}
	return due
}

// overSoftLimit returns how many bytes should leave the memtables beyond those
// that are on their way to files. What a region holds that cannot be flushed
// is not: it makes the budget smaller, of which the others may use half, so
// that their rows go to files before all writes have to wait.
func (e *Engine) overSoftLimit(loads []load) int64 {
	var stuck, leaving int64
	for _, l := range loads {
		if l.failing {
			stuck += l.bytes + l.sealed
		} else {
			leaving += l.sealed
		}
	}
	free := max(e.opts.MemtableBytes-stuck, 0)
	return e.memBytes.Load() - stuck - leaving - free/2
}

// relocateShare is the part of the log's limit that may be copied to its head
// at a time: small cold regions cost less to copy than to flush, but copying
// many of them again and again would not make the log smaller.
const relocateShare = 8

// relieveLog chooses what to do about the regions that keep the oldest segment
// of a log that is too large: those to flush are returned, those to relocate
// are few and small, or not open.
func (e *Engine) relieveLog(loads []load) (flush map[table.RegionID]bool, segment uint64, relocate []table.RegionID) {
	p := e.log.Pressure()
	if !p.Over() {
		return nil, 0, nil
	}
	inMemory := make(map[table.RegionID]int64, len(loads))
	for _, l := range loads {
		inMemory[l.region.id] = l.bytes
	}
	flush = make(map[table.RegionID]bool)
	room := p.MaxBytes / relocateShare
	for _, b := range slices.Backward(p.Regions) { // smallest first
		bytes, open := inMemory[b.Region]
		if open && (bytes >= e.opts.FlushBytes/64 || b.Bytes > room) {
			flush[b.Region] = true
			continue
		}
		room -= b.Bytes
		relocate = append(relocate, b.Region)
	}
	return flush, p.Segment, relocate
}

// relocate copies records of small regions to the head of the log.
func (e *Engine) relocate(segment uint64, regions []table.RegionID) error {
	defer e.relocating.Store(false)
	if err := e.log.Relocate(e.ctx, segment, regions...); err != nil && !errors.Is(err, context.Canceled) {
		e.opts.Logger.Error("storage: records could not be relocated in the log", "segment", segment, "error", err)
	}
	return nil
}

var ageSeed = maphash.MakeSeed()

// maxAge returns the age at which a region is flushed. It differs by region so
// that those that began together do not end together.
func (e *Engine) maxAge(id table.RegionID) time.Duration {
	spread := maphash.Comparable(ageSeed, id) % 1024
	return e.opts.FlushAge + e.opts.FlushAge/4*time.Duration(spread)/1024
}

// flushAll flushes every open region, and returns all errors.
func (e *Engine) flushAll(ctx context.Context, reason string) error {
	var g errgroup.Group
	var mu sync.Mutex
	var errs []error
	g.SetLimit(parallelFlushes)
	for _, r := range e.openRegions() {
		g.Go(func() error {
			if err := r.flush(ctx, reason); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// Flush writes what the table has in memory to SSTs.
func (e *Engine) Flush(ctx context.Context, info *table.Info) error {
	for n := range max(info.Regions, 1) {
		r, err := e.region(ctx, info.ID.Region(n))
		if err != nil {
			return err
		}
		if err := r.flush(ctx, "admin"); err != nil {
			return err
		}
	}
	return nil
}

// A roomSignal wakes all who wait for memory.
type roomSignal struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next signal; nil if nobody waits
}

func (s *roomSignal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *roomSignal) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// waitForRoom returns when the memtables are within their budget, or
// Unavailable when that takes too long.
func (e *Engine) waitForRoom(ctx context.Context) error {
	if e.memBytes.Load() <= e.opts.MemtableBytes {
		return nil
	}
	e.metrics.stalls.Inc()
	timer := time.NewTimer(e.opts.WriteWait)
	defer timer.Stop()
	for {
		changed := e.room.wait()
		if e.memBytes.Load() <= e.opts.MemtableBytes {
			return nil
		}
		e.wakeFlusher()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.ctx.Done():
			return errClosed
		case <-timer.C:
			return fault.Errorf(fault.Unavailable, "memory for new rows is full (%d of %d bytes) and could not be flushed within %v",
				e.memBytes.Load(), e.opts.MemtableBytes, e.opts.WriteWait)
		}
	}
}
