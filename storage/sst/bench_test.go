package sst_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"sync"
	"testing"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/merge"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// cpuSchema is that of TSBS's cpu table: ten tags, ten doubles.
func cpuSchema() *table.Schema {
	s := &table.Schema{Version: 1}
	add := func(name string, t table.Type, role table.Role) {
		id := table.ColumnID(len(s.Columns) + 1)
		s.Columns = append(s.Columns, table.Column{ID: id, Name: name, Type: t, Role: role})
		if role == table.Tag {
			s.Key = append(s.Key, id)
		}
	}
	for _, tag := range []string{"hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "version", "environment"} {
		add(tag, table.String, table.Tag)
	}
	add("ts", table.TimestampNanosecond, table.Timestamp)
	for _, f := range []string{"user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"} {
		add("usage_"+f, table.Float64, table.Field)
	}
	return s
}

// A cpuSource makes points of hosts, series by series.
type cpuSource struct {
	hosts, points int
	start, step   int64 // time of the first point, and between points
	full          bool  // full-precision values
	sequence      uint64

	host   int
	r      *rand.Rand
	values [10]float64
	batch  run.Batch
}

func (s *cpuSource) Close() {}

func (s *cpuSource) Next(context.Context) (*run.Batch, error) {
	if s.host == s.hosts {
		return nil, nil
	}
	if s.r == nil {
		s.r = rand.New(rand.NewSource(int64(s.sequence)))
		s.batch.Columns = make([]table.Vector, 10)
	}
	b := &s.batch
	b.Len, b.Keys, b.Starts, b.Times = 0, b.Keys[:0], b.Starts[:0], b.Times[:0]
	b.Sequence = s.sequence
	for c := range b.Columns {
		b.Columns[c] = table.Vector{Type: table.Float64, Floats: b.Columns[c].Floats[:0]}
	}
	for ; s.host < s.hosts && b.Len < 8192; s.host++ {
		b.Keys, b.Starts = append(b.Keys, hostKey(s.host)), append(b.Starts, uint32(b.Len))
		for c := range s.values {
			s.values[c] = float64(s.r.Intn(100))
		}
		for p := range s.points {
			b.Times = append(b.Times, s.start+int64(p)*s.step)
			for c := range s.values {
				s.values[c] = min(100, max(0, s.values[c]+s.r.NormFloat64()))
				v := s.values[c]
				if !s.full {
					v = float64(int(v))
				}
				b.Columns[c].Floats = append(b.Columns[c].Floats, v)
			}
		}
		b.Len += s.points
	}
	for c := range b.Columns {
		b.Columns[c].Len = b.Len
	}
	return b, nil
}

func hostKey(h int) (key []byte) {
	for _, v := range []string{fmt.Sprintf("host_%05d", h), fmt.Sprint("eu-west-", h%9), fmt.Sprint("eu-west-", h%9, "a"), fmt.Sprint(h % 100),
		"Ubuntu16.04LTS", "x64", []string{"SF", "NYC", "LON"}[h%3], fmt.Sprint(h % 20), "1", []string{"production", "test"}[h%2]} {
		key = table.AppendKeyBytes(key, []byte(v))
	}
	return key
}

// recorded is a source that hands out prepared batches, so that benchmarks
// measure only the writer.
type recorded struct {
	batches []*run.Batch
	next    int
}

func (r *recorded) Close() {}

func (r *recorded) Next(context.Context) (*run.Batch, error) {
	if r.next == len(r.batches) {
		return nil, nil
	}
	r.next++
	return r.batches[r.next-1], nil
}

func record(s *cpuSource) []*run.Batch {
	var out []*run.Batch
	for {
		b, _ := s.Next(context.Background())
		if b == nil {
			return out
		}
		c := *b
		out = append(out, &c)
		s.batch = run.Batch{Columns: make([]table.Vector, 10)}
	}
}

const benchSecond = 1_000_000_000

