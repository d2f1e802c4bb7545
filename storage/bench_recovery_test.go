package storage_test

import (
	"context"
	"runtime"
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
	crash := func() {
		next := mem.Crash()
		_ = e.Close() // to a disk that is gone
		mem = next
	}
	crash()
	e = open(mem, 1<<40)
	_, whole := e.RecoveryRelief()
	crash()
	for _, budget := range []int64{1 << 40, whole / 4} {
		name := "memory=enough"
		if budget < whole {
			name = "memory=quarter"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				e = open(mem, budget)
				b.StopTimer()
				flushes, peak := e.RecoveryRelief()
				b.ReportMetric(float64(flushes), "flushes")
				b.ReportMetric(float64(peak)/(1<<20), "peakMiB")
				if budget < whole { // its log is flushed now: one round is all there is
					b.ReportMetric(float64(budget)/(1<<20), "budgetMiB")
				}
				crash()
				runtime.GC()
				b.StartTimer()
				if budget < whole {
					break
				}
			}
		})
	}
	_ = e.Close()
}
