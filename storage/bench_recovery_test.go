package storage_test

import (
	"context"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/storage/wal"
)

// BenchmarkRecovery opens an engine whose log has 64 MiB of payloads that are
// not flushed, as they were given: within the memory of memtables, and with a
// quarter of what they take.
func BenchmarkRecovery(b *testing.B) {
	const logged = 64 << 20
	data, tables := newTSBS(1, false), &storagetest.Tables{}
	tables.Put(data.info)
	open := func(disk objectstore.Disk, memtables int64) *storage.Engine {
		bucket, err := objectstore.OpenDir(disk, "data/bucket")
		if err != nil {
			b.Fatal(err)
		}
		e, err := storage.Open(context.Background(), storage.Options{Disk: disk, DataDir: "data", Bucket: bucket, Tables: tables,
			FlushBytes: 1 << 40, MemtableBytes: memtables, WAL: wal.Options{Logger: quiet}, Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	mem := objectstoretest.NewMemDisk()
	e := open(mem, 1<<40)
	bytes := int64(0)
	for bytes < logged {
		batch := data.batch()
		bytes += int64(batch.Len()*(8+4+10*8)) + int64(len(batch.Keys.Data))
		if err := e.Write(context.Background(), data.info, 0, batch); err != nil {
			b.Fatal(err)
		}
	}
	files := make(map[string][]byte)
	contents(b, mem.Crash(), "data", files)
	_ = e.Close() // to a disk that is gone
	e = open(diskWith(b, files, "", 0), 1<<40)
	_, whole := e.RecoveryRelief()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
	f := func(name string, budget int64) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				disk := diskWith(b, files, "", 0)
				b.StartTimer()
				e := open(disk, budget)
				b.StopTimer()
				flushes, peak := e.RecoveryRelief()
				b.ReportMetric(float64(flushes), "flushes")
				b.ReportMetric(float64(peak)/(1<<20), "peakMiB")
				disk.Crash()
				_ = e.Close()
				b.StartTimer()
			}
		})
	}
	f("memory=enough", 4*whole)
	f("memory=quarter", whole/4)
}
