package query

import (
	"context"
	"syscall"
	"testing"

	"github.com/varvedb/varve/query/querytest"
)

// drain runs a statement to its end.
func drain(b *testing.B, e *Engine, req Request) {
	ctx := context.Background()
	r, err := e.Query(ctx, req)
	if err != nil {
		b.Fatal(err)
	}
	for {
		c, err := r.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if c == nil {
			break
		}
	}
	r.Close()
}

// reportCPU adds the processor time that an iteration takes on all threads,
// which a busy machine distorts less than the time it takes.
func reportCPU(b *testing.B, before int64) {
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkSmall is a statement on a table of one row, with what TSBS asks of it.
func BenchmarkSmall(b *testing.B) {
	e := newEngine(b, Options{})
	db := &querytest.DB{}
	db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time usage:Float64\na 1767225600000000000 1"))
	for name, sql := range map[string]string{
		"one": "SELECT * FROM cpu",
		"single-groupby": `SELECT date_bin(INTERVAL '1 minute', ts) AS m, max(usage) FROM cpu WHERE host IN ('a')
			AND ts >= '2026-01-01T00:00:00Z' AND ts < '2026-01-01T01:00:00Z' GROUP BY m ORDER BY m`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				drain(b, e, Request{SQL: sql, Database: "public", Tables: db, Reader: db})
			}
			reportCPU(b, before)
		})
	}
}

// BenchmarkScan compares scans of our tables with DuckDB's own.
func BenchmarkScan(b *testing.B) {
	e := newEngine(b, Options{MemoryLimit: 2 << 30})
	const n = 5_000_000
	db := &querytest.DB{Partitions: 8, BatchRows: 65_536}
	db.Add(bigTable(n))
	c, err := e.connect()
	if err != nil {
		b.Fatal(err)
	}
	defer c.release()
	if err := c.Exec(`CREATE TABLE big AS SELECT 'host_' || (i * 100 // 5000000) || '_of_a_longer_name' AS host,
		make_timestamp_ns(i * 1000000000) AS ts, ((i * 7) % 1000)::DOUBLE AS f0, ((i * 7 + 1) % 1000)::DOUBLE AS f1,
		((i * 7 + 2) % 1000)::DOUBLE AS f2, ((i * 7 + 3) % 1000)::DOUBLE AS f3, ((i * 7 + 4) % 1000)::DOUBLE AS f4,
		((i * 7 + 5) % 1000)::DOUBLE AS f5, ((i * 7 + 6) % 1000)::DOUBLE AS f6, ((i * 7 + 7) % 1000)::DOUBLE AS f7,
		((i * 7 + 8) % 1000)::DOUBLE AS f8, ((i * 7 + 9) % 1000)::DOUBLE AS f9 FROM range(5000000) AS r(i)`); err != nil {
		b.Fatal(err)
	}
	ten := "sum(f0), sum(f1), sum(f2), sum(f3), sum(f4), sum(f5), sum(f6), sum(f7), sum(f8), sum(f9)"
	for _, q := range []struct{ name, sql string }{
		{"sum1", "SELECT sum(f0) FROM big"},
		{"sum10", "SELECT " + ten + " FROM big"},
		{"by-host", "SELECT host, " + ten + " FROM big GROUP BY host"},
	} {
		b.Run(q.name+"/varve", func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				drain(b, e, Request{SQL: q.sql, Database: "public", Tables: db, Reader: db})
			}
			reportCPU(b, before)
		})
		b.Run(q.name+"/duckdb", func(b *testing.B) {
			before := cpuTime(b)
			for b.Loop() {
				s, err := c.Prepare(q.sql)
				if err != nil {
					b.Fatal(err)
				}
				r, err := s.Run()
				if err != nil {
					b.Fatal(err)
				}
				for {
					k, err := r.Next()
					if err != nil {
						b.Fatal(err)
					}
					if k == nil {
						break
					}
				}
				r.Close()
				s.Close()
			}
			reportCPU(b, before)
		})
	}
}
