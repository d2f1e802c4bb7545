// Command bench measures Varve from outside: TSBS-shaped rows in over line
// protocol, queries out over HTTP, beside VictoriaMetrics in the same run,
// because only ratios taken on one machine at one time mean anything.
//
//	make bench                                    # the whole of it
//	go run ./tests/bench -rows 1000000 -peer=false
//	go run ./tests/bench -url http://host:8086/write   # load a server that runs
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// options are the flags.
type options struct {
	work        workload
	connections int
	url         string
	binary      string
	memory      string
	peer        bool
	dir         string
	asks        int
	restarts    int
}

func main() {
	var o options
	flag.IntVar(&o.work.hosts, "hosts", 4000, "hosts")
	flag.IntVar(&o.work.rows, "rows", 10_000_000, "rows")
	flag.IntVar(&o.work.batch, "batch", 3000, "lines a request")
	flag.BoolVar(&o.work.float, "float", false, "full-precision floats instead of integers")
	flag.Uint64Var(&o.work.seed, "seed", 1, "seed of the values")
	flag.IntVar(&o.connections, "connections", 2, "connections that write")
	flag.StringVar(&o.url, "url", "", "write to this address of a running server, and do nothing else")
	flag.StringVar(&o.binary, "binary", "bin/varve", "the server to measure")
	flag.StringVar(&o.memory, "memory", "2GiB", "its memory.limit")
	flag.BoolVar(&o.peer, "peer", true, "measure VictoriaMetrics too")
	flag.StringVar(&o.dir, "dir", "", "where the data goes; a temporary directory")
	flag.IntVar(&o.asks, "asks", 30, "askings of each query, warm")
	flag.IntVar(&o.restarts, "restarts", 5, "restarts, each for one cold asking")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	fmt.Println(o.work)
	bodies := o.work.bodies()
	if o.url != "" {
		took, err := load(o.url, bodies, o.connections)
		fmt.Printf("%.0f rows/s\n", float64(o.work.rows)/took.Seconds())
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "varve-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	if o.peer {
		if err := measureVictoria(o, bodies); err != nil {
			return fmt.Errorf("VictoriaMetrics: %w", err)
		}
	}
	return measureVarve(o, bodies)
}

func measureVarve(o options, bodies [][]byte) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, "varve")
	p := &process{name: "varve", url: "http://" + addr, dir: dir, path: o.binary, args: []string{
		"standalone", "start", "--http-addr", addr, "--data-home", dir, "--memory-limit", o.memory, "--log-level", "warn"}}
	if err := p.start(); err != nil {
		return err
	}
	defer func() { _ = p.cmd.Process.Kill() }() // if it is still there
	if err := ingest(p, "/write", o.work, bodies, o.connections); err != nil {
		return err
	}
	if err := p.stop(); err != nil { // flushes
		return err
	}
	size, err := diskBytes(filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	fmt.Printf("%-16s %.2f bytes per row on disk, %d MiB\n", p.name, float64(size)/float64(o.work.rows), size>>20)
	for _, q := range varveQueries(o.work) {
		if err := askVarve(p, q, o); err != nil {
			return err
		}
	}
	if err := p.start(); err != nil {
		return err
	}
	rss, err := p.peakRSS()
	if err != nil {
		return err
	}
	fmt.Printf("%-16s peak RSS after a start %d MiB\n", p.name, rss>>20)
	return p.stop()
}

// askVarve asks a query cold, once after each of some restarts with the
// process warmed up by another statement, and then warm.
func askVarve(p *process, q query, o options) error {
	warmUp := query{"warm up", func(int) string { return sqlPath("SELECT 1") }}
	var cold []time.Duration
	for i := range o.restarts {
		if err := p.start(); err != nil {
			return err
		}
		if _, err := warmUp.ask(p.url, 0, 5); err != nil {
			return err
		}
		took, err := q.ask(p.url, i, 1)
		if err != nil {
			return err
		}
		cold = append(cold, took...)
		if i < o.restarts-1 {
			if err := p.stop(); err != nil {
				return err
			}
		}
	}
	if _, err := q.ask(p.url, 0, o.asks); err != nil {
		return err
	}
	warm, err := q.ask(p.url, 0, o.asks)
	if err != nil {
		return err
	}
	fmt.Printf("%-16s %-22s warm %s\n%-16s %-22s cold %s\n", p.name, q.name, summary(warm), "", "", summary(cold))
	return p.stop()
}

// measureVictoria builds and measures the peer.
func measureVictoria(o options, bodies [][]byte) error {
	path, err := filepath.Abs("bin/victoria-metrics")
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-modfile=tools/peers/go.mod", "-o", path,
		"github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, "victoria-metrics")
	p := &process{name: "victoriametrics", url: "http://" + addr, dir: dir, path: path, args: []string{
		"-httpListenAddr", addr, "-storageDataPath", dir, "-retentionPeriod", "100y", "-search.disableCache",
		"-search.latencyOffset", "0s"}}
	if err := p.start(); err != nil {
		return err
	}
	defer func() { _ = p.cmd.Process.Kill() }() // if it is still there
	if err := ingest(p, "/write", o.work, bodies, o.connections); err != nil {
		return err
	}
	for _, q := range victoriaQueries(o.work) {
		if _, err := q.ask(p.url, 0, o.asks); err != nil { // rows become visible with a delay
			return err
		}
		took, err := q.ask(p.url, 0, o.asks)
		if err != nil {
			return err
		}
		fmt.Printf("%-16s %-22s warm %s\n", p.name, q.name, summary(took))
	}
	if err := p.stop(); err != nil {
		return err
	}
	size, err := diskBytes(dir)
	fmt.Printf("%-16s %.2f bytes per row on disk, %d MiB\n", p.name, float64(size)/float64(o.work.rows), size>>20)
	return err
}
