package lineprotocol

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// tsbs returns lines of the shape of TSBS' cpu-only load: 10 tags, 10 fields.
func tsbs(lines, hosts int, float bool) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	names := []string{"usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait",
		"usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"}
	var b []byte
	for i := range lines {
		host := i % hosts
		b = fmt.Appendf(b, "cpu,hostname=host_%d,region=eu-central-1,datacenter=eu-central-1a,rack=%d,os=Ubuntu15.10,arch=x86,team=SF,service=%d,service_version=1,service_environment=test ", host, host%100, host%20)
		for k, name := range names {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(append(b, name...), '=')
			if float {
				b = strconv.AppendFloat(b, rng.Float64()*100, 'g', -1, 64)
			} else {
				b = strconv.AppendInt(b, rng.Int64N(101), 10)
			}
		}
		b = fmt.Appendf(b, " %d\n", 1451606400000000000+int64(i/hosts)*10_000_000_000)
	}
	return b
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name  string
		hosts int
		float bool
	}{{"integers", 4000, false}, {"floats", 4000, true}} {
		b.Run(c.name, func(b *testing.B) {
			const lines = 12_000
			body := tsbs(lines, c.hosts, c.float)
			bench := newBench(b, Options{})
			bench.decode(body, Nanosecond, testNow)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if r := bench.decode(body, Nanosecond, testNow); r.Rows != lines {
					b.Fatal(r.Errors)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lines), "ns/line")
		})
	}
	// Every line a series that was never seen before.
	b.Run("new series", func(b *testing.B) {
		const lines = 12_000
		body := tsbs(lines, lines, false)
		bench := newBench(b, Options{})
		bench.decode(body, Nanosecond, testNow)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			bench.decoder = NewDecoder(Options{})
			if r := bench.decode(body, Nanosecond, testNow); r.Rows != lines {
				b.Fatal(r.Errors)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lines), "ns/line")
	})
}
