package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

const (
	benchHosts = 4000
	benchBatch = 3000
)

// tsbs makes batches as TSBS's cpu table has them: 10 tags, 10 doubles, every
// host once in 10 seconds.
type tsbs struct {
	info  *table.Info
	keys  [][]byte
	rng   *rand.Rand
	whole bool // integer values
	next  int
	rows  table.Rows
}

func newTSBS(id table.ID, whole bool) *tsbs {
	columns := []string{"ts TimestampNanosecond time"}
	for _, tag := range []string{"hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"} {
		columns = append(columns, tag+" String tag")
	}
	for f := range 10 {
		columns = append(columns, fmt.Sprintf("f%d Float64", f))
	}
	b := &tsbs{info: storagetest.Table(id, "cpu", table.LastNonNull, columns...), rng: rand.New(rand.NewPCG(1, 2)), whole: whole}
	for h := range benchHosts {
		row := []any{0, fmt.Sprint("host_", h), fmt.Sprint("eu-central-", h%9), fmt.Sprint("eu-central-1", h%30), fmt.Sprint(h % 100),
			"Ubuntu16.04LTS", "x64", []string{"SF", "NYC", "LON"}[h%3], fmt.Sprint(h % 20), fmt.Sprint(h % 2), []string{"production", "staging", "test"}[h%3]}
		b.keys = append(b.keys, storagetest.Key(b.info, append(row, make([]any, 10)...)))
	}
	for f := range 10 {
		b.rows.Fields = append(b.rows.Fields, table.FieldVector{ID: table.ColumnID(12 + f), Vector: table.Vector{Type: table.Float64, Len: benchBatch}})
	}
	return b
}

func (b *tsbs) batch() *table.Rows {
	r := &b.rows
	r.Keys.Reset()
	r.Series, r.Times = r.Series[:0], r.Times[:0]
	for f := range r.Fields {
		r.Fields[f].Floats = r.Fields[f].Floats[:0]
	}
	for i := range benchBatch {
		n := b.next + i
		key := b.keys[n%benchHosts]
		r.Series = append(r.Series, r.Keys.Append(key, table.HashKey(key)))
		r.Times = append(r.Times, 1_700_000_000_000_000_000+int64(n/benchHosts)*10_000_000_000)
		for f := range r.Fields {
			v := b.rng.Float64() * 100
			if b.whole {
				v = float64(int(v))
			}
			r.Fields[f].Floats = append(r.Fields[f].Floats, v)
		}
	}
	b.next += benchBatch
	return r
}

func BenchmarkWrite(b *testing.B) {
	for _, onDisk := range []bool{false, true} {
		for _, whole := range []bool{true, false} {
			b.Run(fmt.Sprintf("disk=%v/integers=%v", onDisk, whole), func(b *testing.B) {
				data := newTSBS(1, whole)
				tables := &storagetest.Tables{}
				tables.Put(data.info)
				e := benchEngine(b, onDisk, tables)
				b.ReportAllocs()
				rows := 0
				for b.Loop() {
					b.StopTimer()
					batch := data.batch()
					b.StartTimer()
					if err := e.Write(context.Background(), data.info, 0, batch); err != nil {
						b.Fatal(err)
					}
					rows += batch.Len()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
			})
		}
	}
}

func benchEngine(b *testing.B, onDisk bool, tables *storagetest.Tables) table.Writer {
	if !onDisk {
		s := storagetest.New(b)
		s.Tables.Put(mustTable(tables))
		return s
	}
	disk, dir := objectstore.OSDisk(), b.TempDir()
	bucket, err := objectstore.OpenDir(disk, dir+"/bucket")
	if err != nil {
		b.Fatal(err)
	}
	e, err := storage.Open(context.Background(), storage.Options{Disk: disk, DataDir: dir, Bucket: bucket, Tables: tables})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	return e
}

func mustTable(tables *storagetest.Tables) *table.Info {
	info, ok := tables.TableByID(1)
	if !ok {
		panic("no table 1")
	}
	return info
}

const benchRows = 1_200_000

func filledStore(b *testing.B) (*storagetest.Store, *tsbs) {
	data := newTSBS(1, true)
	s := storagetest.New(b, func(o *storage.Options) { o.FlushBytes, o.MemtableBytes = 4<<30, 8<<30 })
	s.Tables.Put(data.info)
	for data.next < benchRows {
		if err := s.Write(context.Background(), data.info, 0, data.batch()); err != nil {
			b.Fatal(err)
		}
	}
	return s, data
}

// BenchmarkScan reads 10 fields of all rows, from memory and from files.
func BenchmarkScan(b *testing.B) {
	s, data := filledStore(b)
	spec := table.ScanSpec{Times: table.AllTime}
	for f := range 10 {
		spec.Columns = append(spec.Columns, table.ColumnID(12+f))
	}
	run := func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(benchRows * 80)
		for b.Loop() {
			if n := countRows(b, s, data.info, spec); n != benchRows {
				b.Fatalf("%d rows of %d", n, benchRows)
			}
		}
	}
	b.Run("memory", run)
	one := spec
	one.Predicates = []table.Predicate{{Column: 2, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "host_7"}}}}
	oneHost := func(b *testing.B) {
		for b.Loop() {
			if n := countRows(b, s, data.info, one); n != benchRows/benchHosts {
				b.Fatalf("%d rows of one host", n)
			}
		}
	}
	b.Run("memory-one-host", oneHost)
	if err := s.Flush(context.Background(), data.info); err != nil {
		b.Fatal(err)
	}
	b.Run("file", run)
	b.Run("file-one-host", oneHost)
}

func countRows(b *testing.B, r table.Reader, info *table.Info, spec table.ScanSpec) (n int) {
	ctx := context.Background()
	snap, err := r.Snapshot(ctx, info)
	if err != nil {
		b.Fatal(err)
	}
	defer snap.Close()
	parts, err := snap.Scan(ctx, spec)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range parts {
		for {
			batch, err := p.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if batch == nil {
				break
			}
			n += batch.Len
		}
		p.Close()
	}
	return n
}

// BenchmarkFlush writes 1.2 M rows as one SST.
func BenchmarkFlush(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, data := filledStore(b)
		b.StartTimer()
		if err := s.Flush(context.Background(), data.info); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}
