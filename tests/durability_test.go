package tests

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var rounds = flag.Int("rounds", 3, "rounds of TestKillUnderWriters")

func TestRowsOutliveAKill(t *testing.T) {
	var target Target = startStandalone(t)
	mustWrite(t, target,
		"cpu,host=a,region=eu usage=1.5,busy=true 1700000000000000000",
		"cpu,host=b,region=us usage=2.5 1700000001000000000",
		"cpu,host=a,region=eu usage=3.5 1700000002000000000")
	check := func() {
		t.Helper()
		expectRows(t, target, "SELECT host, region, usage, busy, greptime_timestamp FROM cpu ORDER BY greptime_timestamp",
			"a eu 1.5 true 1700000000000000000",
			"b us 2.5 <nil> 1700000001000000000",
			"a eu 3.5 <nil> 1700000002000000000")
	}
	check()
	target.Kill()
	target.Start()
	check()
	target.Kill() // a second time, from what the first recovery left
	target.Start()
	check()
}

func TestRowsOutliveAStop(t *testing.T) {
	var target Target = startStandalone(t)
	mustWrite(t, target, "mem,host=a used=1i 1000", "mem,host=b used=2i 1000")
	target.Stop()
	target.Start()
	mustWrite(t, target, "mem,host=a used=3i 1000") // over a row that is in a file by now
	expectRows(t, target, "SELECT host, used FROM mem ORDER BY host", "a 3", "b 2")
	target.Stop()
	target.Start()
	expectRows(t, target, "SELECT host, used FROM mem ORDER BY host", "a 3", "b 2")
}

// TestKillUnderWriters kills the server again and again while writers write,
// tables appear, tags and fields are added, and tables are flushed, dropped and
// made again. After each kill varve check finds nothing wrong, and after each
// restart every acknowledged row is there once with its value, and nothing that
// was never sent.
func TestKillUnderWriters(t *testing.T) {
	target := startStandalone(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	writers := make([]*crashWriter, 4)
	for i := range writers {
		writers[i] = &crashWriter{id: i, side: sideTable{name: fmt.Sprintf("side_%d", i)}, rng: rand.New(rand.NewPCG(seed, uint64(i)+1))}
	}
	for round := range *rounds {
		runCrashRound(t, target, writers, int64(20+rng.IntN(300)))
		for _, w := range writers {
			when := fmt.Sprintf("seed %d, round %d", seed, round)
			w.check(t, target, when)
			w.side.check(t, target, when)
		}
		if t.Failed() {
			return
		}
	}
}

// runCrashRound lets the writers write until some batches are acknowledged,
// kills the server in the middle of what they do then, and starts it again.
func runCrashRound(t *testing.T, target *standalone, writers []*crashWriter, batches int64) {
	t.Helper()
	var acknowledged atomic.Int64
	enough := make(chan struct{}) // closed by the writer whose batch is the last of the round
	var group sync.WaitGroup
	for _, w := range writers {
		group.Go(func() {
			for w.writeBatch(target) == nil && w.side.step(target) == nil {
				if acknowledged.Add(1) == batches {
					close(enough)
				}
			}
		})
	}
	group.Go(func() {
		for i := 0; ; i++ {
			if _, err := runSQL(target, fmt.Sprintf("ADMIN flush_table('crash_%d')", i%len(writers))); err != nil && isGone(err) {
				return
			}
		}
	})
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-enough:
	case <-ended:
		t.Errorf("the writers stopped by themselves after %d batches", acknowledged.Load())
	}
	target.Kill()
	<-ended
	if code, out := runToEnd(t, nil, "check", target.home); code != 0 {
		t.Errorf("check after a kill: exit code %d:\n%s", code, out)
	}
	target.Start()
}

// isGone reports whether err is that of a connection, not of a statement.
func isGone(err error) bool { return !strings.Contains(err.Error(), "status 4") }

// A crashWriter writes rows numbered from 0 to a table of its own. A row's
// number decides its value and how it is spelled.
type crashWriter struct {
	id           int
	rng          *rand.Rand
	side         sideTable
	sent         int // rows that were ever sent: 0 … sent-1
	acknowledged []bool
}

