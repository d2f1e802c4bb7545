package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/table"
)

// A region is one partition of a table, opened at its first use.
type region struct {
	e        *Engine
	id       table.RegionID
	prefix   string // of its keys in the bucket, ends with a slash
	manifest *manifest.Manifest

	// flushing holds the one token of whoever flushes or drops the region. It
	// is a channel because flushing is I/O and callers may give up waiting.
	flushing chan struct{}

	mu struct {
		sync.Mutex
		dropped bool
		failed  error // why the region refuses writes for good

		assigned uint64                   // the last sequence given to a write
		applied  uint64                   // every write up to it is in a memtable or was refused
		turns    map[uint64]chan struct{} // sequence → closed when the write before it is done

		info    *table.Info // the newest seen
		width   int64       // of new windows, in the unit of the time index; 0: not known yet
		windows map[int64]*memtable.Table
		strays  *memtable.Table // rows of more windows than maxWindows
		bytes   int64           // of windows and strays
		since   time.Time       // when the first row came into them
		sealed  []*sealedSet    // oldest first

		version *pinned
		garbage []*file   // that no version holds any more
		retryAt time.Time // no flush before it but by request
		backoff time.Duration
	}
}

// maxWindows bounds the memtables of a region. A batch with random times would
// else make one for each row; what is over goes to one table for all times,
// because overlap is judged on the times of rows and not on windows.
const maxWindows = 64

// strayWindow is the key of no window.
const strayWindow = -1 << 63

// A slot is a region that is open, or being opened, or could not be.
type slot struct {
	ready  chan struct{} // closed by who opens it
	region *region
	err    error
}

// region returns an open region. The caller may give up waiting for it.
func (e *Engine) region(ctx context.Context, id table.RegionID) (*region, error) {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	s, ok := e.mu.regions[id]
	if !ok {
		s = &slot{ready: make(chan struct{})}
		e.mu.regions[id] = s
		e.background.Go(func() error { e.openSlot(id, s); return nil })
	}
	e.mu.Unlock()
	select {
	case <-s.ready:
		return s.region, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// openSlot opens a region for all who wait for s, and so does not end with any
// of them. What fails is tried again by the next who asks.
func (e *Engine) openSlot(id table.RegionID, s *slot) {
	defer close(s.ready)
	s.region, s.err = e.openRegion(e.ctx, id)
	if s.err == nil {
		return
	}
	if e.ctx.Err() != nil {
		s.err = errClosed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.regions[id] == s {
		delete(e.mu.regions, id)
	}
}

// regionPrefix returns the prefix of a region's keys.
func regionPrefix(prefix string, id table.RegionID) string {
	return fmt.Sprintf("%s/%d/%d/", prefix, id.Table(), uint32(id))
}

func manifestPrefix(regionPrefix string) string { return regionPrefix + "manifest/" }

func sstKey(regionPrefix, name string) string { return regionPrefix + "sst/" + name }

// openRegion opens a region of a table that the catalog holds. Whoever drops a
// table takes it out of the catalog first and its slots after that, so a write
// that looked the table up before cannot bring its region back: either the
// table is gone here, or the slot is there for Drop to find.
func (e *Engine) openRegion(ctx context.Context, id table.RegionID) (*region, error) {
	if _, ok := e.opts.Tables.TableByID(id.Table()); !ok {
		return nil, fault.Errorf(fault.TableNotFound, "table %d has been dropped", id.Table())
	}
	if err := e.unrecovered[id]; err != nil {
		return nil, fault.Wrap(fault.Unavailable, fmt.Errorf("region %d of table %d needs a restart: %w", uint32(id), id.Table(), err))
	}
	r := &region{e: e, id: id, prefix: regionPrefix(e.opts.Prefix, id), flushing: make(chan struct{}, 1)}
	var err error
	r.manifest, err = manifest.Open(ctx, e.opts.Bucket, manifestPrefix(r.prefix), manifest.Options{Rand: &e.random, Logger: e.opts.Logger})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, fmt.Errorf("open region %d of table %d: %w", uint32(id), id.Table(), err))
	}
	v := r.manifest.Version()
	r.mu.assigned, r.mu.applied = v.FlushedSequence, v.FlushedSequence
	r.mu.turns = make(map[uint64]chan struct{})
	r.mu.windows = make(map[int64]*memtable.Table)
	r.installLocked(v)
	return r, nil
}

// openRegions returns the regions that are open.
func (e *Engine) openRegions() []*region {
	e.mu.Lock()
	defer e.mu.Unlock()
	regions := make([]*region, 0, len(e.mu.regions))
	for _, s := range e.mu.regions {
		select {
		case <-s.ready:
			if s.err == nil {
				regions = append(regions, s.region)
			}
		default:
		}
	}
	return regions
}

// usableLocked returns why the region cannot be used, if so.
func (r *region) usableLocked() error {
	switch {
	case r.mu.dropped:
		return fault.Errorf(fault.TableNotFound, "table %d has been dropped", r.id.Table())
	case r.mu.failed != nil:
		return fault.Wrap(fault.Unavailable, fmt.Errorf("region %d of table %d takes no more writes: %w", uint32(r.id), r.id.Table(), r.mu.failed))
	}
	return nil
}

// memtablesLocked returns the tables that rows are appended to.
func (r *region) memtablesLocked() []*memtable.Table {
	tables := make([]*memtable.Table, 0, len(r.mu.windows)+1)
	for _, t := range r.mu.windows {
		tables = append(tables, t)
	}
	if r.mu.strays != nil {
		tables = append(tables, r.mu.strays)
	}
	return tables
}
