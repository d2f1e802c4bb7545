// Package cache keeps decoded pages in memory, bounded in bytes.
//
// It is a sharded S3-FIFO: a new page enters a small queue and moves to the
// main one only if it is asked for again, so that one scan of cold data does
// not push out what many queries share.
package cache

import (
	"sync"
	"sync/atomic"
)

// A Key names a page of a column chunk of a file.
type Key struct {
	File  uint64 // a number from NewFile
	Chunk uint32 // row group and column
	Page  int32  // -1: the chunk's dictionary
}

// A Page is a decoded page. It is immutable, and may outlive its stay in the
// cache.
type Page interface {
	// Size returns the page's bytes in memory.
	Size() int64
}

const (
	shardCount = 16
	// overhead is about what an entry costs beyond its page.
	overhead = 160
	// maxUses caps an entry's use counter: three lives in the main queue.
	maxUses = 3
)

var files atomic.Uint64

// NewFile returns a number for an opened file that no other has in this
// process.
func NewFile() uint64 { return files.Add(1) }

// A Cache holds pages up to a number of bytes. Safe for use by several
// goroutines. A nil Cache holds nothing.
type Cache struct {
	shards [shardCount]shard

	hits, misses, evictions atomic.Int64
}

// Stats is what a Cache did since it was made, and holds now.
type Stats struct {
	Hits, Misses, Evictions int64
	Pages, Bytes, MaxBytes  int64
}

// New returns a Cache that holds up to maxBytes.
func New(maxBytes int64) *Cache {
	c := new(Cache)
	for i := range c.shards {
		s := &c.shards[i]
		s.maxBytes = maxBytes / shardCount
		s.mu.entries = make(map[Key]*entry)
		s.mu.ghosts = make(map[Key]uint64)
	}
	return c
}

// Get returns the page with the given key, or nil.
func (c *Cache) Get(k Key) Page {
	if c == nil {
		return nil
	}
	s := c.shard(k)
	s.mu.RLock()
	e := s.mu.entries[k]
	s.mu.RUnlock()
	if e == nil {
		c.misses.Add(1)
		return nil
	}
	if n := e.uses.Load(); n < maxUses {
		e.uses.Store(n + 1) // a lost race costs one count
	}
	c.hits.Add(1)
	return e.page
}

// Put adds a page, unless it alone is larger than a shard. Of two pages put
// with one key the first stays.
func (c *Cache) Put(k Key, p Page) {
	if c == nil {
		return
	}
	e := &entry{key: k, page: p, size: p.Size() + overhead}
	s := c.shard(k)
	if e.size > s.maxBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.entries[k] != nil {
		return
	}
	s.addLocked(e)
	c.evictions.Add(s.evictLocked())
}

// Clear drops every page.
func (c *Cache) Clear() {
	if c == nil {
		return
	}
	for i := range c.shards {
		c.shards[i].clear()
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	st := Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Evictions: c.evictions.Load()}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		st.Pages += int64(len(s.mu.entries))
		st.Bytes += s.mu.small.bytes + s.mu.main.bytes
		st.MaxBytes += s.maxBytes
		s.mu.RUnlock()
	}
	return st
}

func (c *Cache) shard(k Key) *shard {
	h := (k.File*31+uint64(k.Chunk))*31 + uint64(uint32(k.Page))
	h *= 0x9e3779b97f4a7c15
	return &c.shards[h>>60]
}

// A shard is one S3-FIFO.
type shard struct {
	maxBytes int64

	mu struct {
		sync.RWMutex
		entries map[Key]*entry
		small   queue // new pages, a tenth of the bytes
		main    queue // pages that were asked for again

		// Keys that left small unused, with the tick at which they left: a
		// page that comes back soon goes to main at once.
		ghosts map[Key]uint64
		order  []Key // of ghosts, oldest first
		tick   uint64
	}
}

type entry struct {
	key  Key
	page Page
	size int64
	uses atomic.Uint32
}

func (s *shard) addLocked(e *entry) {
	s.mu.entries[e.key] = e
	if _, ok := s.mu.ghosts[e.key]; ok {
		delete(s.mu.ghosts, e.key)
		s.mu.main.push(e)
		return
	}
	s.mu.small.push(e)
}

// evictLocked drops pages until the shard fits, and returns how many.
func (s *shard) evictLocked() (n int64) {
	for s.mu.small.bytes+s.mu.main.bytes > s.maxBytes {
		if s.mu.small.bytes > s.maxBytes/10 || s.mu.main.len() == 0 {
			n += s.evictSmallLocked()
		} else {
			n += s.evictMainLocked()
		}
	}
	return n
}

// evictSmallLocked takes the oldest new page: into main if it was used, else
// out.
func (s *shard) evictSmallLocked() int64 {
	e := s.mu.small.pop()
	if e.uses.Swap(0) > 0 {
		s.mu.main.push(e)
		return 0
	}
	delete(s.mu.entries, e.key)
	s.haunt(e.key)
	return 1
}

// evictMainLocked takes the oldest page of main: back to its end with one use
// less if it was used, else out.
func (s *shard) evictMainLocked() int64 {
	e := s.mu.main.pop()
	if n := e.uses.Load(); n > 0 {
		e.uses.Store(n - 1)
		s.mu.main.push(e)
		return 0
	}
	delete(s.mu.entries, e.key)
	return 1
}

// haunt remembers a key for as long as about as many others take to leave as
// the shard holds.
func (s *shard) haunt(k Key) {
	s.mu.tick++
	s.mu.ghosts[k] = s.mu.tick
	s.mu.order = append(s.mu.order, k)
	for limit := len(s.mu.entries) + 16; len(s.mu.order) > limit; {
		old := s.mu.order[0]
		s.mu.order = s.mu.order[1:]
		if s.mu.ghosts[old] <= s.mu.tick-uint64(limit) {
			delete(s.mu.ghosts, old)
		}
	}
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.mu.entries)
	clear(s.mu.ghosts)
	s.mu.small, s.mu.main, s.mu.order = queue{}, queue{}, nil
}

// A queue is a FIFO of entries that knows their bytes.
type queue struct {
	list  []*entry
	head  int
	bytes int64
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(e *entry) {
	if q.head > 64 && q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, e)
	q.bytes += e.size
}

func (q *queue) pop() *entry {
	e := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	q.bytes -= e.size
	return e
}
