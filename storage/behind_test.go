package storage_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// TestCatalogOlderThanData opens a store with a catalog that has lost its last
// edits. Tables that it does not know must not be taken for dropped ones, whose
// writes the log forgets and whose ids have no files.
func TestCatalogOlderThanData(t *testing.T) {
	store := storagetest.New(t)
	ctx := context.Background()
	for id := range table.ID(3) {
		info := storagetest.Table(id+1, "m", table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64")
		store.Tables.Put(info)
		write(t, store, info, 1)
		if id == 1 { // table 2 has files, table 3 only logged writes
			if err := store.Flush(ctx, info); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := make(map[string][]byte)
	contents(t, store.Disk.Crash(), "data", files)
	store.Disk = diskWith(t, files, "", 0)
	defer store.Crash(t)
	f := func(next table.ID, want error) {
		t.Helper()
		disk, tables := diskWith(t, files, "", 0), &storagetest.Tables{}
		for id := range next - 1 {
			info, _ := store.Tables.TableByID(id + 1)
			tables.Put(info)
		}
		e, err := storage.Open(ctx, storage.Options{Disk: disk, DataDir: "data", Bucket: openBucket(t, disk),
			Tables: tables, NextTable: next, Logger: quiet})
		if !errors.Is(err, want) {
			t.Errorf("next table %d: got %v, want %v", next, err, want)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		after := make(map[string][]byte)
		contents(t, disk, "data", after)
		for name := range files {
			if _, ok := after[name]; !ok && !strings.HasPrefix(path.Base(name), ".tmp-") {
				t.Errorf("next table %d: %s is gone", next, name)
			}
		}
	}
	f(1, storage.ErrCatalogBehind)
	f(2, storage.ErrCatalogBehind)
	f(3, storage.ErrCatalogBehind)
	f(4, nil)
}
