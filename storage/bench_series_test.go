package storage_test

import (
	"context"
	"testing"

	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// edgeStore holds files and a memtable whose times overlap by a step or two,
// as several connections leave them: of two neighbouring batches sometimes the
// later comes first, and a flush may come between them.
func edgeStore(b *testing.B, cache int64, files int) (*storagetest.Store, *tsbs) {
	data := newTSBS(1, true)
	s := storagetest.New(b, func(o *storage.Options) {
		o.FlushBytes, o.MemtableBytes, o.PageCacheBytes = 4<<30, 8<<30, cache
	})
	s.Tables.Put(data.info)
	write := func(next int) {
		data.next = next
		if err := s.Write(context.Background(), data.info, 0, data.batch()); err != nil {
			b.Fatal(err)
		}
	}
	const batches = 200 // a file, and as many in memory at the end
	next := 0
	for range files + 1 {
		if next > 0 {
			if err := s.Flush(context.Background(), data.info); err != nil {
				b.Fatal(err)
			}
			write(next - benchBatch)
		}
		for range batches {
			write(next)
			next += benchBatch
		}
		next += benchBatch // comes behind the flush
	}
	return s, data
}

// BenchmarkEdges scans files and a memtable that overlap at their edges.
func BenchmarkEdges(b *testing.B) {
	s, data := edgeStore(b, 1<<30, 4)
	want := 0
	f := func(name string, columns []table.ColumnID, change func(*table.ScanSpec)) {
		b.Run(name, func(b *testing.B) {
			spec := table.ScanSpec{Times: table.AllTime, Columns: columns}
			change(&spec)
			rows := 0
			for b.Loop() {
				rows = countRows(b, s, data.info, spec)
			}
			if rows < want {
				b.Fatalf("%d rows", rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			b.ReportMetric(float64(s.Engine().CacheStats().Bytes)/(1<<20), "cache-MiB")
		})
	}
	var fields []table.ColumnID
	for i := range 10 {
		fields = append(fields, table.ColumnID(12+i))
	}
	all := func(*table.ScanSpec) {}
	for _, where := range []string{"live", "flushed"} {
		f(where+"/sum-1", fields[:1], all)
		f(where+"/sum-10", fields, all)
		f(where+"/host-sum-10", append([]table.ColumnID{2}, fields...), all)
		f(where+"/time-host-sum-1", []table.ColumnID{1, 2, 12}, all)
		one := table.Predicate{Column: 2, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "host_7"}}}
		f(where+"/one-host-one-hour", []table.ColumnID{1, 12}, func(spec *table.ScanSpec) {
			spec.Predicates = []table.Predicate{one}
			spec.Times.Min = 1_700_000_000_000_000_000 + 1_000_000_000_000
			spec.Times.Max = spec.Times.Min + 3_600_000_000_000
		})
		if where == "live" {
			if err := s.Flush(context.Background(), data.info); err != nil {
				b.Fatal(err)
			}
		}
	}
}
