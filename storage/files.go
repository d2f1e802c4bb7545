package storage

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/varvedb/varve/objectstore"
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

	conflicts conflictCache
}

// A file is an SST of a region as long as some pinned version holds it.
type file struct {
	*manifest.File
	key  string
	uses int // versions that hold it; guarded by the region's lock
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
			f = &file{File: m, key: sstKey(r.prefix, m.Name)}
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

// A readerCache keeps the footers of files that were read lately.
type readerCache struct {
	limit int64 // bytes

	mu      sync.Mutex
	bytes   int64
	order   list.List // of *openReader, the last used at the front
	entries map[string]*list.Element
}

type openReader struct {
	key    string
	reader *sst.Reader
	size   int64
}

func (c *readerCache) get(key string) *sst.Reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*openReader).reader
}

func (c *readerCache) put(key string, r *sst.Reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[string]*list.Element)
	}
	if _, ok := c.entries[key]; ok {
		return
	}
	o := &openReader{key, r, r.Size()}
	c.entries[key] = c.order.PushFront(o)
	c.bytes += o.size
	for c.bytes > c.limit && c.order.Len() > 1 {
		c.removeLocked(c.order.Back())
	}
}

func (c *readerCache) removeLocked(el *list.Element) {
	o := c.order.Remove(el).(*openReader)
	delete(c.entries, o.key)
	c.bytes -= o.size
}

func (c *readerCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[key]; ok {
		c.removeLocked(el)
	}
}

// reader returns the reader of a file.
func (e *Engine) reader(ctx context.Context, f *file) (*sst.Reader, error) {
	if r := e.readers.get(f.key); r != nil {
		return r, nil
	}
	r, err := sst.Open(ctx, e.opts.Bucket, f.key, f.Meta, e.pages)
	if err != nil {
		return nil, err
	}
	e.readers.put(f.key, r)
	return r, nil
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

// quarantine notes that a file is damaged. Each scan that meets the damage
// counts it, so that its reader can be warned; the log hears of it once.
func (e *Engine) quarantine(f *file, err error, stats *table.ScanStats) {
	stats.FilesDamaged.Add(1)
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
