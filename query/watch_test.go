package query

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/querytest"
)

// hold makes a statement that DuckDB does not come back to until the returned
// function is called, as the functions do that look for no interrupt.
func hold(t *testing.T, e *Engine) (st *statement, letGo func()) {
	t.Helper()
	st, err := e.begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	st.text = "SELECT stuck"
	e.watch.enter(st)
	held, begun := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	ended := st.wait(ctx, func() { close(begun); <-held }, func() { st.release(false) })
	<-begun
	if ended || !errors.Is(st.over(ctx), context.DeadlineExceeded) {
		t.Errorf("a statement that does not stop is waited for")
	}
	return st, func() { close(held) }
}

// TestStuck expects that the client of a statement that does not stop has its
// answer, that the slot stays taken until it does, and that it is counted.
func TestStuck(t *testing.T) {
	e := newEngine(t, Options{MaxRunning: 1})
	_, letGo := hold(t, e)
	if n := e.watch.stuck.Load(); n != 1 {
		t.Errorf("%d statements are stuck, want 1", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := e.Query(ctx, Request{SQL: "SELECT 1"}); fault.KindOf(err) != fault.Timeout {
		t.Errorf("the slot is free: %v", err)
	}
	letGo()
	if _, err := read(e, Request{SQL: "SELECT 1"}); err != nil {
		t.Errorf("behind the statement: %v", err)
	}
	for e.watch.stuck.Load() != 0 { // just behind the slot
	}
}

// TestCloseLeavesStuck expects that Close does not wait for such a statement,
// and says which one it is.
func TestCloseLeavesStuck(t *testing.T) {
	var log bytes.Buffer
	e, err := Open(Options{TempDir: t.TempDir(), Threads: 1, CloseTimeout: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	_, letGo := hold(t, e)
	begun := time.Now()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > 2*time.Second {
		t.Errorf("Close took %s", d)
	}
	text := log.String()
	letGo()
	for e.watch.stuck.Load() != 0 {
	}
	if !strings.Contains(text, "still run at the end") || !strings.Contains(text, "SELECT stuck") {
		t.Errorf("the log is %s", text)
	}
}

// TestWatchEnds expects that the youngest of the statements during which the
// process grew is ended with an error that says why, and none of the others.
func TestWatchEnds(t *testing.T) {
	e := newEngine(t, Options{MaxRunning: 3})
	e.watch.opts.ProcessLimit = 800 << 20
	var all []*Result
	for _, resident := range []int64{100 << 20, 500 << 20, 790 << 20} {
		r, err := e.Query(context.Background(), Request{SQL: "SELECT * FROM range(10000000000)"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		all = append(all, r)
		e.watch.look(resident)
	}
	e.watch.look(799 << 20)
	e.watch.look(801 << 20)
	for i, r := range all {
		var err error
		for range 100_000 {
			if _, err = r.Next(context.Background()); err != nil {
				break
			}
			if i != 1 {
				break
			}
		}
		if i != 1 && err != nil {
			t.Errorf("statement %d: %v", i, err)
		}
		if i == 1 && (fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "801 MiB")) {
			t.Errorf("the youngest that grew: %v", err)
		}
	}
}

// TestWatchLooks runs a statement of whose memory DuckDB does not know, in an
// engine that has a limit below it.
func TestWatchLooks(t *testing.T) {
	e := newEngine(t, Options{ProcessLimit: residentSize() + 100<<20, MemoryLimit: 4 << 30})
	_, err := read(e, Request{SQL: "SELECT cardinality(histogram(i)) FROM range(300000000) AS r(i)"})
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "the query was ended") {
		t.Errorf("got %v", err)
	}
}

// TestSpillOfTable sorts and groups a table beyond the memory limit: that
// works, or fails for the want of memory and nothing else.
func TestSpillOfTable(t *testing.T) {
	e := newEngine(t, Options{MemoryLimit: 64 << 20})
	db := newBig(1_000_000)
	for _, sql := range []string{
		"SELECT host, ts, f0, f1, f2, f3, f4, f5, lag(f0) OVER (PARTITION BY f1 ORDER BY f2, ts) FROM big ORDER BY f3 DESC, ts",
		"SELECT count(*) FROM (SELECT ts, f0, count(*), list(f1) FROM big GROUP BY ALL)",
		"SELECT count(*) FROM big AS a JOIN big AS b ON a.ts = b.ts AND a.f1 = b.f1",
		"SELECT list(f0), list(f1), list(ts) FROM big",
	} {
		r, err := e.Query(context.Background(), Request{SQL: sql, Database: "public", Tables: db, Reader: db})
		for err == nil {
			var c *Chunk
			if c, err = r.Next(context.Background()); c == nil {
				break
			}
		}
		if r != nil {
			r.Close()
		}
		if err != nil && (fault.KindOf(err) != fault.Exhausted || strings.Contains(err.Error(), "SET ")) {
			t.Errorf("%s: %v (kind %d)", sql, err, fault.KindOf(err))
		}
	}
}

func newBig(rows int) *querytest.DB {
	db := &querytest.DB{Partitions: 7, BatchRows: 10_048}
	db.Add(bigTable(rows))
	return db
}
