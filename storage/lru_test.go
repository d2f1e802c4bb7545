package storage

import "testing"

// What was used last stays, up to the limit in bytes and never less than one.
func TestLRU(t *testing.T) {
	c := lru[int]{limit: 10}
	f := func(key string, value int, size, held int64) {
		t.Helper()
		c.put(key, value, size)
		if got, ok := c.get(key); !ok || got != value || c.bytes != held {
			t.Errorf("%s: %d, %v; %d bytes", key, got, ok, c.bytes)
		}
	}
	f("a", 1, 4, 4)
	f("b", 2, 4, 8)
	c.get("a")
	f("c", 3, 4, 8)
	if _, ok := c.get("b"); ok {
		t.Error("b was used least lately and is kept")
	}
	f("a", 1, 4, 8) // the first of one key stays
	f("large", 4, 100, 100)
	f("d", 5, 4, 4)
	c.forget("d")
	if _, ok := c.get("d"); ok || c.bytes != 0 {
		t.Errorf("after forget: %v, %d bytes", ok, c.bytes)
	}
}
