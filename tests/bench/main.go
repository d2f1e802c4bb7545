// Command bench measures Varve on this machine: ingest of TSBS-shaped rows
// beside VictoriaMetrics, and queries over the same rows beside a table of
// DuckDB's own. It prints figures and judges nothing; compare only what one run
// printed, since machines drift.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// options are the command's flags.
type options struct {
	varve, peer string // binaries
	rows, hosts int
	conns       int
	fullFloat   bool
	queries     int // runs of each query; 0: none
	duck        bool
	rounds      int // of ingest, Varve and peer in turn
	keep        bool
}

func main() {
	var o options
	flag.StringVar(&o.varve, "varve", "bin/varve", "the `binary` to measure")
	flag.StringVar(&o.peer, "peer", "", "the victoria-metrics `binary` to measure beside it")
	flag.IntVar(&o.rows, "rows", 5_760_000, "rows to write")
	flag.IntVar(&o.hosts, "hosts", 4_000, "hosts, each a series")
	flag.IntVar(&o.conns, "conns", 2, "connections that write")
	flag.BoolVar(&o.fullFloat, "float", false, "full-precision values in place of integer-valued ones")
	flag.IntVar(&o.queries, "queries", 30, "runs of each query")
	flag.BoolVar(&o.duck, "duck", true, "measure a table of DuckDB's own with the same rows")
	flag.IntVar(&o.rounds, "rounds", 1, "rounds of ingest")
	flag.BoolVar(&o.keep, "keep", false, "keep the data directory and print it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	root, err := os.MkdirTemp("", "varve-bench-*")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Println("data in", root)
	} else {
		defer os.RemoveAll(root)
	}
	const batchRows = 3000
	bodies := newGenerator(o.hosts, o.fullFloat, 42).batches(o.rows, batchRows)
	fmt.Printf("%d rows, %d hosts, batches of %d, %d connections, full-precision values: %v\n", o.rows, o.hosts, batchRows, o.conns, o.fullFloat)
	for round := range o.rounds {
		last := round == o.rounds-1
		if err := benchPeer(ctx, o, filepath.Join(root, fmt.Sprint("peer", round)), bodies); err != nil {
			return err
		}
		if err := benchVarve(ctx, o, filepath.Join(root, fmt.Sprint("varve", round)), bodies, last); err != nil {
			return err
		}
	}
	return nil
}

func benchPeer(ctx context.Context, o options, dir string, bodies [][]byte) error {
	if o.peer == "" {
		return nil
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p, err := startProcess(ctx, "victoria-metrics", "http://"+addr, "/health", dir,
		o.peer, "-httpListenAddr="+addr, "-storageDataPath="+dir, "-retentionPeriod=100y")
	if err != nil {
		return err
	}
	defer p.stop()
	result, err := ingest(ctx, p, "/write", bodies, o.rows, o.conns)
	if err != nil {
		return err
	}
	fmt.Printf("ingest  victoria-metrics  %v\n", result)
	if o.queries == 0 {
		return nil
	}
	rng, w := rand.New(rand.NewPCG(1, 1)), o.window()
	if err := readyToQuery(ctx, p.url+"/internal/force_flush"); err != nil {
		return err
	}
	times, err := measure(o.queries, func() error { return askPeer(ctx, http.DefaultClient, p.url, rng, w) })
	if err != nil {
		return err
	}
	fmt.Printf("query   victoria-metrics  single-groupby-1-1-1   %s\n", summary(times))
	return nil
}

func benchVarve(ctx context.Context, o options, dir string, bodies [][]byte, withQueries bool) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	start := func(name string) (*process, error) {
		return startProcess(ctx, name, "http://"+addr, "/ready", dir, "env", "VARVE_STANDALONE__MEMORY__LIMIT=2GiB",
			o.varve, "standalone", "start", "--http-addr", addr, "--data-home", dir)
	}
	p, err := start("varve")
	if err != nil {
		return err
	}
	result, err := ingest(ctx, p, "/write", bodies, o.rows, o.conns)
	if err != nil {
		p.stop()
		return err
	}
	fmt.Printf("ingest  varve             %v\n", result)
	if err := expectRows(ctx, p.url, o.rows); err != nil {
		p.stop()
		return err
	}
	withQueries = withQueries && o.queries > 0
	if withQueries {
		err = queryVarve(ctx, o, p, "fresh") // much of it still in memtables
	}
	p.stop()
	if err != nil {
		return err
	}
	fmt.Printf("disk    varve             %.2f bytes/row in SSTs\n", float64(diskBytes(dir, ".parquet"))/float64(o.rows))
	if !withQueries {
		return nil
	}
	if p, err = start("varve-again"); err != nil {
		return err
	}
	err = queryVarve(ctx, o, p, "flushed")
	fmt.Printf("memory  varve             %d MiB peak RSS after queries\n", p.peakBytes()>>20)
	p.stop()
	if err == nil {
		err = coldVarve(ctx, o, start)
	}
	if err != nil || !o.duck {
		return err
	}
	return queryDuck(ctx, o, filepath.Join(dir, "**", "*.parquet"))
}

// coldVarve asks each question once of a server that has just started, has
// answered other queries, and has no page of the table in its cache.
func coldVarve(ctx context.Context, o options, start func(name string) (*process, error)) error {
	rng, w := rand.New(rand.NewPCG(2, 1)), o.window()
	for _, q := range questions {
		p, err := start("varve-cold")
		if err != nil {
			return err
		}
		_, err = measure(20, func() error { return askVarve(ctx, http.DefaultClient, p.url, "SELECT 1") })
		var times []time.Duration
		if err == nil {
			times, err = measure(1, func() error { return askVarve(ctx, http.DefaultClient, p.url, q.fill(rng, w)) })
		}
		p.stop()
		if err != nil {
			return fmt.Errorf("cold %s: %w", q.name, err)
		}
		fmt.Printf("query   varve cold        %-22s once   %8.2f ms\n", q.name, float64(times[0].Microseconds())/1000)
	}
	return nil
}

// queryVarve asks each question once cold, then o.queries times.
func queryVarve(ctx context.Context, o options, p *process, state string) error {
	rng, w := rand.New(rand.NewPCG(1, 1)), o.window()
	for _, q := range questions {
		ask := func() error { return askVarve(ctx, http.DefaultClient, p.url, q.fill(rng, w)) }
		first, err := measure(1, ask)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		times, err := measure(o.queries, ask)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		fmt.Printf("query   varve %-8s    %-22s %s  first %8.2f ms\n", state, q.name, summary(times), float64(first[0].Microseconds())/1000)
	}
	return nil
}

func queryDuck(ctx context.Context, o options, sstGlob string) error {
	db, err := duckTable(ctx, sstGlob)
	if err != nil {
		return err
	}
	defer db.Close()
	rng, w := rand.New(rand.NewPCG(1, 1)), o.window()
	for _, q := range questions {
		times, err := measure(o.queries, func() error { return askDuck(ctx, db, q.fill(rng, w)) })
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		fmt.Printf("query   duckdb table      %-22s %s\n", q.name, summary(times))
	}
	return nil
}

func (o options) window() window {
	steps := float64(o.rows) / float64(o.hosts)
	return window{o.hosts, steps * intervalNanos / 3.6e12}
}

// freeAddr returns a loopback address that nothing listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strings.TrimPrefix(l.Addr().String(), "tcp://"), nil
}

func readyToQuery(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return readAll(http.DefaultClient, req)
}