// writeBatch sends the next rows and remembers whether they were acknowledged.
func (w *crashWriter) writeBatch(target Target) error {
	n := 1 + w.rng.IntN(20)
	lines := make([]string, n)
	for i := range lines {
		row := w.sent + i
		field := "v"
		if row%50 == 49 {
			field = fmt.Sprintf("extra%d", row/50%40) // now and then a new column
		}
		tag := ""
		if row%70 == 69 {
			tag = fmt.Sprintf(",tag%d=x", row/70%20) // and a new tag, which changes the keys of series
		}
		lines[i] = fmt.Sprintf("crash_%d,shard=s%d%s n=%di,%s=%d.25 %d", w.id, row%7, tag, row, field, row, row)
	}
	w.sent += n
	err := writeLines(target, lines...)
	for range n {
		w.acknowledged = append(w.acknowledged, err == nil)
	}
	return err
}

// check compares what is read with what was sent.
func (w *crashWriter) check(t *testing.T, target Target, when string) {
	t.Helper()
	rows := rowsOf(t, target, fmt.Sprintf(
		"SELECT shard, n, greptime_timestamp, v FROM crash_%d ORDER BY greptime_timestamp", w.id))
	seen := make([]bool, w.sent)
	for _, got := range rows {
		var shard, v string
		var n, ts int
		if _, err := fmt.Sscan(got, &shard, &n, &ts, &v); err != nil || n < 0 || n >= w.sent {
			t.Errorf("%s: table crash_%d has a row that was never sent: %s", when, w.id, got)
			continue
		}
		want := fmt.Sprintf("s%d %d %d %d.25", n%7, n, n, n)
		if n%50 == 49 {
			want = fmt.Sprintf("s%d %d %d <nil>", n%7, n, n)
		}
		if got != want || seen[n] {
			t.Errorf("%s: table crash_%d: got row %q (seen before: %v), want %q once", when, w.id, got, seen[n], want)
		}
		seen[n] = true
	}
	for n, acknowledged := range w.acknowledged {
		if acknowledged && !seen[n] {
			t.Errorf("%s: table crash_%d lost row %d, which was acknowledged", when, w.id, n)
		}
	}
}

// A sideTable is made by a writer, gets some rows, is dropped, and is made
// again under the same name.
type sideTable struct {
	name         string
	generation   int
	sent         int   // rows of this generation
	acknowledged []int // of them
	dropping     bool  // a drop was sent whose answer nobody has
}

// step sends one row, or drops the table when it has some. After a drop without
// an answer the next step is another one.
func (s *sideTable) step(target Target) error {
	if s.dropping || s.sent >= 4 {
		s.dropping = true
		if _, err := runSQL(target, "DROP TABLE IF EXISTS "+s.name); err != nil {
			return err
		}
		*s = sideTable{name: s.name, generation: s.generation + 1}
		return nil
	}
	n := s.sent
	s.sent++
	err := writeLines(target, fmt.Sprintf("%s,gen=g%d n=%di,own%d=1 %d", s.name, s.generation, n, s.generation%30, n))
	if err == nil {
		s.acknowledged = append(s.acknowledged, n)
	}
	return err
}

// check compares what is read with what was sent. A drop is done whole or not
// at all, so that a table that is there has all its rows.
func (s *sideTable) check(t *testing.T, target Target, when string) {
	t.Helper()
	if _, err := runSQL(target, "DESCRIBE TABLE "+s.name); err != nil {
		if isGone(err) || len(s.acknowledged) > 0 && !s.dropping {
			t.Errorf("%s: table %s, with the acknowledged rows %v: %v", when, s.name, s.acknowledged, err)
		}
		return
	}
	seen := make(map[int]bool)
	for _, got := range rowsOf(t, target, "SELECT gen, n FROM "+s.name) {
		var gen string
		var n int
		if _, err := fmt.Sscan(got, &gen, &n); err != nil || gen != fmt.Sprintf("g%d", s.generation) || n >= s.sent || seen[n] {
			t.Errorf("%s: table %s, generation %d, of which %d rows were sent, has the row %q (seen before: %v)", when, s.name, s.generation, s.sent, got, seen[n])
		}
		seen[n] = true
	}
	for _, n := range s.acknowledged {
		if !seen[n] {
			t.Errorf("%s: table %s lost row %d of generation %d, which was acknowledged", when, s.name, n, s.generation)
		}
	}
}
