package storage

import (
	"context"
	"errors"
	"sync"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// A pinned is a manifest version with the number of those who use it: the
// region itself, while it is the current one, and snapshots.
type pinned struct {
	*manifest.Version
	files []*file
	uses  int // guarded by the region's lock
}

// A file is an SST of a region as long as some pinned version holds it.
type file struct {
	*manifest.File
	key    string
	number uint64 // names its pages in the cache, whether its footer is kept or not
	uses   int    // versions that hold it; guarded by the region's lock
}

// installLocked makes v the current version. The caller collects afterwards.
func (r *region) installLocked(v *manifest.Version) {
	known := make(map[string]*file)
	if r.mu.version != nil {
		for _, f := range r.mu.version.files {
			known[f.Name] = f
		}
	}
	next := &pinned{Version: v, uses: 1}
	for _, m := range v.Files {
		f := known[m.Name]
		if f == nil {
			f = &file{File: m, key: sstKey(r.prefix, m.Name), number: cache.NewFile()}
		}
		f.uses++
		next.files = append(next.files, f)
	}
	old := r.mu.version
	r.mu.version = next
	if old != nil {
		r.unpinLocked(old)
	}
}

// unpinLocked gives one use of a version back.
func (r *region) unpinLocked(v *pinned) {
	if v.uses--; v.uses > 0 {
		return
	}
	var unused []*file
	for _, f := range v.files {
		if f.uses--; f.uses == 0 {
			unused = append(unused, f)
		}
	}
	r.mu.garbage = append(r.mu.garbage, unused...)
}

// collectLater is collect in the background, for callers in a hurry: queries.
func (r *region) collectLater() {
	r.mu.Lock()
	some := len(r.mu.garbage) > 0
	r.mu.Unlock()
	if some && !r.e.deleteLater(r.collect) {
		r.collect()
	}
}

// collect deletes the files that no version holds any more. The caller does
// not hold the region's lock.
func (r *region) collect() {
	r.mu.Lock()
	unused := r.mu.garbage
	r.mu.garbage = nil
	r.mu.Unlock()
	names := make([]string, len(unused))
	for i, f := range unused {
		names[i] = f.Name
		r.e.readers.forget(f.key)
	}
	r.deleteFiles(names)
}

// reader returns the reader of a file. Footers of files that were read lately
// are kept, and who needs one that is being read waits for it.
func (e *Engine) reader(ctx context.Context, f *file) (*sst.Reader, error) {
	if r, ok := e.readers.get(f.key); ok {
		return r, nil
	}
	opened := e.opening.DoChan(f.key, func() (any, error) {
		if r, ok := e.readers.get(f.key); ok {
			return r, nil
		}
		// Others wait for it too, so it does not end with this caller.
		r, err := sst.Open(context.WithoutCancel(ctx), e.opts.Bucket, f.key, f.Meta, e.pages, f.number)
		if err != nil {
			return nil, err
		}
		e.readers.put(f.key, r, r.Size())
		return r, nil
	})
	select {
	case res := <-opened:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*sst.Reader), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A Damage is a file of which some part cannot be served.
type Damage struct {
	Key    string // in the bucket
	Reason string // of the first part that was found
}

// damage is the list of damaged files that scans have met.
type damage struct {
	mu    sync.Mutex
	files map[string]string // key → reason
}

// Damaged returns the files that scans found damaged since Open. What is
// undamaged in them is served.
func (e *Engine) Damaged() []Damage {
	e.damaged.mu.Lock()
	defer e.damaged.mu.Unlock()
	var list []Damage
	for key, reason := range e.damaged.files {
		list = append(list, Damage{key, reason})
	}
	return list
}

// isDamage reports whether err says that a file is not what was written.
func isDamage(err error) bool {
	var d *sst.Damaged
	return errors.As(err, &d) || errors.Is(err, objectstore.ErrNotFound)
}

// noteLoss notes that rows of a file cannot be read. Each scan that meets the
// damage counts it, so that its reader can be warned. The file is still read:
// what is undamaged in it is served.
func (e *Engine) noteLoss(f *file, err error, stats *table.ScanStats) {
	stats.Damage(f.key)
	e.noteDamage(f, err)
}

// noteDamage notes that a file is damaged. The log hears of it once.
func (e *Engine) noteDamage(f *file, err error) {
	e.damaged.mu.Lock()
	defer e.damaged.mu.Unlock()
	if _, known := e.damaged.files[f.key]; known {
		return
	}
	if e.damaged.files == nil {
		e.damaged.files = make(map[string]string)
	}
	e.damaged.files[f.key] = err.Error()
	e.metrics.damagedFiles.Inc()
	e.opts.Logger.Error("storage: a file is damaged; what is undamaged in it is served", "key", f.key, "error", err)
}
