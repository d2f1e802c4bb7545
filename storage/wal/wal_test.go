package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// small makes segments of a few records.
var small = Options{SegmentBytes: 400, Logger: quiet}

// record returns a record whose payload follows from its region and sequence.
func record(region, sequence uint64) Record {
	payload := fmt.Appendf(nil, "region %d sequence %d ", region, sequence)
	if sequence%2 == 0 { // compresses
		payload = append(payload, strings.Repeat("varve ", 30)...)
	}
	return Record{Region: table.RegionID(region), Sequence: sequence, Payload: payload}
}

// start opens and replays a log and returns the records, as region/sequence.
func start(d objectstore.Disk, opts Options) (l *Log, found []string, report Report, err error) {
	if l, err = Open(d, "wal", opts); err != nil {
		return nil, nil, report, err
	}
	report, err = l.Replay(context.Background(), func(r Record) error {
		if want := record(uint64(r.Region), r.Sequence); !bytes.Equal(r.Payload, want.Payload) {
			return fmt.Errorf("region %d, sequence %d has the payload %q", r.Region, r.Sequence, r.Payload)
		}
		found = append(found, fmt.Sprintf("%d/%d", r.Region, r.Sequence))
		return nil
	})
	return l, found, report, err
}

func mustStart(t *testing.T, d objectstore.Disk, opts Options) (*Log, []string, Report) {
	t.Helper()
	l, found, report, err := start(d, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, found, report
}

// wantReplay crashes the disk and checks what is replayed, without damage.
func wantReplay(t *testing.T, d *objectstoretest.MemDisk, want string) *objectstoretest.MemDisk {
	t.Helper()
	d = d.Crash()
	_, found, report := mustStart(t, d, small)
	if got := strings.Join(found, " "); got != want || len(report.Damage) > 0 {
		t.Fatalf("replayed %q, want %q; %v", got, want, report.Damage)
	}
	return d
}

func add(t *testing.T, l *Log, region uint64, sequences ...uint64) {
	t.Helper()
	for _, s := range sequences {
		if err := l.Append(t.Context(), record(region, s)); err != nil {
			t.Fatal(err)
		}
	}
}

func segments(t *testing.T, d objectstore.Disk) int {
	t.Helper()
	names, err := Segments(d, "wal")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestReplay(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	add(t, l, 1, 1, 2)
	add(t, l, 2, 1)
	d = wantReplay(t, d, "1/1 1/2 2/1")
	if report, err := Check(t.Context(), d, "wal", nil); err != nil || report.Records != 3 {
		t.Fatal(report, err)
	}
	plain := small
	plain.Compression = None
	l, _, _ = mustStart(t, d, plain)
	add(t, l, 1, 3, 4, 5, 6, 7, 8, 9)
	if segments(t, d) < 3 {
		t.Fatal("the log does not rotate")
	}
	wantReplay(t, d, "1/1 1/2 2/1 1/3 1/4 1/5 1/6 1/7 1/8 1/9")
}

func TestClosed(t *testing.T) {
	l, err := Open(objectstoretest.NewMemDisk(), "wal", small)
	if err != nil {
		t.Fatal(err)
	}
	if l.Append(t.Context(), record(1, 1)) == nil {
		t.Fatal("append before replay")
	}
	if _, err := l.Replay(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(t.Context(), record(1, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Fatal("append after close:", err)
	}
}

// One sync serves all that wait.
func TestGroups(t *testing.T) {
	gate := make(chan struct{})
	entered := make(chan struct{}, 100)
	f := objectstoretest.NewFaults(func(op objectstoretest.Op) objectstoretest.Action {
		if op.Name == "sync" {
			entered <- struct{}{}
			<-gate
		}
		return objectstoretest.Pass
	})
	l, _, _ := mustStart(t, f.Disk(objectstoretest.NewMemDisk()), Options{Logger: quiet})
	var wg sync.WaitGroup
	wg.Go(func() { add(t, l, 1, 1) })
	<-entered // the first group is at its sync; the others queue up behind it
	for i := range uint64(50) {
		wg.Go(func() { add(t, l, 2, i+1) })
	}
	for queued := 0; queued < 50; {
		l.mu.Lock()
		queued = len(l.mu.queue)
		l.mu.Unlock()
	}
	close(gate)
	wg.Wait()
	if s := l.Stats(); s.Groups != 2 || s.Records != 51 || s.Syncs != 2 {
		t.Fatalf("%+v", s)
	}
}

func TestTruncation(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	add(t, l, 7, 1)
	for s := uint64(1); segments(t, d) < 4; s++ {
		add(t, l, 1, s)
	}
	n := segments(t, d)
	l.Flushed(1, 1000)
	if got := segments(t, d); got != 2 { // the first holds region 7, the last is written to
		t.Fatal(got, "of", n, "segments are left")
	}
	p := l.Pressure()
	if p.Segment != 1 || len(p.Regions) != 1 || p.Regions[0].Region != 7 || p.Regions[0].Sequence != 1 || p.Bytes != l.Bytes() {
		t.Fatalf("%+v", p)
	}
	l.Forget(7)
	if got := segments(t, d); got != 1 {
		t.Fatal(got, "segments are left")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := segments(t, d); got != 0 {
		t.Fatal(got, "segments are left after close")
	}
}

// What is flushed up to a sequence frees no segment that holds a larger one.
func TestFlushedInPart(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	last := uint64(1)
	for ; segments(t, d) < 2; last++ {
		add(t, l, 1, last)
	}
	l.Flushed(1, last-3) // last-1 begins the second segment, last-2 ends the first
	if segments(t, d) != 2 {
		t.Fatal("a segment that is needed is deleted")
	}
	l.Flushed(1, last-2)
	if segments(t, d) != 1 {
		t.Fatal("a segment that is not needed is kept")
	}
}

// What Replay has returned stays, even if a killed process left it unsynced.
func TestReplaySettles(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, Options{Sync: Interval, Interval: time.Hour, Logger: quiet})
	add(t, l, 1, 1, 2)
	if _, found, _ := mustStart(t, d, small); len(found) != 2 {
		t.Fatal(found)
	}
	wantReplay(t, d, "1/1 1/2")
}

func TestFlushedInReplay(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	add(t, l, 1, 1, 2, 3, 4, 5, 6, 7, 8)
	d = d.Crash()
	l, err := Open(d, "wal", small)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.Replay(t.Context(), func(r Record) error {
		l.Flushed(1, 7)
		return nil
	})
	if err != nil || segments(t, d) != 1 {
		t.Fatal(segments(t, d), err)
	}
	if p := l.Pressure(); p.Regions[0].Sequence != 8 {
		t.Fatalf("%+v", p)
	}
}

// Relocated records keep the log short and are not lost.
func TestRelocate(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	opts := small
	opts.MaxBytes = 1500
	l, _, _ := mustStart(t, d, opts)
	add(t, l, 7, 1, 2)
	add(t, l, 8, 1, 2)
	l.Flushed(8, 1)
	for s := uint64(1); s < 60; s++ {
		add(t, l, 1, s)
		l.Flushed(1, s-1)
		for p := l.Pressure(); p.Over() && p.Segment > 0; p = l.Pressure() {
			var cold []table.RegionID
			for _, b := range p.Regions {
				cold = append(cold, b.Region)
			}
			if err := l.Relocate(t.Context(), p.Segment, cold...); err != nil {
				t.Fatal(err)
			}
		}
		if l.Bytes() > 2*opts.MaxBytes {
			t.Fatal("the log grows to", l.Bytes())
		}
	}
	_, found, _ := mustStart(t, d.Crash(), small)
	for _, want := range []string{"7/1", "7/2", "8/2", "1/59"} {
		if !slices.Contains(found, want) {
			t.Fatalf("%s is lost: %q", want, found)
		}
	}
}

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := objectstoretest.NewMemDisk()
		l, _, _, err := start(d, Options{Sync: Interval, Interval: time.Second, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, 1, 1, 2)
		if s := l.Stats(); s.Syncs != 0 {
			t.Fatalf("%+v", s)
		}
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		if s := l.Stats(); s.Syncs != 1 {
			t.Fatalf("%+v", s)
		}
		after := d.Crash()
		_ = l.Close()
		l, found, _, err := start(after, small)
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
		_ = l.Close()
	})
}

// A full disk refuses, keeps what it acknowledged, leaves no litter, and heals.
func TestFullDisk(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	f := objectstoretest.NewFaults(nil)
	l, _, _ := mustStart(t, f.Disk(d), small)
	add(t, l, 1, 1, 2)
	before := segments(t, d)
	f.SetHook(objectstoretest.FullFor(0, 1<<30))
	for s := uint64(100); s < 150; s++ {
		if err := l.Append(t.Context(), record(1, s)); fault.KindOf(err) != fault.Unavailable {
			t.Fatal(err)
		}
	}
	if n := segments(t, d); n > before {
		t.Fatal("a full disk collects segments:", n)
	}
	f.SetHook(nil)
	add(t, l, 1, 3)
	wantReplay(t, d, "1/1 1/2 1/3")
}

// A newer format is refused by name.
func TestNewerVersion(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	h := segmentHeader{number: 1}.encode()
	h[8]++
	resealSegment(h)
	writeFile(t, d, segmentPath("wal", 1), h)
	if _, _, _, err := start(d, small); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, d objectstore.Disk, name string, data []byte) {
	t.Helper()
	if err := d.MkdirAll("wal"); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), d.SyncDir("wal")); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, d objectstore.Disk, name string) []byte {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return data
}
