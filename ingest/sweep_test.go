package ingest

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest/lineprotocol"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

var long = flag.Bool("long", false, "sweep every operation")

// stride returns the step of a sweep: 1, unless time is short. It shares no
// divisor with the numbers of ways that the sweeps go through.
func stride() int {
	if *long {
		return 1
	}
	return 5
}

// A spine is catalog, engine and ingester on one disk, as a server opens them.
type spine struct {
	catalog *catalog.Catalog
	engine  sweptEngine
	in      *Ingester
}

// A sweptEngine is what the sweep asks of a storage engine.
type sweptEngine interface {
	table.Writer
	table.Reader
	table.Maintainer
	RemoveDropped(ctx context.Context) error
	Close() error
}

func openSpine(disk objectstore.Disk) (*spine, error) {
	ctx := context.Background()
	bucket, err := objectstore.OpenDir(disk, "data/bucket")
	if err != nil {
		return nil, err
	}
	c, err := catalog.Open(ctx, bucket, "catalog/", catalog.Options{CheckpointEdits: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	e, err := storagetest.Open(ctx, disk, bucket, c, c.View().NextID(),
		storagetest.Small{SegmentBytes: 600, LogBytes: 2400, FlushBytes: 64 << 10})
	if err != nil {
		return nil, err
	}
	return &spine{c, e, New(c, e, Options{})}, nil
}

// A fate says what is known of a row or a table after a run.
type fate uint8

const (
	absent fate = iota // never sent, or certainly gone
	maybe              // sent, and the answer was an error
	there              // acknowledged
)

// A ledger is what the client of one run knows: rows by table and by their
// spelling in a read.
type ledger map[string]map[string]fate

// send writes one row to a table that keeps what it is given by field.
func (l ledger) send(s *spine, name, extra string, n int) {
	if l[name] == nil {
		l[name] = make(map[string]fate)
	}
	line := fmt.Sprintf("%s,host=h%d n=%di%s %d", name, n%2, n, extra, n*1_000_000_000)
	row := fmt.Sprint(n)
	l[name][row] = max(l[name][row], maybe)
	report, err := s.in.LineProtocol(context.Background(), catalog.Public, []byte(line), lineprotocol.Nanosecond)
	if err == nil && report.Dropped == 0 {
		l[name][row] = there
	}
}

// drop drops a table. When that fails nobody knows whether its rows are there,
// but those of a table made after it are another matter: names are used once
// more only after a drop that succeeded.
func (l ledger) drop(s *spine, name string) (gone bool) {
	ctx := context.Background()
	info, err := s.catalog.DropTable(ctx, catalog.Public, name)
	switch {
	case fault.KindOf(err) == fault.TableNotFound:
		// It was never made, as far as is known. An edit that failed may still
		// be found by who opens the catalog next, so its rows stay a maybe.
		return len(l[name]) == 0
	case err != nil:
		for row := range l[name] {
			l[name][row] = maybe
		}
		return false
	}
	_ = s.engine.Drop(ctx, info.ID) // what cannot be deleted takes room and is never read
	delete(l, name)
	return true
}

// run is the workload: tables are made by writes and by hand, widened, flushed,
// dropped and made again under the same name, while the log rotates.
func (l ledger) run(s *spine) {
	ctx := context.Background()
	flush := func(name string) {
		if info, err := s.catalog.Table(catalog.Public, name); err == nil {
			_ = s.engine.Flush(ctx, info)
		}
	}
	// One table is made by hand and keeps every row, so that a row that comes
	// back twice shows. It is never flushed by hand: the log has to carry it along.
	_, _, _ = s.catalog.CreateTable(ctx, catalog.Spec{Database: catalog.Public, Name: "cold", Merge: table.Append, Columns: []table.Column{
		{Name: "host", Type: table.String, Role: table.Tag}, {Name: "n", Type: table.Int64, Role: table.Field},
		{Name: "greptime_timestamp", Type: table.TimestampNanosecond, Role: table.Timestamp},
	}}, true) // if that fails, the write below makes another
	for n := range 6 {
		l.send(s, "cold", "", n)
	}
	for n := range 4 {
		l.send(s, "wide", fmt.Sprintf(",f%d=1", n), n) // a new column each time
		l.send(s, "gone", "", n)
	}
	flush("wide")
	flush("gone")
	l.send(s, "gone", `,pad="not in a file when it goes"`, 4)
	if l.drop(s, "gone") {
		for n := 10; n < 13; n++ {
			l.send(s, "gone", "", n) // the same name, another table
		}
	}
	for n := 4; n < 10; n++ {
		l.send(s, "wide", fmt.Sprintf(`,pad="%040d"`, n), n)
		if n == 6 {
			flush("wide")
		}
	}
	l.send(s, "late,dc=x", "", 1)
}

// check reads every table and compares.
func (l ledger) check(t *testing.T, what string, s *spine) {
	t.Helper()
	tables, err := s.catalog.Tables(catalog.Public)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	found := make(map[string]bool)
	for _, info := range tables {
		name := info.Name
		if name == "late" {
			name = "late,dc=x"
		}
		found[name] = true
		seen := make(map[string]int)
		for _, row := range l.read(t, what, s, info) {
			if seen[row]++; seen[row] > 1 || l[name][row] == absent {
				t.Fatalf("%s: table %s has row %s %d times, which is %d to the client", what, info.Name, row, seen[row], l[name][row])
			}
		}
		for row, fate := range l[name] {
			if fate == there && seen[row] == 0 {
				t.Fatalf("%s: table %s lost row %s", what, info.Name, row)
			}
		}
	}
	for name, rows := range l {
		if !found[name] && slices.Contains(slices.Collect(maps.Values(rows)), there) {
			t.Fatalf("%s: table %s is gone", what, name)
		}
	}
}

func (l ledger) read(t *testing.T, what string, s *spine, info *table.Info) []string {
	t.Helper()
	for i := range info.Schema.Columns {
		if c := &info.Schema.Columns[i]; c.Name == "n" {
			return storagetest.Read(t, s.engine, info, table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{c.ID}})
		}
	}
	t.Fatalf("%s: table %s has no column n", what, info.Name)
	return nil
}

// recovered opens what survived twice, and each time reads, writes to every
// table and reads again: a store that opens must also work.
func (l ledger) recovered(t *testing.T, what string, disk objectstore.Disk) {
	t.Helper()
	for round := range 2 {
		s, err := openSpine(disk)
		if err != nil {
			t.Fatalf("%s: open, round %d: %v", what, round, err)
		}
		l.check(t, what, s)
		s.noLeftovers(t, what, disk)
		for _, name := range []string{"cold", "wide", "gone"} {
			l.send(s, name, fmt.Sprintf(",after%d=1", round), 100+round)
			if l[name][fmt.Sprint(100+round)] != there {
				t.Fatalf("%s: round %d: table %s takes no writes", what, round, name)
			}
		}
		l.check(t, what, s)
		if err := s.engine.Close(); err != nil {
			t.Fatalf("%s: close, round %d: %v", what, round, err)
		}
	}
}

// noLeftovers removes the files of dropped tables, as a start does in the
// background, and looks whether all are gone.
func (s *spine) noLeftovers(t *testing.T, what string, disk objectstore.Disk) {
	t.Helper()
	ctx := context.Background()
	if err := s.engine.RemoveDropped(ctx); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	bucket, err := objectstore.OpenDir(disk, "data/bucket")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bucket.List(ctx, "table/")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		var id table.ID
		if _, err := fmt.Sscanf(o.Key, "table/%d/", &id); err != nil {
			t.Fatalf("%s: the key %s has no table: %v", what, o.Key, err)
		}
		if _, ok := s.catalog.TableByID(id); !ok {
			t.Fatalf("%s: %s of a dropped table is left", what, o.Key)
		}
	}
}

