package storage_test

import (
	"context"
	"testing"

	"github.com/varvedb/varve/fault"
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
