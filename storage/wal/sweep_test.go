package wal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
)

// A run is what a workload was told.
type run struct {
	acked   []string // in order
	refused map[string]bool
	flushed map[string]bool
}

// workload appends to three regions over several segments, with flushes, a
// relocation and a restart.
func workload(d objectstore.Disk) run {
	r := run{refused: map[string]bool{}, flushed: map[string]bool{}}
	for life := range uint64(2) {
		l, _, _, err := start(d, small)
		if err != nil {
			continue
		}
		for i := life*12 + 1; i <= life*12+12; i++ {
			region := 1 + i%3
			name := fmt.Sprintf("%d/%d", region, i)
			if err := l.Append(context.Background(), record(region, i)); err == nil {
				r.acked = append(r.acked, name)
			} else {
				r.refused[name] = true
			}
			if i == 8 {
				l.Flushed(2, 7)
				for s := range i {
					r.flushed[fmt.Sprintf("2/%d", s)] = true
				}
			}
			if p := l.Pressure(); i == 10 && p.Segment > 0 {
				_ = l.Relocate(context.Background(), p.Segment, p.Regions[0].Region)
			}
		}
		_ = l.Close()
	}
	return r
}

// check replays and compares: every acknowledged record is there, in order
// when duplicates and relocated ones are set aside; nothing is there that was
// not sent; nothing is reported as damage.
func (r run) check(t *testing.T, what string, d objectstore.Disk) {
	t.Helper()
	l, found, report, err := start(d, small)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Close()
	if len(report.Damage) > 0 {
		t.Fatalf("%s: damage is reported: %v", what, report.Damage)
	}
	var seen []string
	for _, name := range found {
		if !slices.Contains(r.acked, name) && !r.refused[name] {
			t.Fatalf("%s: %s was not sent", what, name)
		}
		if !slices.Contains(seen, name) {
			seen = append(seen, name)
		}
	}
	for _, name := range r.acked {
		if !slices.Contains(seen, name) && !r.flushed[name] {
			t.Fatalf("%s: %s was acknowledged and is lost; found %q", what, name, found)
		}
	}
	if err := l.Append(context.Background(), record(9, 1)); err != nil {
		t.Fatalf("%s: the log does not heal: %v", what, err)
	}
}

func TestCrashSweep(t *testing.T) {
	for n := 1; ; n++ {
		for seed := range uint64(4) {
			d := objectstoretest.NewMemDisk()
			f := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
			r := workload(f.Disk(d))
			after := d.CrashTorn(seed)
			if seed == 0 {
				after = d.Crash()
			}
			r.check(t, fmt.Sprintf("stop at %d, seed %d", n, seed), after)
			if !f.Stopped() {
				return
			}
		}
	}
}

func TestFailSweep(t *testing.T) {
	hooks := map[string]func(n int) objectstoretest.Hook{
		"full for 7": func(n int) objectstoretest.Hook { return objectstoretest.FullFor(n, 7) },
	}
	for _, a := range []objectstoretest.Action{objectstoretest.Fail, objectstoretest.After, objectstoretest.Tear, objectstoretest.Full} {
		hooks[a.String()] = func(n int) objectstoretest.Hook { return objectstoretest.At(n, a) }
	}
	for name, hook := range hooks {
		for n := 1; ; n++ {
			d := objectstoretest.NewMemDisk()
			f := objectstoretest.NewFaults(hook(n))
			r := workload(f.Disk(d))
			r.check(t, fmt.Sprintf("%s at %d", name, n), d.Crash())
			if f.Ops() < n {
				break
			}
		}
	}
}

