package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A query is asked many times with other parameters.
type query struct {
	name string
	path func(i int) string // address of the i-th asking
}

// sqlPath returns the address that runs a statement on Varve.
func sqlPath(statement string) string {
	return "/v1/sql?" + url.Values{"sql": {statement}}.Encode()
}

func timeLiteral(nanos int64) string {
	return time.Unix(0, nanos).UTC().Format("'2006-01-02 15:04:05'")
}

const hour = int64(time.Hour)

// hourOf returns the i-th of some hours inside of the data.
func hourOf(w workload, i int) (from, to int64) {
	span := max(w.endNanos()-startNanos-hour, 1)
	from = startNanos + int64(i)*977*stepNanos%span
	return from, from + hour
}

// hostOf returns the i-th of some hosts, far from each other.
func hostOf(w workload, i int) string { return fmt.Sprintf("host_%d", i*1637%w.hosts) }

// varveQueries are the queries of the benchmark in SQL.
func varveQueries(w workload) []query {
	whereHost := func(i int) string {
		from, to := hourOf(w, i)
		return fmt.Sprintf("hostname = '%s' AND greptime_timestamp >= %s AND greptime_timestamp < %s",
			hostOf(w, i), timeLiteral(from), timeLiteral(to))
	}
	same := func(statement string) func(int) string {
		return func(int) string { return sqlPath(statement) }
	}
	return []query{
		{"single-groupby-1-1-1", func(i int) string {
			return sqlPath("SELECT date_trunc('minute', greptime_timestamp) AS minute, max(usage_user) FROM cpu WHERE " +
				whereHost(i) + " GROUP BY minute ORDER BY minute")
		}},
		{"one host, one hour", func(i int) string {
			return sqlPath("SELECT * FROM cpu WHERE " + whereHost(i) + " ORDER BY greptime_timestamp")
		}},
		{"full scan", same(fullScan)},
		{"double-groupby-1", same("SELECT date_trunc('hour', greptime_timestamp) AS hour, hostname, avg(usage_user) FROM cpu GROUP BY hour, hostname")},
		{"last point per host", same("SELECT hostname, max(greptime_timestamp), arg_max(usage_user, greptime_timestamp) FROM cpu GROUP BY hostname")},
	}
}

const fullScan = "SELECT count(*), avg(usage_user), max(usage_system), min(usage_idle), sum(usage_nice) FROM cpu"

// victoriaQueries has those that MetricsQL can say.
func victoriaQueries(w workload) []query {
	return []query{{"single-groupby-1-1-1", func(i int) string {
		from, to := hourOf(w, i)
		return "/api/v1/query_range?" + url.Values{
			"query": {fmt.Sprintf("max(max_over_time(cpu_usage_user{hostname=%q}[1m])) by (__name__)", hostOf(w, i))},
			"start": {fmt.Sprint(from / 1e9)}, "end": {fmt.Sprint(to / 1e9)}, "step": {"60"},
		}.Encode()
	}}}
}

// ask returns how long each of count askings took; the first has number from.
func (q query) ask(base string, from, count int) ([]time.Duration, error) {
	took := make([]time.Duration, count)
	for i := range took {
		start := time.Now()
		resp, err := http.Get(base + q.path(from+i))
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		took[i] = time.Since(start)
		if resp.StatusCode != http.StatusOK || strings.Contains(string(body), `"error"`) {
			return nil, fmt.Errorf("%s: %s: %.300s", q.name, resp.Status, body)
		}
	}
	return took, nil
}

// summary prints the median and the 95th percentile.
func summary(took []time.Duration) string {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	return fmt.Sprintf("median %9.2f ms  p95 %9.2f ms  (%d)", ms(took[len(took)/2]), ms(took[len(took)*95/100]), len(took))
}
