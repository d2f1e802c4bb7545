package storage_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

var long = flag.Bool("long", false, "sweep every operation and run all seeds")

// stride returns the step of a sweep: 1, unless time is short. It is odd, so
// that what depends on the parity of an operation's number is met.
func stride(short int) int {
	if *long {
		return 1
	}
	return short
}

// A sweep runs one workload again and again, each time with trouble at the
// next operation, and compares what is read afterwards with what was
// acknowledged.
type sweep struct {
	tables *storagetest.Tables
	events *table.Info // append: every row shows, so that twice is seen too
	points *table.Info // last_row: every write overwrites the one before
	cold   *table.Info // append: one row, which the log has to carry along
}

func newSweep() *sweep {
	s := &sweep{tables: &storagetest.Tables{}}
	s.events = storagetest.Table(1, "events", table.Append, "host String tag", "ts TimestampMillisecond time", "id Int64", "pad String")
	s.events.Regions = 2
	s.points = storagetest.Table(2, "points", table.LastRow, "host String tag", "ts TimestampMillisecond time", "id Int64")
	s.cold = storagetest.Table(3, "cold", table.Append, "ts TimestampMillisecond time", "id Int64")
	for _, info := range []*table.Info{s.events, s.points, s.cold} {
		info.Options = map[string]string{"compaction.twcs.time_window": "1h"}
		s.tables.Put(info)
	}
	return s
}

func (s *sweep) open(disk objectstore.Disk) (*storage.Engine, error) {
	bucket, err := objectstore.OpenDir(disk, "data/bucket")
	if err != nil {
		return nil, err
	}
	return storage.Open(context.Background(), storage.Options{
		Disk: disk, DataDir: "data", Bucket: bucket, Tables: s.tables,
		FlushBytes: 256 << 10, WAL: wal.Options{SegmentBytes: 1500, MaxBytes: 6000, Logger: quiet}, Logger: quiet,
	})
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// A history is what the writers of one run know.
type history struct {
	mu     sync.Mutex
	acked  []int // batches whose write returned without an error
	failed []int
	cold   bool // the cold row was acknowledged
}

const (
	sweepBatches = 24
	batchSize    = 5
)

// batch makes batch n of the events: rows of three windows.
func (s *sweep) batch(n int) *table.Rows {
	var rows [][]any
	for i := range batchSize {
		rows = append(rows, []any{fmt.Sprint("h", i%2), (n%3)*3_600_000 + i, n*batchSize + i, "some text that takes room"})
	}
	return storagetest.Rows(s.events, table.Put, rows...)
}

// run writes batches from two goroutines, one for each region of the events,
// and overwrites one point with the number of each batch. It flushes and
// restarts in between. Errors are noted and the run goes on.
func (s *sweep) run(e *storage.Engine) (h *history, lastPoint []int) {
	h = &history{}
	ctx := context.Background()
	h.cold = e.Write(ctx, s.cold, 0, storagetest.Rows(s.cold, table.Put, []any{1, 1})) == nil
	var writers sync.WaitGroup
	for region := range 2 {
		writers.Go(func() {
			for n := region; n < sweepBatches; n += 2 {
				err := e.Write(ctx, s.events, uint32(region), s.batch(n))
				h.note(n, err)
				if n%10 == 4 {
					_ = e.Flush(ctx, s.events)
				}
			}
		})
	}
	for n := range sweepBatches {
		// What was refused may be there or not; only what comes after an
		// acknowledged write is certain.
		lastPoint = append(lastPoint, n)
		if e.Write(ctx, s.points, 0, storagetest.Rows(s.points, table.Put, []any{"p", 0, n})) == nil {
			lastPoint = []int{n}
		}
	}
	writers.Wait()
	return h, lastPoint
}

func (h *history) note(n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.acked = append(h.acked, n)
	} else {
		h.failed = append(h.failed, n)
	}
}