// Many appenders at once, and the machine stops somewhere: what was
// acknowledged is there, each region's records in order.
func TestConcurrentCrash(t *testing.T) {
	for n := 4; n < 60; n++ {
		d := objectstoretest.NewMemDisk()
		f := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
		l, _, _, err := start(f.Disk(d), Options{SegmentBytes: 1000, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		var acked [8]uint64 // by region, the last sequence
		var wg sync.WaitGroup
		for region := range acked {
			wg.Go(func() {
				for s := uint64(1); s <= 20; s++ {
					if l.Append(context.Background(), record(uint64(region), s)) != nil {
						return
					}
					acked[region] = s
				}
			})
		}
		wg.Wait()
		_ = l.Close()
		l, found, report, err := start(d.CrashTorn(uint64(n)), small)
		if err != nil || len(report.Damage) > 0 {
			t.Fatal(n, err, report.Damage)
		}
		_ = l.Close()
		for region, last := range acked {
			s := uint64(0)
			for _, name := range found {
				if name == fmt.Sprintf("%d/%d", region, s+1) {
					s++
				}
			}
			if s < last {
				t.Fatalf("stop at %d: region %d has %d records in order of %d acknowledged: %q", n, region, s, last, found)
			}
		}
	}
}

// A segment that held damage is put aside, not deleted, when nobody needs it.
func TestDamagedIsKept(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	add(t, l, 1, 1, 2, 3, 4, 5)
	_ = l.Close()
	name := segmentPath("wal", 1)
	data := readFile(t, d, name)
	data[segmentHeaderSize+recordHeaderSize] ^= 1
	writeFile(t, d, name, data)
	l, _, report := mustStart(t, d, small)
	if len(report.Damage) != 1 || report.Damage[0].Region != 1 || report.Damage[0].Sequence != 1 {
		t.Fatal(report)
	}
	l.Flushed(1, 5)
	if _, err := d.Stat(name + damagedSuffix); err != nil || segments(t, d) != 0 {
		t.Fatal(segments(t, d), err)
	}
	mustStart(t, d, small)
}

// An injected failure of one write or sync refuses nothing: the group goes to
// a new segment.
func TestOneFailureIsHidden(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		for _, action := range []objectstoretest.Action{objectstoretest.Fail, objectstoretest.After, objectstoretest.Tear} {
			d := objectstoretest.NewMemDisk()
			f := objectstoretest.NewFaults(nil)
			l, _, _ := mustStart(t, f.Disk(d), small)
			add(t, l, 1, 1)
			failed := false
			f.SetHook(func(o objectstoretest.Op) objectstoretest.Action {
				if o.Name != op || failed {
					return objectstoretest.Pass
				}
				failed = true
				return action
			})
			add(t, l, 1, 2, 3)
			if s := l.Stats(); !failed || s.Abandoned != 1 || s.Refused != 0 {
				t.Fatalf("%+v", s)
			}
			_, found, report := mustStart(t, d.Crash(), small)
			if got := strings.Join(slices.Compact(found), " "); got != "1/1 1/2 1/3" || len(report.Damage) > 0 {
				t.Fatalf("%s %v: replayed %q, %v", action, op, found, report.Damage)
			}
		}
	}
}

// Every byte of a log is flipped once. All records but the one that is hit are
// read, and every flip is reported.
func TestFlips(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, small)
	add(t, l, 1, 1, 2, 3, 4, 5, 6)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := Segments(d, "wal")
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		files[name] = readFile(t, d, name)
	}
	for _, name := range names {
		owner := owners(t, d, name)
		for i := range files[name] {
			d := objectstoretest.NewMemDisk()
			for other, data := range files {
				data = slices.Clone(data)
				if other == name {
					data[i] ^= 1 << (i % 8)
				}
				writeFile(t, d, other, data)
			}
			l, found, report, err := start(d, small)
			if err != nil {
				t.Fatalf("flip %s at %d: %v", name, i, err)
			}
			_ = l.Close()
			var want []string
			for s := uint64(1); s <= 6; s++ {
				if s != owner[i] {
					want = append(want, fmt.Sprint("1/", s))
				}
			}
			last := name == names[len(names)-1]
			if !slices.Equal(found, want) || len(report.Damage) != 1 && !(last && len(report.Torn) == 1) {
				t.Fatalf("flip %s at %d: replayed %q, want %q; %+v", name, i, found, want, report)
			}
		}
	}
}

