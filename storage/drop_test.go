package storage_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// TestDroppedTableStaysGone writes, flushes and reads with the Info of a table
// that was dropped after it had been looked up. Nothing of it comes back: no
// region that takes memory, no file that nobody would ever delete.
func TestDroppedTableStaysGone(t *testing.T) {
	s := newScript(t, table.LastRow)
	s.put("h", 0, 1, 1)
	s.flush()
	ctx := context.Background()
	s.store.Tables.Remove(s.info.ID)
	if err := s.store.Drop(ctx, s.info.ID); err != nil {
		t.Fatal(err)
	}
	f := func(what string, err error) {
		t.Helper()
		if fault.KindOf(err) != fault.TableNotFound {
			t.Errorf("%s of a dropped table: got %v", what, err)
		}
	}
	f("write", s.store.Write(ctx, s.info, 0, storagetest.Rows(s.info, table.Put, []any{"h", 1, 1, 1})))
	f("flush", s.store.Flush(ctx, s.info))
	_, err := s.store.Snapshot(ctx, s.info)
	f("snapshot", err)
	s.store.Restart(t)
	if left := s.store.Keys(t); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestLeftoversOfDropsGo opens a store whose catalog has dropped a table while
// its files stayed, as a crash leaves it. They are removed, and nothing else;
// without an intact catalog nothing is.
func TestLeftoversOfDropsGo(t *testing.T) {
	store := storagetest.New(t)
	ctx := context.Background()
	for id := range table.ID(3) {
		info := storagetest.Table(id+1, "m", table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64")
		store.Tables.Put(info)
		write(t, store, info, 1)
		if err := store.Flush(ctx, info); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(next table.ID) []string {
		store.SetNextTable(next)
		store.Crash(t)
		if err := store.Engine().RemoveDropped(ctx); err != nil {
			t.Fatal(err)
		}
		return store.Keys(t)
	}
	all := keys(4)
	store.Tables.Remove(2)
	if got := keys(0); !slices.Equal(got, all) {
		t.Errorf("with an unknown catalog: got %v, want %v", got, all)
	}
	want := slices.DeleteFunc(all, func(key string) bool { return strings.HasPrefix(key, "table/2/") })
	if got := keys(4); len(got) != 4 || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPinnedFilesOfADropStay removes leftovers while a table is dropped whose
// files a reader has pinned.
func TestPinnedFilesOfADropStay(t *testing.T) {
	store := storagetest.New(t, func(o *storage.Options) { o.NextTable = 2 })
	info := storagetest.Table(1, "m", table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64")
	store.Tables.Put(info)
	ctx := context.Background()
	write(t, store, info, 1)
	if err := store.Flush(ctx, info); err != nil {
		t.Fatal(err)
	}
	snap, err := store.Snapshot(ctx, info)
	if err != nil {
		t.Fatal(err)
	}
	store.Tables.Remove(1)
	for _, step := range []func() error{
		func() error { return store.Engine().RemoveDropped(ctx) }, // after the catalog's drop
		func() error { return store.Drop(ctx, 1) },
		func() error { return store.Engine().RemoveDropped(ctx) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := storagetest.Scan(t, snap, storagetest.All(info)); !slices.Equal(got, []string{"h 1 1"}) {
		t.Errorf("the snapshot reads %v", got)
	}
	snap.Close()
	store.Engine().AwaitDeletes()
	if left := store.Keys(t); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
