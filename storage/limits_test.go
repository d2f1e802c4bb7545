package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// openOn opens an engine on a bucket, and closes it at the end of the test.
func openOn(t *testing.T, bucket objectstore.Bucket, tables *storagetest.Tables, tune func(*storage.Options)) *storage.Engine {
	t.Helper()
	opts := storage.Options{Disk: objectstoretest.NewMemDisk(), DataDir: "data", Bucket: bucket, Tables: tables,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if tune != nil {
		tune(&opts)
	}
	e, err := storage.Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func memBucket(t *testing.T) objectstore.Bucket {
	t.Helper()
	bucket, err := objectstore.OpenDir(objectstoretest.NewMemDisk(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

func limitsTable(tables *storagetest.Tables, id table.ID) *table.Info {
	info := storagetest.Table(id, fmt.Sprint("m", id), table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64", "s String")
	tables.Put(info)
	return info
}

// A region that cannot be flushed holds memory for long. The others are
// flushed in time, and no write has to wait for it.
func TestRegionThatCannotBeFlushed(t *testing.T) {
	const budget = 4 << 20
	tables, ctx := new(storagetest.Tables), context.Background()
	broken, whole := limitsTable(tables, 1), limitsTable(tables, 2)
	faults := objectstoretest.NewFaults(func(op objectstoretest.Op) objectstoretest.Action {
		if op.Name == "create" && strings.HasPrefix(op.Path, "table/1/") {
			return objectstoretest.Fail
		}
		return objectstoretest.Pass
	})
	e := openOn(t, faults.Bucket(memBucket(t)), tables, func(o *storage.Options) {
		o.MemtableBytes, o.FlushBackoff, o.WriteWait = budget, time.Hour, 5*time.Second
	})
	long := strings.Repeat("x", 1000)
	at := 0
	write := func(info *table.Info) {
		t.Helper()
		var rows [][]any
		for range 50 {
			rows = append(rows, []any{"h", at, at, fmt.Sprint(at, long)})
			at++
		}
		if err := e.Write(ctx, info, 0, storagetest.Rows(info, table.Put, rows...)); err != nil {
			t.Fatalf("write row %d of table %d: %v", at, info.ID, err)
		}
	}
	for at < budget*6/10/1000 {
		write(broken)
	}
	if err := e.Flush(ctx, broken); err == nil {
		t.Fatal("the flush did not fail")
	}
	for at < 3*budget/1000 {
		write(whole)
	}
}

// A memtable counts its rows in 31 bits. Before it is full the region goes on
// with new ones, and nothing is lost or out of order.
func TestFullMemtable(t *testing.T) {
	store := storagetest.New(t)
	store.Engine().SetMaxTableRows(10)
	info := limitsTable(store.Tables, 1)
	release, err := store.Engine().HoldFlushes(info.ID.Region(0))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 15 {
		rows := [][]any{{"h", 0, i, "new"}, {"h", 3*i + 1, i, "a"}, {"h", 3*i + 2, i, "b"}}
		if err := store.Write(context.Background(), info, 0, storagetest.Rows(info, table.Put, rows...)); err != nil {
			t.Fatal(err)
		}
		if n := store.Engine().LargestTable(info.ID.Region(0)); n == 0 || n > 10 {
			t.Fatalf("a memtable has %d rows", n)
		}
		want = append(want, fmt.Sprintf("h %d %d a", 3*i+1, i), fmt.Sprintf("h %d %d b", 3*i+2, i))
	}
	want = append(want, "h 0 14 new")
	check := func(when string) {
		t.Helper()
		got := storagetest.Read(t, store, info, storagetest.All(info))
		if diff := sameLines(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("in memory")
	release()
	store.Crash(t)
	check("after a crash")
	if err := store.Flush(context.Background(), info); err != nil {
		t.Fatal(err)
	}
	check("in files")
}

// A batch of times in windows that have memtables needs no others: only a
// window that is one too many is for strays.
func TestOpenWindowsAreCountedOnce(t *testing.T) {
	store := storagetest.New(t)
	info := limitsTable(store.Tables, 1)
	day := int(24 * time.Hour / time.Millisecond)
	write := func(windows int) {
		t.Helper()
		var rows [][]any
		for w := range windows {
			rows = append(rows, []any{"h", w * day, w, "s"})
		}
		if err := store.Write(context.Background(), info, 0, storagetest.Rows(info, table.Put, rows...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{40, 64, 65} {
		write(n)
		windows, strays := store.Engine().Windows(info.ID.Region(0))
		if windows != min(n, 64) || strays != (n > 64) {
			t.Errorf("rows in %d windows: %d memtables, strays: %v", n, windows, strays)
		}
	}
}

func sameLines(want, got []string) string {
	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	return cmp.Diff(want, got)
}

// A gate lets no operation on keys with a prefix through until it is opened.
type gate struct {
	objectstore.Bucket
	prefix string
	open   chan struct{}
}

func (g *gate) pass(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, g.prefix) {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) List(ctx context.Context, prefix string) ([]objectstore.Object, error) {
	if err := g.pass(ctx, prefix); err != nil {
		return nil, err
	}
	return g.Bucket.List(ctx, prefix)
}

func (g *gate) Create(ctx context.Context, key string, ifAbsent bool) (objectstore.Writer, error) {
	if err := g.pass(ctx, key); err != nil {
		return nil, err
	}
	return g.Bucket.Create(ctx, key, ifAbsent)
}

// A client that goes away while a region is opened for it takes nobody along
// who waits for the same region.
func TestOpeningARegionOutlivesTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := new(storagetest.Tables)
		info := limitsTable(tables, 1)
		g := &gate{Bucket: memBucket(t), prefix: "table/1/", open: make(chan struct{})}
		e := openOn(t, g, tables, nil)
		snapshot := func(ctx context.Context) chan error {
			done := make(chan error, 1)
			go func() {
				s, err := e.Snapshot(ctx, info)
				if err == nil {
					s.Close()
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(context.Background())
		first, second := snapshot(ctx), snapshot(context.Background())
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller: %v", err)
		}
		synctest.Wait()
		close(g.open)
		if err := <-second; err != nil {
			t.Errorf("the second caller: %v", err)
		}
	})
}

// A bucket that does not answer cannot keep an engine from closing. The rows
// are in the log.
func TestCloseHasABound(t *testing.T) {
	tables, ctx := new(storagetest.Tables), context.Background()
	info := limitsTable(tables, 1)
	g := &gate{Bucket: memBucket(t), prefix: "table/1/0/sst/", open: make(chan struct{})}
	disk := objectstoretest.NewMemDisk()
	onDisk := func(o *storage.Options) { o.Disk, o.ShutdownWait = disk, 10*time.Millisecond }
	e := openOn(t, g, tables, onDisk)
	if err := e.Write(ctx, info, 0, storagetest.Rows(info, table.Put, []any{"h", 1, 2, "s"})); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); !errors.Is(err, storage.ErrUnflushed) {
		t.Errorf("closed: %v", err)
	}
	close(g.open)
	e = openOn(t, g, tables, onDisk)
	if got := storagetest.Read(t, e, info, storagetest.All(info)); sameLines([]string{"h 1 2 s"}, got) != "" {
		t.Errorf("after the next start: %q", got)
	}
}

// The pages of a file are found in the cache even if its footer was read again.
func TestPagesOutliveTheirFooter(t *testing.T) {
	store := storagetest.New(t)
	info := limitsTable(store.Tables, 1)
	ctx := context.Background()
	if err := store.Write(ctx, info, 0, storagetest.Rows(info, table.Put, []any{"h", 1, 2, "s"})); err != nil {
		t.Fatal(err)
	}
	if err := store.Flush(ctx, info); err != nil {
		t.Fatal(err)
	}
	storagetest.Read(t, store, info, storagetest.All(info))
	before := store.Engine().CacheStats()
	store.Engine().DropFooters()
	storagetest.Read(t, store, info, storagetest.All(info))
	after := store.Engine().CacheStats()
	if before.Pages == 0 || after.Pages != before.Pages || after.Misses != before.Misses {
		t.Errorf("before: %+v; after: %+v", before, after)
	}
}
