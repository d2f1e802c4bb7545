package storage_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// contents returns all files of a disk.
func contents(t testing.TB, d objectstore.Disk, dir string, files map[string][]byte) {
	t.Helper()
	entries, err := d.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			contents(t, d, name, files)
			continue
		}
		f, err := d.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		size, _ := f.Size()
		data := make([]byte, size)
		if _, err := f.ReadAt(data, 0); err != nil && size > 0 {
			t.Fatal(err)
		}
		files[name] = data
		_ = f.Close()
	}
}

// diskWith makes a disk of files, of which one has one bit flipped.
func diskWith(t testing.TB, files map[string][]byte, damaged string, at int) *objectstoretest.MemDisk {
	t.Helper()
	d := objectstoretest.NewMemDisk()
	for name, data := range files {
		if name == damaged {
			data = slices.Clone(data)
			data[at] ^= 1 << (at % 8)
		}
		if err := objectstore.MakeDir(d, path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		f, err := d.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close(), d.SyncDir(path.Dir(name))); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestEveryFlippedByteIsReported flips a bit of every byte of a small store.
// Check finds each of them, except where it cannot make a difference, and the
// engine never returns a row that was not written.
func TestEveryFlippedByteIsReported(t *testing.T) {
	store := storagetest.New(t, func(o *storage.Options) { o.SeriesRows = 1 })
	info := storagetest.Table(1, "m", table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64")
	store.Tables.Put(info)
	ctx := context.Background()
	for i := range 3 {
		if err := store.Write(ctx, info, 0, storagetest.Rows(info, table.Put, []any{"h", i, i}, []any{"g", i, i})); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := store.Flush(ctx, info); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := storagetest.Read(t, store, info, storagetest.All(info))
	files := make(map[string][]byte)
	contents(t, store.Disk.Crash(), "data", files)
	store.Disk = diskWith(t, files, "", 0)
	for name, data := range files {
		if strings.HasPrefix(path.Base(name), ".tmp-") {
			continue // left by the crash; nobody reads it
		}
		for at := range data {
			checkDamaged(t, store.Tables, info, want, diskWith(t, files, name, at), name, at)
		}
	}
	report, err := storage.Check(ctx, store.Disk, "data", openBucket(t, store.Disk), storage.CheckOptions{})
	if err != nil || len(report.Problems) > 0 || report.Files != 1 || report.Records == 0 {
		t.Errorf("check of the undamaged store: %+v, %v", report, err)
	}
	store.Crash(t)
}

func openBucket(t *testing.T, d objectstore.Disk) objectstore.Bucket {
	t.Helper()
	b, err := objectstore.OpenDir(d, "data/bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkDamaged(t *testing.T, tables *storagetest.Tables, info *table.Info, want []string, d *objectstoretest.MemDisk, name string, at int) {
	t.Helper()
	ctx := context.Background()
	bucket := openBucket(t, d)
	report, err := storage.Check(ctx, d, "data", bucket, storage.CheckOptions{})
	if err == nil && len(report.Problems)+len(report.Torn) == 0 {
		t.Errorf("%s at %d: a flipped bit was not found", name, at)
	}
	e, err := storage.Open(ctx, storage.Options{Disk: d, DataDir: "data", Bucket: bucket, Tables: tables, Logger: quiet})
	if err != nil {
		return // said so
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx, info)
	if err != nil {
		return // said so
	}
	defer snap.Close()
	got := storagetest.Scan(t, snap, storagetest.All(info))
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s at %d: row %q was never written", name, at, line)
		}
	}
	if len(got) < len(want) && strings.HasSuffix(name, ".parquet") && len(e.Damaged()) == 0 {
		t.Errorf("%s at %d: %d of %d rows, and no damage reported", name, at, len(got), len(want))
	}
}

// overwrite replaces the contents of a file.
func overwrite(t *testing.T, d objectstore.Disk, name string, data []byte) {
	t.Helper()
	if err := d.Remove(name); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
