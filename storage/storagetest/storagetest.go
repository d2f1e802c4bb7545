// Package storagetest gives tests of other packages a storage engine in
// memory, and short ways to make tables, write rows and read them.
package storagetest

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/table"
)

// Tables is a table.Resolver that tests fill by hand.
type Tables struct {
	mu     sync.Mutex
	tables map[table.ID]*table.Info
}

// Put adds a table, or replaces it with its next version.
func (t *Tables) Put(info *table.Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tables == nil {
		t.tables = make(map[table.ID]*table.Info)
	}
	t.tables[info.ID] = info
}

// Remove makes a table unknown.
func (t *Tables) Remove(id table.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tables, id)
}

// TableByID returns the table with the given id.
func (t *Tables) TableByID(id table.ID) (*table.Info, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, ok := t.tables[id]
	return info, ok
}

// A Store is an engine on a disk in memory, which holds both the log and the
// bucket.
type Store struct {
	table.Writer
	table.Reader
	table.Maintainer

	Tables *Tables
	Disk   *objectstoretest.MemDisk

	engine *storage.Engine
	opts   storage.Options
}

// New opens an empty engine that is closed at the end of the test. tune may
// change its options.
func New(t testing.TB, tune ...func(*storage.Options)) *Store {
	t.Helper()
	s := &Store{Tables: &Tables{}, Disk: objectstoretest.NewMemDisk()}
	s.opts = storage.Options{DataDir: "data", Tables: s.Tables, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, f := range tune {
		f(&s.opts)
	}
	s.open(t)
	t.Cleanup(func() {
		if err := s.engine.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return s
}

func (s *Store) open(t testing.TB) {
	t.Helper()
	bucket, err := objectstore.OpenDir(s.Disk, "data/bucket")
	if err != nil {
		t.Fatalf("open the bucket: %v", err)
	}
	s.opts.Disk, s.opts.Bucket = s.Disk, bucket
	if s.engine, err = storage.Open(context.Background(), s.opts); err != nil {
		t.Fatalf("open the engine: %v", err)
	}
	s.Writer, s.Reader, s.Maintainer = s.engine, s.engine, s.engine
}

// Engine returns the engine itself.
func (s *Store) Engine() *storage.Engine { return s.engine }

// SetNextTable sets what the next Open is told of the catalog.
func (s *Store) SetNextTable(next table.ID) { s.opts.NextTable = next }

// Restart closes the engine, which flushes, and opens it again.
func (s *Store) Restart(t testing.TB) {
	t.Helper()
	if err := s.engine.Close(); err != nil {
		t.Fatalf("close the engine: %v", err)
	}
	s.open(t)
}

// Crash forgets what was not synced, and opens the engine again.
func (s *Store) Crash(t testing.TB) {
	t.Helper()
	disk := s.Disk.Crash()
	_ = s.engine.Close() // it fails, for its disk is gone
	s.Disk = disk
	s.open(t)
}

// Keys returns the keys of all objects in the bucket.
func (s *Store) Keys(t testing.TB) (keys []string) {
	t.Helper()
	objects, err := s.opts.Bucket.List(context.Background(), "")
	if err != nil {
		t.Fatalf("list the bucket: %v", err)
	}
	for _, o := range objects {
		keys = append(keys, o.Key)
	}
	return keys
}