// check opens what survived and compares. It then writes, flushes and reads
// again, for a store that opens must also work.
func (s *sweep) check(t *testing.T, what string, disk objectstore.Disk, h *history, points []int) {
	t.Helper()
	for round := range 2 {
		e, err := s.open(disk)
		if err != nil {
			t.Fatalf("%s: open after recovery, round %d: %v", what, round, err)
		}
		s.compare(t, what, e, h, points)
		ctx := context.Background()
		extra := 1000 + round
		if err := errors.Join(e.Write(ctx, s.events, 0, s.batch(extra)), e.Flush(ctx, s.events)); err != nil {
			t.Fatalf("%s: write after recovery: %v", what, err)
		}
		h.note(extra, nil)
		s.compare(t, what, e, h, points)
		if d := e.Damaged(); len(d) > 0 {
			t.Fatalf("%s: damaged after recovery: %v", what, d)
		}
		if err := e.Close(); err != nil {
			t.Fatalf("%s: close after recovery: %v", what, err)
		}
	}
}

func (s *sweep) compare(t *testing.T, what string, e *storage.Engine, h *history, points []int) {
	t.Helper()
	seen := make(map[string]int)
	for _, line := range storagetest.Read(t, e, s.events, table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{3}}) {
		seen[line]++
	}
	count := func(n int) (rows int) {
		for i := range batchSize {
			k := fmt.Sprint(n*batchSize + i)
			if seen[k] > 1 {
				t.Fatalf("%s: row %s of batch %d is there %d times", what, k, n, seen[k])
			}
			rows += seen[k]
			delete(seen, k)
		}
		return rows
	}
	for _, n := range h.acked {
		if got := count(n); got != batchSize {
			t.Fatalf("%s: acknowledged batch %d has %d of %d rows", what, n, got, batchSize)
		}
	}
	for _, n := range h.failed {
		if got := count(n); got != 0 && got != batchSize {
			t.Fatalf("%s: refused batch %d is there in part: %d of %d rows", what, n, got, batchSize)
		}
	}
	if len(seen) > 0 {
		t.Fatalf("%s: rows that nobody wrote: %v", what, seen)
	}
	if cold := storagetest.Read(t, e, s.cold, storagetest.All(s.cold)); len(cold) > 1 || h.cold && len(cold) == 0 {
		t.Fatalf("%s: the cold row is there %d times", what, len(cold))
	}
	got := storagetest.Read(t, e, s.points, table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{3}})
	if len(got) > 1 || len(got) == 1 && !slices.Contains(points, atoi(got[0])) || len(got) == 0 && len(points) < sweepBatches {
		t.Fatalf("%s: the point reads %v; its last write is one of %v", what, got, points)
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// TestCrashSweep stops the machine at operation n, for every n until the
// workload completes, and recovers from what had been synced by then, or from
// that and some of the rest.
func TestCrashSweep(t *testing.T) {
	for n := 1; ; n += stride(3) {
		s, mem := newSweep(), objectstoretest.NewMemDisk()
		faults := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
		h, points := s.attempt(t, faults.Disk(mem))
		if !faults.Stopped() {
			if n < 100 {
				t.Fatalf("the workload took only %d operations", n)
			}
			return
		}
		survivor := mem.Crash()
		if n%2 == 0 {
			survivor = mem.CrashTorn(uint64(n))
		}
		s.check(t, fmt.Sprintf("crash at operation %d", n), survivor, h, points)
	}
}

// attempt opens an engine on disk, runs the workload, and closes it.
func (s *sweep) attempt(t *testing.T, disk objectstore.Disk) (*history, []int) {
	t.Helper()
	all := make([]int, sweepBatches)
	e, err := s.open(disk)
	if err != nil {
		return &history{}, all
	}
	h, points := s.run(e)
	_ = e.Close()
	return h, points
}

// TestFailSweep lets operation n fail, or tear, or fill the disk for a while,
// and then crashes the machine without more trouble.
func TestFailSweep(t *testing.T) {
	for _, action := range []objectstoretest.Action{objectstoretest.Fail, objectstoretest.After, objectstoretest.Tear, objectstoretest.Full} {
		t.Run(action.String(), func(t *testing.T) {
			for n := 1; ; n += stride(15) {
				s, mem := newSweep(), objectstoretest.NewMemDisk()
				hook := objectstoretest.At(n, action)
				if action == objectstoretest.Full {
					hook = objectstoretest.FullFor(n, 12)
				}
				faults := objectstoretest.NewFaults(hook)
				h, points := s.attempt(t, faults.Disk(mem))
				s.check(t, fmt.Sprintf("%v at operation %d", action, n), mem.Crash(), h, points)
				if faults.Ops() < n {
					return
				}
			}
		})
	}
}