// attempt runs the workload on disk, as far as that goes. With heal, the disk
// is well again afterwards, and what is acknowledged must be there at once. With
// kill, the machine stops before the engine can flush. It returns the disk that
// is left.
func (l ledger) attempt(t *testing.T, what string, faults *objectstoretest.Faults, mem *objectstoretest.MemDisk, heal func(), kill bool) (survivor *objectstoretest.MemDisk) {
	t.Helper()
	survivor = mem
	s, err := openSpine(faults.Disk(mem))
	if err != nil {
		return survivor
	}
	l.run(s)
	if heal != nil {
		heal()
		l.check(t, what+", before a restart", s)
		l.send(s, "cold", "", 50)
		if l["cold"]["50"] != there {
			t.Fatalf("%s: the disk is well again and writes are not", what)
		}
	}
	if kill {
		survivor = mem.Crash()
	}
	if err := s.engine.Close(); err != nil && heal != nil && !kill {
		t.Fatalf("%s: close: %v", what, err)
	}
	return survivor
}

// TestSpineCrashSweep stops the machine at operation n, for every n until the
// workload completes: every acknowledged row is there once, in the table that
// it was written to, and nothing that was not sent.
func TestSpineCrashSweep(t *testing.T) {
	for n := 1; ; n += stride() {
		mem, l := objectstoretest.NewMemDisk(), ledger{}
		faults := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
		what := fmt.Sprintf("crash at operation %d", n)
		l.attempt(t, what, faults, mem, nil, false)
		if !faults.Stopped() {
			if n < 400 {
				t.Fatalf("the workload took only %d operations", n)
			}
			return
		}
		survivor := mem.Crash()
		if n%2 == 0 {
			survivor = mem.CrashTorn(uint64(n))
		}
		l.recovered(t, what, survivor)
	}
}

// TestSpineFailSweep makes operation n fail, in each way that an operation
// can, or the disk full from there on for a while. The server goes on, heals
// without a restart, and after one has what it acknowledged.
func TestSpineFailSweep(t *testing.T) {
	hooks := []func(n int) objectstoretest.Hook{
		func(n int) objectstoretest.Hook { return objectstoretest.At(n, objectstoretest.Fail) },
		func(n int) objectstoretest.Hook { return objectstoretest.At(n, objectstoretest.After) },
		func(n int) objectstoretest.Hook { return objectstoretest.At(n, objectstoretest.Tear) },
		func(n int) objectstoretest.Hook { return objectstoretest.FullFor(n, 40) },
	}
	for n := 1; ; n += stride() {
		mem, l := objectstoretest.NewMemDisk(), ledger{}
		faults := objectstoretest.NewFaults(hooks[n%len(hooks)](n))
		what := fmt.Sprintf("failure at operation %d", n)
		survivor := l.attempt(t, what, faults, mem, func() { faults.SetHook(nil) }, n/len(hooks)%2 == 0)
		if faults.Ops() < n {
			return
		}
		l.recovered(t, what, survivor)
	}
}
