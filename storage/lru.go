package storage

import (
	"container/list"
	"sync"
)

// An lru keeps values up to a number of bytes, and of these the ones that were
// used last. One value is kept whatever its size. Safe for use by several
// goroutines.
type lru[V any] struct {
	limit int64 // bytes

	mu      sync.Mutex
	bytes   int64
	order   list.List // of *lruEntry[V], the last used at the front
	entries map[string]*list.Element
}

type lruEntry[V any] struct {
	key   string
	value V
	size  int64
}

func (c *lru[V]) get(key string) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[key]
	if !ok {
		return v, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*lruEntry[V]).value, true
}

// put adds a value. Of two that are put with one key the first stays.
func (c *lru[V]) put(key string, v V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[string]*list.Element)
	}
	if _, ok := c.entries[key]; ok {
		return
	}
	c.entries[key] = c.order.PushFront(&lruEntry[V]{key, v, size})
	c.bytes += size
	for c.bytes > c.limit && c.order.Len() > 1 {
		c.removeLocked(c.order.Back())
	}
}

func (c *lru[V]) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.entries[key]; ok {
		c.removeLocked(el)
	}
}

func (c *lru[V]) removeLocked(el *list.Element) {
	o := c.order.Remove(el).(*lruEntry[V])
	delete(c.entries, o.key)
	c.bytes -= o.size
}
