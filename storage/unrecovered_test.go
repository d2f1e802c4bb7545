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

// TestMendedManifestWaitsForRestart recovers with the manifest of one table
// damaged. The other table is served meanwhile. When the manifest is mended
// while the engine runs, the table must stay closed: a write to it would get a
// sequence that a logged write has, and one of them would be lost.
func TestMendedManifestWaitsForRestart(t *testing.T) {
	store := storagetest.New(t)
	ctx := context.Background()
	var infos []*table.Info
	for id, name := range []string{"hurt", "sound"} {
		info := storagetest.Table(table.ID(id+1), name, table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64")
		store.Tables.Put(info)
		infos = append(infos, info)
		write(t, store, info, 1)
		if err := store.Flush(ctx, info); err != nil {
			t.Fatal(err)
		}
		write(t, store, info, 2)
	}
	hurt, sound := infos[0], infos[1]
	files := make(map[string][]byte)
	contents(t, store.Disk.Crash(), "data", files)
	store.Disk = diskWith(t, files, "", 0)
	defer store.Crash(t)
	var manifest string
	for name := range files {
		if strings.Contains(name, "/table/1/0/manifest/0") { // and not a temporary file
			manifest = name
		}
	}
	disk := diskWith(t, files, manifest, 100)
	open := func() *storage.Engine {
		t.Helper()
		e, err := storage.Open(ctx, storage.Options{Disk: disk, DataDir: "data", Bucket: openBucket(t, disk), Tables: store.Tables, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	write(t, e, sound, 3)
	if got := storagetest.Read(t, e, sound, storagetest.All(sound)); len(got) != 3 {
		t.Errorf("the sound table reads %v", got)
	}
	overwrite(t, disk, manifest, files[manifest])
	err := e.Write(ctx, hurt, 0, storagetest.Rows(hurt, table.Put, []any{"h", 9, 9}))
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "restart") {
		t.Errorf("write to the mended table before a restart: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open()
	defer e.Close()
	write(t, e, hurt, 3)
	if got := storagetest.Read(t, e, hurt, storagetest.All(hurt)); !slices.Equal(got, []string{"h 1 1", "h 2 2", "h 3 3"}) {
		t.Errorf("the mended table reads %v", got)
	}
}

// write writes one row whose time and value are n.
func write(t *testing.T, w table.Writer, info *table.Info, n int) {
	t.Helper()
	if err := w.Write(context.Background(), info, 0, storagetest.Rows(info, table.Put, []any{"h", n, n})); err != nil {
		t.Fatal(err)
	}
}