// owners returns for each byte of a segment the sequence of its record, 0 for
// the segment's header.
func owners(t *testing.T, d objectstore.Disk, name string) map[int]uint64 {
	t.Helper()
	m := map[int]uint64{}
	_, err := ReadSegment(d, name, func(e Entry) error {
		for i := e.Offset; i < e.Offset+e.Length; i++ {
			m[int(i)] = e.Record.Sequence
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Segments that are cut short: where the next segment says that more was
// acknowledged, it is damage.
func TestCuts(t *testing.T) {
	d0 := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d0, small)
	add(t, l, 1, 1, 2, 3, 4, 5, 6)
	_ = l.Close()
	names, _ := Segments(d0, "wal")
	for which, name := range names {
		whole := readFile(t, d0, name)
		for n := range whole {
			d := objectstoretest.NewMemDisk()
			for _, other := range names {
				writeFile(t, d, other, readFile(t, d0, other))
			}
			writeFile(t, d, name, whole[:n])
			l, _, report, err := start(d, small)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close()
			if last := which == len(names)-1; !last && len(report.Damage) == 0 || last && len(report.Damage) > 0 {
				t.Fatalf("%s cut at %d: %+v", name, n, report)
			}
		}
	}
}

// A payload that holds the bytes of a segment, whose headers are intact, is
// not taken apart when the header in front of it is damaged.
func TestNestedLog(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	l, _, _ := mustStart(t, d, Options{Logger: quiet})
	add(t, l, 1, 1, 3, 5)
	inner := readFile(t, d, segmentPath("wal", 1))
	if err := l.Append(t.Context(), Record{Region: 2, Sequence: 1, Payload: inner}); err != nil {
		t.Fatal(err)
	}
	add(t, l, 1, 7)
	_ = l.Close()
	data := readFile(t, d, segmentPath("wal", 1))
	data[len(inner)+20] ^= 1 // in the header of the record with the payload
	writeFile(t, d, segmentPath("wal", 1), data)
	_, found, report := mustStart(t, d, small)
	if fmt.Sprint(found) != "[1/1 1/3 1/5 1/7]" || len(report.Damage) != 1 {
		t.Fatal(found, report)
	}
}

func FuzzReadSegment(f *testing.F) {
	seg := segmentHeader{number: 1, previous: 0}.encode()
	for i := range uint64(3) {
		rec := appendRecord(nil, record(1, i), Compression(i%2))
		seal(rec, 1, int64(len(seg)))
		seg = append(seg, rec...)
	}
	f.Add(seg, 0)
	f.Add(seg, 60)
	f.Add(seg[:len(seg)-5], len(seg)-20)
	f.Add([]byte(recordMagic+recordMagic+recordMagic), 2)
	f.Fuzz(func(t *testing.T, data []byte, reseal int) {
		// The record header at reseal gets a checksum that fits, so that the
		// fuzzer reaches what is behind it.
		data = slices.Clone(data)
		if reseal >= 0 && reseal <= len(data)-recordHeaderSize {
			copy(data[reseal:], recordMagic)
			data[reseal+4] = formatVersion
			seal(data[reseal:], 1, int64(reseal))
		}
		d := objectstoretest.NewMemDisk()
		writeFile(t, d, segmentPath("wal", 1), data)
		at := int64(0)
		info, err := ReadSegment(d, segmentPath("wal", 1), func(e Entry) error {
			if e.Offset < at || e.Length < 0 || e.Offset+e.Length > int64(len(data)) {
				t.Fatalf("an entry of %d bytes at %d follows one that ends at %d", e.Length, e.Offset, at)
			}
			at = e.Offset + e.Length
			return nil
		})
		if err == nil && at != int64(len(data)) && !(info.HeaderIntact && len(data) == segmentHeaderSize) {
			t.Fatalf("%d of %d bytes are accounted for", at, len(data))
		}
	})
}
