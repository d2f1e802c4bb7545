package storage

import (
	"context"
	"sync"

	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/table"
)

// A snapshot is a table at one moment.
type snapshot struct {
	e       *Engine
	info    *table.Info
	regions []regionView
	once    sync.Once
}

// A regionView is one region at one moment. It was taken under the region's
// lock, so that of each write it has all rows or none.
type regionView struct {
	region *region
	files  *pinned
	memory []*memtable.Snapshot // by age of their sets
}

// Snapshot pins the table as it is now.
func (e *Engine) Snapshot(ctx context.Context, info *table.Info) (table.Snapshot, error) {
	s := &snapshot{e: e, info: info}
	for n := range max(info.Regions, 1) {
		r, err := e.region(ctx, info.ID.Region(n))
		if err != nil {
			s.Close()
			return nil, err
		}
		v, err := r.view()
		if err != nil {
			s.Close()
			return nil, err
		}
		s.regions = append(s.regions, v)
	}
	return s, nil
}

func (r *region) view() (regionView, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.dropped {
		return regionView{}, r.usableLocked()
	}
	v := regionView{region: r, files: r.mu.version}
	v.files.uses++
	for _, set := range r.mu.sealed {
		for _, t := range set.tables {
			v.memory = append(v.memory, t.Snapshot())
		}
	}
	for _, t := range r.memtablesLocked() {
		v.memory = append(v.memory, t.Snapshot())
	}
	return v, nil
}

// Info returns the table as it was given to Snapshot.
func (s *snapshot) Info() *table.Info { return s.info }

// Close releases the files. Those that nobody needs any more are deleted in the
// background.
func (s *snapshot) Close() {
	s.once.Do(func() {
		for _, v := range s.regions {
			v.region.mu.Lock()
			v.region.unpinLocked(v.files)
			v.region.mu.Unlock()
			v.region.collectLater()
		}
	})
}
