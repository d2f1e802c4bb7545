package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// What TSBS calls cpu-only: one measurement, ten tags, ten fields.
var (
	fieldNames = []string{"usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait",
		"usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"}
	regions = []string{"us-east-1", "us-west-1", "us-west-2", "eu-west-1", "eu-central-1",
		"ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "sa-east-1"}
	systems      = []string{"Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"}
	arches       = []string{"x64", "x86"}
	teams        = []string{"SF", "NYC", "LON", "CHI"}
	environments = []string{"production", "staging", "test"}
)

const (
	startNanos = 1451606400_000000000 // 2016-01-01, as TSBS
	stepNanos  = 10_000000000
)

// A workload says which rows are written.
type workload struct {
	hosts int
	rows  int
	batch int  // lines a body
	float bool // full-precision floats instead of integers
	seed  uint64
}

func (w workload) String() string {
	values := "integers"
	if w.float {
		values = "full-precision floats"
	}
	return fmt.Sprintf("%d rows of %d hosts every 10 s, %s, batches of %d", w.rows, w.hosts, values, w.batch)
}

// endNanos returns the time after the last row.
func (w workload) endNanos() int64 {
	return startNanos + int64((w.rows+w.hosts-1)/w.hosts)*stepNanos
}

// bodies makes all request bodies before the clock starts, so that making
// them costs the server no time.
func (w workload) bodies() [][]byte {
	rng := rand.New(rand.NewPCG(w.seed, 0))
	hosts := make([]host, w.hosts)
	for i := range hosts {
		hosts[i] = newHost(i, rng)
	}
	var bodies [][]byte
	var body []byte
	for row := range w.rows {
		if row%w.batch == 0 {
			if body != nil {
				bodies = append(bodies, body)
			}
			body = make([]byte, 0, w.batch*360)
		}
		h := &hosts[row%w.hosts]
		h.walk(rng)
		body = h.appendLine(body, startNanos+int64(row/w.hosts)*stepNanos, w.float)
	}
	return append(bodies, body)
}

// A host's fields walk randomly between 0 and 100, as in TSBS.
type host struct {
	prefix []byte
	values [10]float64
}

func newHost(i int, rng *rand.Rand) host {
	region := regions[rng.IntN(len(regions))]
	h := host{prefix: fmt.Appendf(nil,
		"cpu,hostname=host_%d,region=%s,datacenter=%s%c,rack=%d,os=%s,arch=%s,team=%s,service=%d,service_version=%d,service_environment=%s ",
		i, region, region, 'a'+rune(rng.IntN(3)), rng.IntN(100), pick(rng, systems), pick(rng, arches), pick(rng, teams),
		rng.IntN(20), rng.IntN(2), pick(rng, environments))}
	for f := range h.values {
		h.values[f] = rng.Float64() * 100
	}
	return h
}

func pick(rng *rand.Rand, from []string) string { return from[rng.IntN(len(from))] }

func (h *host) walk(rng *rand.Rand) {
	for f := range h.values {
		h.values[f] = min(100, max(0, h.values[f]+rng.NormFloat64()))
	}
}

func (h *host) appendLine(b []byte, nanos int64, float bool) []byte {
	b = append(b, h.prefix...)
	for f, v := range h.values {
		if f > 0 {
			b = append(b, ',')
		}
		b = append(append(b, fieldNames[f]...), '=')
		if float {
			b = strconv.AppendFloat(b, v, 'g', -1, 64)
		} else {
			b = append(strconv.AppendInt(b, int64(v), 10), 'i')
		}
	}
	b = append(b, ' ')
	return append(strconv.AppendInt(b, nanos, 10), '\n')
}
