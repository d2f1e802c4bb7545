package storage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

// A relieved store has a log with many times more rows than the memtables may
// hold when it is opened again: of a region that many write to, of one whose
// fields are merged row by row, of one with a record that is in the log twice,
// and of one whose first record is behind all others.
type relieved struct {
	tables *storagetest.Tables
	many   *table.Info // append
	merged *table.Info // last_non_null: the fields of a row come from several writes
	cold   *table.Info // append; its first record is relocated, and its segment stays
	moved  *table.Info // append; its first record is relocated, and its segment goes
	files  map[string][]byte
}

const (
	relievedWriters = 4
	relievedBatches = 40 // of each writer
	relievedMoved   = 20
)

func newRelieved(t *testing.T) *relieved {
	t.Helper()
	s := &relieved{tables: &storagetest.Tables{}, files: make(map[string][]byte)}
	s.many = storagetest.Table(1, "many", table.Append, "ts TimestampMillisecond time", "id Int64", "pad String")
	s.merged = storagetest.Table(2, "merged", table.LastNonNull, "ts TimestampMillisecond time", "a Int64", "b Int64", "pad String")
	s.cold = storagetest.Table(3, "cold", table.Append, "ts TimestampMillisecond time", "id Int64")
	s.moved = storagetest.Table(4, "moved", table.Append, "ts TimestampMillisecond time", "id Int64", "pad String")
	for _, info := range []*table.Info{s.many, s.merged, s.cold, s.moved} {
		s.tables.Put(info)
	}
	disk := objectstoretest.NewMemDisk()
	e := s.open(t, disk, 0)
	ctx := context.Background()
	put := func(info *table.Info, row ...any) {
		if err := e.Write(ctx, info, 0, storagetest.Rows(info, table.Put, row)); err != nil {
			t.Error(err)
		}
	}
	pad := strings.Repeat("some text ", 100)
	put(s.moved, 1, 1, strings.Repeat(pad, 25)) // fills a segment
	put(s.cold, 1, 1)
	for n := 2; n <= relievedMoved; n++ {
		put(s.moved, n, n, pad)
	}
	var writers sync.WaitGroup
	for w := range relievedWriters {
		writers.Go(func() {
			for n := range relievedBatches {
				put(s.many, n, w*relievedBatches+n, fmt.Sprint(w, n, pad))
			}
		})
	}
	for n := range 2 * relievedBatches {
		if n%2 == 0 {
			put(s.merged, 7, n, nil, fmt.Sprint(n, pad))
		} else {
			put(s.merged, 7, nil, n, fmt.Sprint(n, pad))
		}
	}
	writers.Wait()
	for _, info := range []*table.Info{s.moved, s.cold} {
		if err := e.RelocateOldest(info.ID.Region(0)); err != nil {
			t.Fatal(err)
		}
	}
	put(s.cold, 2, 2)
	contents(t, disk.Crash(), "data", s.files)
	_ = e.Close() // to a disk that is gone
	return s
}

// disk returns a disk of its own with what the crash left.
func (s *relieved) disk(t *testing.T) *objectstoretest.MemDisk { return diskWith(t, s.files, "", 0) }

func (s *relieved) open(t *testing.T, disk objectstore.Disk, memtables int64) *storage.Engine {
	t.Helper()
	e, err := s.tryOpen(disk, memtables)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *relieved) tryOpen(disk objectstore.Disk, memtables int64) (*storage.Engine, error) {
	bucket, err := objectstore.OpenDir(disk, "data/bucket")
	if err != nil {
		return nil, err
	}
	return storage.Open(context.Background(), storage.Options{Disk: disk, DataDir: "data", Bucket: bucket, Tables: s.tables,
		MemtableBytes: memtables, WAL: wal.Options{SegmentBytes: 20 << 10, Compression: wal.None, Logger: quiet}, Logger: quiet})
}

