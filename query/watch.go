package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/fault"
)

// Not all of what DuckDB allocates is in its memory limit, and not all of what
// it does looks for interrupts. What the guards of bound.go do not keep from
// happening is seen here.
const (
	watchEvery = 100 * time.Millisecond
	// stuckAfter is what a statement gets to end by itself when its context
	// has; its caller does not wait longer.
	stuckAfter = 500 * time.Millisecond
)

// A watch knows the statements that run. If the process takes more memory than
// it may, it ends the youngest that came before the growth.
type watch struct {
	opts  Options
	stuck atomic.Int64
	ended prometheus.Counter
	all   []prometheus.Collector
	stop  chan struct{}
	done  sync.WaitGroup

	mu struct {
		sync.Mutex
		running map[*statement]running
		seq     int64
		last    time.Time // that one was ended
	}
}

type running struct {
	seq      int64
	begun    time.Time
	resident int64 // of the process, when it was first seen; 0: not seen
	ended    bool  // by the watch
}

func newWatch(opts Options) *watch {
	w := &watch{opts: opts, stop: make(chan struct{})}
	w.mu.running = map[*statement]running{}
	w.ended = prometheus.NewCounter(prometheus.CounterOpts{Name: "varve_query_memory_ended_total",
		Help: "Queries that were ended since the process took too much memory."})
	w.all = []prometheus.Collector{w.ended,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "varve_query_stuck",
			Help: "Queries that are over for their clients, and whose threads do not stop."},
			func() float64 { return float64(w.stuck.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "varve_query_running", Help: "Queries that run."},
			func() float64 { return float64(w.count()) }),
	}
	if opts.Registerer != nil {
		for _, c := range w.all {
			opts.Registerer.MustRegister(c)
		}
	}
	if opts.ProcessLimit > 0 {
		w.done.Go(w.run)
	}
	return w
}

func (w *watch) close() {
	close(w.stop)
	w.done.Wait()
	if w.opts.Registerer != nil {
		for _, c := range w.all {
			w.opts.Registerer.Unregister(c)
		}
	}
}

func (w *watch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.mu.running)
}

func (w *watch) enter(st *statement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.seq++
	w.mu.running[st] = running{seq: w.mu.seq, begun: time.Now()}
}

func (w *watch) leave(st *statement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.running, st)
}

func (w *watch) run() {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			if w.count() > 0 {
				w.look(residentSize())
			}
		}
	}
}

// look ends a statement if the process is too large by what has come since the
// statement began: an eighth of the limit, so that memory which was taken
// before, or is kept by the allocator, ends none. The next one has to wait
// until the memory of this one can have been freed.
func (w *watch) look(resident int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var youngest *statement
	for st, r := range w.mu.running {
		if r.resident == 0 {
			r.resident = resident
			w.mu.running[st] = r
		}
		grown := resident-r.resident >= w.opts.ProcessLimit/8 || r.resident > resident
		if grown && !r.ended && (youngest == nil || r.seq > w.mu.running[youngest].seq) {
			youngest = st
		}
	}
	if resident <= w.opts.ProcessLimit || youngest == nil || time.Since(w.mu.last) < 5*watchEvery {
		return
	}
	r := w.mu.running[youngest]
	r.ended = true
	w.mu.running[youngest], w.mu.last = r, time.Now()
	w.ended.Inc()
	w.opts.Logger.Warn("query: ended for its memory", "process_bytes", resident, "limit_bytes", w.opts.ProcessLimit,
		"running", time.Since(r.begun).String(), "statement", youngest.shortText())
	youngest.end(fault.Errorf(fault.Exhausted, "the query was ended: the server takes %d MiB of memory, more than its limit of %d MiB",
		resident>>20, w.opts.ProcessLimit>>20))
}

// residentSize is the memory that the process has; 0 where nothing tells.
func residentSize() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(b)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// texts are the statements that run, for the log.
func (w *watch) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for st, r := range w.mu.running {
		texts = append(texts, fmt.Sprintf("%s, for %s", st.shortText(), time.Since(r.begun).Round(time.Millisecond)))
	}
	slices.Sort(texts)
	return texts
}

// shortText is the beginning of a statement.
func (st *statement) shortText() string {
	const most = 200
	if len(st.text) > most {
		return strings.ToValidUTF8(st.text[:most], "") + "…"
	}
	return st.text
}

// end ends a statement with an error of ours.
func (st *statement) end(err error) {
	st.failed(err)
	st.cancel()
}

// wait runs f, which calls into DuckDB, but returns soon when ctx has ended,
// even if DuckDB does not. It then reports false, and f goes on; late is called
// when it is done.
func (st *statement) wait(ctx context.Context, f, late func()) bool {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-st.ctx.Done():
	}
	t := time.NewTimer(stuckAfter)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	}
	w := st.engine.watch
	w.stuck.Add(1)
	begun := time.Now()
	w.opts.Logger.Warn("query: does not stop; its slot stays taken", "statement", st.shortText())
	go func() {
		<-done
		late()
		w.stuck.Add(-1)
		w.opts.Logger.Info("query: has stopped late", "after", time.Since(begun).String(), "statement", st.shortText())
	}()
	return false
}

// over is the error of a statement that is not waited for.
func (st *statement) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return cmp.Or(st.mu.err, st.parent.Err(), errors.New("query: ended"))
}
