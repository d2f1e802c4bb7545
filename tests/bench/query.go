package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the peer that scans the same rows in its own table
)

// A question is one query of the benchmark. Its text holds {host}, {from} and
// {to}, which each run fills anew so that no answer is remembered; {ts} is the
// name of the time index.
type question struct {
	name  string
	text  string
	hours float64 // length of [from, to); 0: all
}

var questions = []question{
	{"single-groupby-1-1-1", `SELECT date_trunc('minute', {ts}) AS minute, max(usage_user) FROM cpu WHERE hostname = '{host}' AND {ts} >= '{from}' AND {ts} < '{to}' GROUP BY 1 ORDER BY 1`, 1},
	{"one-host-one-hour", `SELECT * FROM cpu WHERE hostname = '{host}' AND {ts} >= '{from}' AND {ts} < '{to}'`, 1},
	{"full-scan-sum-1", `SELECT sum(usage_user) FROM cpu`, 0},
	{"full-scan-sum-10", `SELECT sum(usage_user), sum(usage_system), sum(usage_idle), sum(usage_nice), sum(usage_iowait), sum(usage_irq), sum(usage_softirq), sum(usage_steal), sum(usage_guest), sum(usage_guest_nice) FROM cpu`, 0},
	{"group-by-host-avg-10", `SELECT hostname, avg(usage_user), avg(usage_system), avg(usage_idle), avg(usage_nice), avg(usage_iowait), avg(usage_irq), avg(usage_softirq), avg(usage_steal), avg(usage_guest), avg(usage_guest_nice) FROM cpu GROUP BY hostname`, 0},
	{"last-point-per-host", `SELECT hostname, max({ts}), arg_max(usage_user, {ts}) FROM cpu GROUP BY hostname`, 0},
}

// A window is the data that a run has written.
type window struct {
	hosts int
	hours float64
}

func (q question) fill(rng *rand.Rand, w window) string {
	from := time.Unix(0, startNanos).UTC()
	if span := w.hours - q.hours; q.hours > 0 && span > 0 {
		from = from.Add(time.Duration(rng.Float64() * span * float64(time.Hour))).Truncate(time.Second)
	}
	to := from.Add(time.Duration(q.hours * float64(time.Hour)))
	return strings.NewReplacer(
		"{host}", fmt.Sprintf("host_%d", rng.IntN(w.hosts)),
		"{from}", from.Format("2006-01-02 15:04:05"),
		"{to}", to.Format("2006-01-02 15:04:05"),
		"{ts}", "greptime_timestamp",
	).Replace(q.text)
}

// measure runs ask n times and returns the sorted times.
func measure(n int, ask func() error) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		if err := ask(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times, nil
}

func summary(times []time.Duration) string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("median %8.2f ms  p95 %8.2f ms", ms(times[len(times)/2]), ms(times[len(times)*95/100]))
}

// askVarve sends one statement to /v1/sql and reads the whole answer.
func askVarve(ctx context.Context, client *http.Client, base, statement string) error {
	form := strings.NewReader(url.Values{"sql": {statement}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/sql", form)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return readAll(client, req)
}

// askPeer sends the PromQL form of single-groupby-1-1-1.
func askPeer(ctx context.Context, client *http.Client, base string, rng *rand.Rand, w window) error {
	start := startNanos/1_000_000_000 + int64(rng.Float64()*max(0, w.hours-1)*3600)
	q := url.Values{
		"query": {fmt.Sprintf(`max(max_over_time(cpu_usage_user{hostname="host_%d"}[1m])) by (__name__)`, rng.IntN(w.hosts))},
		"start": {fmt.Sprint(start)}, "end": {fmt.Sprint(start + 3600)}, "step": {"60"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/query_range?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	return readAll(client, req)
}

func readAll(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s answers %d: %s", req.URL, resp.StatusCode, text)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// duckTable loads the SSTs that Varve wrote into a table of DuckDB's own, so
// that both hold the same rows.
func duckTable(ctx context.Context, sstGlob string) (*sql.DB, error) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`SET threads=2; CREATE TABLE cpu AS SELECT * EXCLUDE (__sequence, __op_type) FROM read_parquet('%s')`, sstGlob))
	if err != nil {
		return nil, fmt.Errorf("load %s into DuckDB: %w", sstGlob, err)
	}
	return db, nil
}

func askDuck(ctx context.Context, db *sql.DB, statement string) error {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
