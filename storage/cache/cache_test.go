package cache_test

import (
	"sync"
	"testing"

	"github.com/varvedb/varve/storage/cache"
)

type page int64

func (p page) Size() int64 { return int64(p) }

func TestBound(t *testing.T) {
	c := cache.New(1 << 20)
	for i := range int32(10_000) {
		c.Put(cache.Key{File: 1, Page: i}, page(1000))
		if st := c.Stats(); st.Bytes > st.MaxBytes {
			t.Fatalf("after %d pages: %d bytes of %d", i+1, st.Bytes, st.MaxBytes)
		}
	}
	st := c.Stats()
	if st.Bytes < st.MaxBytes*9/10 || st.Evictions != 10_000-st.Pages {
		t.Errorf("%+v", st)
	}
	c.Put(cache.Key{File: 2}, page(1<<20))
	if c.Get(cache.Key{File: 2}) != nil {
		t.Error("a page larger than a shard was kept")
	}
	c.Clear()
	if st := c.Stats(); st.Bytes != 0 || st.Pages != 0 {
		t.Errorf("after Clear: %+v", st)
	}
}

// A scan over ten times the cache does not push out what is used all the time.
func TestScanResistance(t *testing.T) {
	c := cache.New(1 << 20)
	hot := func(i int32) cache.Key { return cache.Key{File: 1, Page: i} }
	hits, asked := 0, 0
	for i := range int32(10_000) {
		if i%10 == 0 {
			asked++
			if k := hot(i / 10 % 100); c.Get(k) != nil {
				hits++
			} else {
				c.Put(k, page(1000))
			}
		}
		c.Put(cache.Key{File: 2, Page: i}, page(1000))
	}
	if hits < asked*8/10 {
		t.Errorf("%d of %d looks at hot pages hit", hits, asked)
	}
}

func TestKeys(t *testing.T) {
	c := cache.New(1 << 20)
	c.Put(cache.Key{File: 1, Chunk: 2, Page: 3}, page(1))
	c.Put(cache.Key{File: 1, Chunk: 2, Page: 3}, page(2))
	f := func(k cache.Key, want cache.Page) {
		t.Helper()
		if got := c.Get(k); got != want {
			t.Errorf("%+v: got %v, want %v", k, got, want)
		}
	}
	f(cache.Key{File: 1, Chunk: 2, Page: 3}, page(1)) // the first stays
	f(cache.Key{File: 2, Chunk: 2, Page: 3}, nil)
	f(cache.Key{File: 1, Chunk: 2, Page: -1}, nil)
	var none *cache.Cache
	none.Put(cache.Key{}, page(1))
	if none.Get(cache.Key{}) != nil || none.Stats() != (cache.Stats{}) {
		t.Error("a nil cache holds something")
	}
}

func TestConcurrent(t *testing.T) {
	c := cache.New(1 << 16)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range int32(5000) {
				k := cache.Key{File: uint64(i % 7), Page: i % 97}
				if p := c.Get(k); p != nil && p != page(k.Page+1) {
					t.Errorf("%+v is %v", k, p)
				}
				c.Put(k, page(k.Page+1))
				if g == 0 && i%1000 == 0 {
					c.Clear()
				}
			}
		})
	}
	wg.Wait()
}
