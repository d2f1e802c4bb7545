package main

import (
	"math/rand/v2"
	"strconv"
)

// The shape of TSBS's cpu-only use case: ten tags, ten fields, one row a host
// every ten seconds.
var (
	fieldNames = []string{
		"usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait",
		"usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice",
	}
	regions       = []string{"us-east-1", "us-west-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "sa-east-1"}
	systems       = []string{"Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"}
	architectures = []string{"x64", "x86"}
	teams         = []string{"SF", "NYC", "LON", "CHI"}
	environments  = []string{"production", "staging", "test"}
)

const intervalNanos = 10_000_000_000

// startNanos is 2026-01-01T00:00:00Z, where every run's data begins.
const startNanos = 1_767_225_600_000_000_000

// A generator makes rows in time order, every host at each step.
type generator struct {
	rng       *rand.Rand
	prefixes  [][]byte    // measurement and tags of each host
	values    [][]float64 // last values of each host
	fullFloat bool
	host      int
	step      int64
}

func newGenerator(hosts int, fullFloat bool, seed uint64) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), fullFloat: fullFloat}
	pick := func(list []string) string { return list[g.rng.IntN(len(list))] }
	for h := range hosts {
		region := pick(regions)
		p := "cpu,hostname=host_" + strconv.Itoa(h) + ",region=" + region +
			",datacenter=" + region + string(rune('a'+g.rng.IntN(3))) +
			",rack=" + strconv.Itoa(g.rng.IntN(100)) + ",os=" + pick(systems) +
			",arch=" + pick(architectures) + ",team=" + pick(teams) +
			",service=" + strconv.Itoa(g.rng.IntN(20)) + ",service_version=" + strconv.Itoa(g.rng.IntN(2)) +
			",service_environment=" + pick(environments)
		g.prefixes = append(g.prefixes, []byte(p))
		values := make([]float64, len(fieldNames))
		for i := range values {
			values[i] = g.rng.Float64() * 100
		}
		g.values = append(g.values, values)
	}
	return g
}

// appendRow appends the next row as one line.
func (g *generator) appendRow(dst []byte) []byte {
	dst = append(dst, g.prefixes[g.host]...)
	values := g.values[g.host]
	for i, name := range fieldNames {
		v := min(100, max(0, values[i]+g.rng.NormFloat64()))
		values[i] = v
		sep := byte(',')
		if i == 0 {
			sep = ' '
		}
		dst = append(append(append(dst, sep), name...), '=')
		if g.fullFloat {
			dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
		} else {
			dst = strconv.AppendInt(dst, int64(v), 10)
		}
	}
	dst = strconv.AppendInt(append(dst, ' '), startNanos+g.step*intervalNanos, 10)
	if g.host++; g.host == len(g.prefixes) {
		g.host, g.step = 0, g.step+1
	}
	return append(dst, '\n')
}

// batches makes all request bodies of a run before its clock starts.
func (g *generator) batches(rows, batchRows int) [][]byte {
	var all [][]byte
	for rows > 0 {
		n := min(rows, batchRows)
		body := make([]byte, 0, n*400)
		for range n {
			body = g.appendRow(body)
		}
		all = append(all, body)
		rows -= n
	}
	return all
}