func BenchmarkWrite(b *testing.B) {
	for _, full := range []bool{false, true} {
		b.Run(map[bool]string{false: "integers", true: "full"}[full], func(b *testing.B) {
			batches := record(&cpuSource{hosts: 4000, points: 100, step: 10 * benchSecond, full: full, sequence: 1})
			b.ReportAllocs()
			var meta sst.Meta
			for b.Loop() {
				var err error
				if meta, err = sst.Write(context.Background(), io.Discard, cpuSchema(), &recorded{batches: batches}, sst.WriteOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/400_000, "ns/row")
			b.ReportMetric(float64(meta.Size)/400_000, "bytes/row")
		})
	}
}

// benchFile returns a file of 4,000 hosts with 250 points each, a million rows.
func benchFile(b *testing.B, s *cpuSource) (*bucket, sst.Meta) {
	var buf bytes.Buffer
	meta, err := sst.Write(context.Background(), &buf, cpuSchema(), s, sst.WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return &bucket{objects: map[string][]byte{key: buf.Bytes()}}, meta
}

var million = sync.OnceValues(func() (*bucket, sst.Meta) {
	b := new(testing.B)
	return benchFile(b, &cpuSource{hosts: 4000, points: 250, step: 10 * benchSecond, sequence: 1})
})

var millionFull = sync.OnceValues(func() (*bucket, sst.Meta) {
	b := new(testing.B)
	return benchFile(b, &cpuSource{hosts: 4000, points: 250, step: 10 * benchSecond, sequence: 1, full: true})
})

func doubles() run.Request {
	s := cpuSchema()
	req := run.Request{Schema: s, Times: table.AllTime, Stats: new(table.ScanStats)}
	for _, c := range s.Columns {
		if c.Role == table.Field {
			req.Columns = append(req.Columns, c.ID)
		}
	}
	return req
}

// drain reads a source and sums its doubles.
func drain(b *testing.B, src run.Source, sum bool) (rows int) {
	total := 0.0
	for {
		batch, err := src.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if batch == nil {
			src.Close()
			return rows
		}
		rows += batch.Len
		for i := range batch.Columns {
			if sum {
				for _, v := range batch.Columns[i].Floats {
					total += v
				}
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	f := func(name string, file func() (*bucket, sst.Meta), warm bool, change func(*run.Request)) {
		b.Run(name, func(b *testing.B) {
			bucket, meta := file()
			c := cache.New(1 << 30)
			r, err := sst.Open(context.Background(), bucket, key, meta, c, cache.NewFile())
			if err != nil {
				b.Fatal(err)
			}
			req := doubles()
			change(&req)
			x, err := r.Series(context.Background(), req.Stats)
			if err != nil {
				b.Fatal(err)
			}
			scan := func() int { return drain(b, r.Scan(req, x, 0, len(r.RowGroups())), false) }
			rows := scan()
			b.ReportAllocs()
			for b.Loop() {
				if !warm {
					c.Clear()
				}
				scan()
			}
			b.ReportMetric(float64(rows), "rows")
			b.ReportMetric(float64(rows*len(req.Columns)*b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
	all := func(*run.Request) {}
	tags := func(r *run.Request) { r.Columns = []table.ColumnID{1, 2, 11, 12} }
	host := func(r *run.Request) {
		r.Columns = []table.ColumnID{11, 12}
		r.Predicates = []table.Predicate{{Column: 1, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "host_01234"}}}}
		r.Times = table.TimeRange{Min: 100 * benchSecond, Max: 1000 * benchSecond}
	}
	team := func(r *run.Request) {
		r.Columns = []table.ColumnID{11, 12}
		r.Predicates = []table.Predicate{{Column: 8, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "7"}}}}
	}
	identity := func(r *run.Request) { r.Identity = true }
	f("warm/10 doubles", million, true, all)
	f("warm/one host", million, true, host)
	f("warm/one service of 20", million, true, team)
	f("warm/identity", million, true, identity)
	f("cold/10 doubles", million, false, all)
	f("cold/10 full doubles", millionFull, false, all)
	f("cold/tags and time", million, false, tags)
	f("cold/one host", million, false, host)
}

func BenchmarkOpen(b *testing.B) {
	bucket, meta := million()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sst.Open(context.Background(), bucket, key, meta, nil, cache.NewFile()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	f := func(name string, second *cpuSource) {
		b.Run(name, func(b *testing.B) {
			var readers []*sst.Reader
			c := cache.New(1 << 30)
			for _, s := range []*cpuSource{{hosts: 2000, points: 250, step: 20 * benchSecond, sequence: 1}, second} {
				bucket, meta := benchFile(b, s)
				r, err := sst.Open(context.Background(), bucket, key, meta, c, cache.NewFile())
				if err != nil {
					b.Fatal(err)
				}
				readers = append(readers, r)
			}
			req := doubles()
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				var sources []run.Source
				for _, r := range readers {
					x, err := r.Series(context.Background(), req.Stats)
					if err != nil {
						b.Fatal(err)
					}
					sources = append(sources, r.Scan(merge.SourceRequest(req), x, 0, len(r.RowGroups())))
				}
				rows = drain(b, merge.New(sources, merge.Options{Request: req, Mode: table.LastNonNull}), false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
		})
	}
	f("every second row", &cpuSource{hosts: 2000, points: 250, start: 10 * benchSecond, step: 20 * benchSecond, sequence: 2})
	f("disjoint times", &cpuSource{hosts: 2000, points: 250, start: 5000 * benchSecond, step: 20 * benchSecond, sequence: 2})
	f("same rows", &cpuSource{hosts: 2000, points: 250, step: 20 * benchSecond, sequence: 2})
}