func (s *relieved) check(t *testing.T, what string, e *storage.Engine) {
	t.Helper()
	ids := func(info *table.Info, columns ...table.ColumnID) []string {
		return storagetest.Read(t, e, info, table.ScanSpec{Times: table.AllTime, Columns: columns})
	}
	seen := make(map[string]bool)
	got := ids(s.many, 2)
	for _, id := range got {
		seen[id] = true
	}
	if want := relievedWriters * relievedBatches; len(got) != want || len(seen) != want {
		t.Errorf("%s: %d rows, %d different, want %d", what, len(got), len(seen), want)
	}
	if got, want := fmt.Sprint(ids(s.merged, 2, 3)), fmt.Sprintf("[%d %d]", 2*relievedBatches-2, 2*relievedBatches-1); got != want {
		t.Errorf("%s: the merged row reads %s, want %s", what, got, want)
	}
	if got := ids(s.moved, 2); len(slices.Compact(got)) != relievedMoved || len(got) != relievedMoved {
		t.Errorf("%s: the moved rows read %v, want 1 to %d, each once", what, got, relievedMoved)
	}
	if got := fmt.Sprint(ids(s.cold, 2)); got != "[1 2]" {
		t.Errorf("%s: the cold rows read %s, want each once", what, got)
	}
}

// TestRecoveryBoundsMemory recovers a log that is larger than the memtables may
// be.
func TestRecoveryBoundsMemory(t *testing.T) {
	s := newRelieved(t)
	const budget = 80 << 10
	all := s.open(t, s.disk(t), 0)
	_, whole := all.RecoveryRelief()
	s.check(t, "without a limit", all)
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	e := s.open(t, s.disk(t), budget)
	if flushes, peak := e.RecoveryRelief(); whole < 2*budget || flushes < 3 || peak > budget {
		t.Errorf("recovery of %d bytes with a budget of %d: %d flushes, at most %d bytes in memory", whole, budget, flushes, peak)
	}
	s.check(t, "with a limit", e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRecoveryFlushSweep stops the machine, or lets the disk be full, at each
// operation of such a recovery.
func TestRecoveryFlushSweep(t *testing.T) {
	s := newRelieved(t)
	for n := 1; ; n += stride(21) {
		disk, hook := s.disk(t), objectstoretest.At(n, objectstoretest.Stop)
		if n%2 == 0 {
			hook = objectstoretest.FullFor(n, 1000)
		}
		what := fmt.Sprintf("trouble at operation %d", n)
		faults := objectstoretest.NewFaults(hook)
		e, err := s.tryOpen(faults.Disk(disk), 80<<10)
		ops := faults.Ops()
		if err == nil {
			if n%2 == 0 {
				s.check(t, what+", before a restart", e)
			}
			_ = e.Close()
		}
		e = s.open(t, disk.Crash(), 80<<10)
		s.check(t, what, e)
		if err := e.Close(); err != nil {
			t.Fatalf("%s: close: %v", what, err)
		}
		if ops < n {
			return
		}
	}
}

// TestRecordTwiceInTheLog recovers a log that has the record of a cold region
// twice, for it was relocated, and the segment with the first one is still
// needed. The region keeps every row.
func TestRecordTwiceInTheLog(t *testing.T) {
	s := newRelieved(t)
	s.tables.Remove(s.merged.ID) // what is left is little enough to count
	disk, found := s.disk(t), 0
	_, err := wal.Check(context.Background(), disk, storage.WALDir("data"), func(_ uint64, r wal.Record) error {
		if r.Region == s.cold.ID.Region(0) && r.Sequence == 1 {
			found++
		}
		return nil
	})
	if err != nil || found != 2 {
		t.Fatalf("the record is in the log %d times, want 2: %v", found, err)
	}
	e := s.open(t, disk, 0)
	for range 2 {
		got := storagetest.Read(t, e, s.cold, table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{2}})
		if fmt.Sprint(got) != "[1 2]" {
			t.Errorf("the rows read %s, want each once", got)
		}
		if err := e.Close(); err != nil { // into a file
			t.Fatal(err)
		}
		e = s.open(t, disk, 0)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
