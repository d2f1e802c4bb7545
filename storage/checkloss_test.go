package storage_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

// TestCheckFindsWhatIsGone takes whole objects away from a store. What is lost
// with them is reported; what is not lost is not.
func TestCheckFindsWhatIsGone(t *testing.T) {
	faults := objectstoretest.NewFaults(nil)
	mem, tables := objectstoretest.NewMemDisk(), &storagetest.Tables{}
	disk := faults.Disk(mem)
	info := storagetest.Table(1, "m", table.Append, "h String tag", "ts TimestampMillisecond time", "a Int64")
	tables.Put(info)
	ctx := context.Background()
	e, err := storage.Open(ctx, storage.Options{Disk: disk, DataDir: "data", Bucket: openBucket(t, mem), Tables: tables,
		WAL: wal.Options{SegmentBytes: 1, Logger: quiet}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 9 { // each in a segment of its own: 0 to 4 go to files, 5 to 8 stay in the log
		if n == 6 {
			faults.SetHook(func(op objectstoretest.Op) objectstoretest.Action {
				if op.Name == "sync" {
					return objectstoretest.Fail
				}
				return objectstoretest.Pass
			})
			if e.Write(ctx, info, 0, storagetest.Rows(info, table.Put, []any{"h", n, n})) == nil {
				t.Fatal("the write should be refused")
			}
			faults.SetHook(nil)
			continue
		}
		write(t, e, info, n)
		if n == 2 || n == 4 {
			if err := e.Flush(ctx, info); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := make(map[string][]byte)
	contents(t, mem.Crash(), "data", files)
	if err := e.Close(); err == nil {
		t.Fatal("the engine closes although its disk is gone")
	}
	named := func(part string) (names []string) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.Contains(name, part) && !strings.Contains(name, ".tmp-") {
				names = append(names, name)
			}
		}
		return names
	}
	manifests, ssts, segments := named("/manifest/"), named("/sst/"), named("/wal/")
	if len(manifests) != 2 || len(ssts) != 2 || len(segments) < 3 {
		t.Fatalf("unexpected files: %v", slices.Sorted(maps.Keys(files)))
	}
	f := func(what string, gone []string, dropped bool, want ...string) {
		t.Helper()
		left := maps.Clone(files)
		for _, name := range gone {
			delete(left, name)
		}
		d := diskWith(t, left, "", 0)
		report, err := storage.Check(ctx, d, "data", openBucket(t, d),
			storage.CheckOptions{Dropped: func(id table.ID) bool { return dropped && id == 1 }})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		text := make([]string, len(report.Problems))
		for i, p := range report.Problems {
			text[i] = p.String()
		}
		all := strings.Join(text, "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: want %q in:\n%s", what, w, all)
			}
		}
		if len(want) == 0 && all != "" {
			t.Errorf("%s: false alarm:\n%s", what, all)
		}
	}
	key := func(name string) string { return strings.TrimPrefix(name, "data/bucket/") }
	f("nothing", nil, false)
	f("the manifest", manifests, false, key(ssts[0]), key(ssts[1]))
	f("the newest manifest edit", manifests[1:], false, key(ssts[1]))
	f("the manifest of a dropped table", manifests, true)
	f("a file", ssts[:1], false, key(ssts[0]))
	f("the newest segment", segments[len(segments)-1:], false) // as if its write had never been
	for i := range segments[:len(segments)-1] {
		if !hasRecords(t, files, segments[i]) {
			continue
		}
		f("segment "+segments[i], segments[i:i+1], false, "is gone, and with it")
	}
}

// hasRecords reports whether a segment has a record that is not flushed.
func hasRecords(t *testing.T, files map[string][]byte, segment string) (has bool) {
	t.Helper()
	_, err := wal.ReadSegment(diskWith(t, files, "", 0), segment, func(e wal.Entry) error {
		has = has || e.Damage == nil && e.Record.Sequence > 5 && e.Record.Sequence != 7
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return has
}
