package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// interruptEvery is how often a statement is told again that it is over: an
// interrupt is lost on a connection that is just about to begin.
const interruptEvery = 5 * time.Millisecond

// A statement is what a Result holds: a running slot, a connection with its
// prepared statement and result, and a snapshot of each table.
type statement struct {
	engine *Engine
	text   string // for the log
	parent context.Context
	ctx    context.Context // ends with the statement
	cancel context.CancelFunc

	conn      *conn
	prepared  *duckdb.Stmt
	result    *duckdb.Result
	sources   []*source
	snapshots []table.Snapshot
	stats     []TableStats
	spellings spellings

	stopWatch func() bool
	watched   chan struct{} // closed by the watcher when it has ended
	finished  chan struct{} // closed when nothing runs any more

	mu struct {
		sync.Mutex
		err   error // the first of a scan
		scans []*scan
	}
}

// run starts a statement.
func (e *Engine) run(ctx context.Context, req Request) (*Result, error) {
	mode, body, err := peel(req.SQL)
	if err != nil {
		return nil, err
	}
	req.SQL = body
	st, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	st.text = body
	e.watch.enter(st)
	var r *Result
	if !st.wait(ctx, func() { r, err = st.start(req, mode) }, func() { st.release(false) }) {
		return nil, st.over(ctx)
	}
	if err != nil {
		err = st.fault(err)
		st.close(false)
		return nil, err
	}
	return r, nil
}

// begin waits for a slot and takes a connection.
func (e *Engine) begin(ctx context.Context) (*statement, error) {
	if err := e.slots.enter(ctx); err != nil {
		return nil, err
	}
	c, err := e.connect()
	if err != nil {
		e.slots.leave()
		return nil, err
	}
	st := &statement{engine: e, parent: ctx, conn: c, watched: make(chan struct{}), finished: make(chan struct{})}
	st.ctx, st.cancel = context.WithCancel(ctx)
	st.stopWatch = context.AfterFunc(st.ctx, st.interrupt)
	return st, nil
}

// interrupt ends what the connection runs, until nothing does.
func (st *statement) interrupt() {
	defer close(st.watched)
	t := time.NewTicker(interruptEvery)
	defer t.Stop()
	for {
		st.conn.Interrupt()
		select {
		case <-st.finished:
			return
		case <-t.C:
		}
	}
}

func (st *statement) start(req Request, mode explainMode) (r *Result, err error) {
	defer func() { // so that a tree we did not foresee costs no slot
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("query: panic: %v\n%s", p, debug.Stack())
		}
	}()
	sql, err := st.rewrite(req)
	if err != nil {
		return nil, err
	}
	if mode != plain {
		return st.explain(sql, mode)
	}
	if st.prepared, err = st.conn.Prepare(sql); err != nil {
		return nil, err
	}
	if wrapped, ok := castForeign(sql, st.prepared.Columns()); ok {
		st.prepared.Close()
		if st.prepared, err = st.conn.Prepare(wrapped); err != nil {
			st.prepared = nil
			return nil, err
		}
	}
	if st.result, err = st.prepared.Run(); err != nil {
		return nil, err
	}
	return newResult(st), nil
}

// rewrite turns the request's text into the one for DuckDB, and pins its
// tables.
func (st *statement) rewrite(req Request) (string, error) {
	tree, err := st.parse(req.SQL)
	if err != nil {
		return "", err
	}
	r := &rewriter{req: req, engine: st.engine, limits: 1}
	r.query(child(list(tree, "statements")[0].(node), "node"), nil, nil)
	if r.err == nil {
		r.spell(tree, st)
	}
	if r.err != nil {
		return "", r.err
	}
	if err := st.pin(req, r.sources); err != nil {
		return "", err
	}
	if text, ok := printTree(tree); ok {
		return text, nil
	}
	return st.printByDuckDB(tree)
}

// printByDuckDB prints any tree.
func (st *statement) printByDuckDB(tree node) (string, error) {
	text, err := json.Marshal(tree)
	if err != nil {
		return "", fmt.Errorf("print statement: %w", err)
	}
	if err := st.conn.print.BindText(1, string(text)); err != nil {
		return "", err
	}
	return st.conn.print.Text()
}

// parse returns the tree of a text with exactly one SELECT.
func (st *statement) parse(sql string) (node, error) {
	if !utf8.ValidString(sql) || strings.Contains(sql, "\x00") || strings.Contains(sql, marker) {
		return nil, fault.Errorf(fault.Syntax, "the statement is not valid UTF-8 text")
	}
	if err := st.conn.serialize.BindText(1, sql); err != nil {
		return nil, err
	}
	text, err := st.conn.serialize.Text()
	if err != nil {
		return nil, err
	}
	tree, err := parseTree(text)
	if err != nil {
		return nil, fmt.Errorf("read tree of statement: %w", err)
	}
	if tree["error"] == true {
		message, _ := tree["error_message"].(string)
		if tree["error_type"] == "not implemented" {
			return nil, fault.Errorf(fault.Unsupported, "only SELECT, VALUES, WITH and EXPLAIN of them are queries")
		}
		if at, ok := tree["position"].(string); ok {
			message += " at character " + at
		}
		return nil, fault.Errorf(fault.Syntax, "%s", unmark(message))
	}
	if n := len(list(tree, "statements")); n != 1 {
		return nil, fault.Errorf(fault.Syntax, "expected one statement, found %d", n)
	}
	return tree, nil
}

// pin opens one snapshot per table and makes its sources known to DuckDB.
func (st *statement) pin(req Request, sources []*source) error {
	type pinned struct {
		snap  table.Snapshot
		stats *table.ScanStats
	}
	tables := map[table.ID]pinned{}
	st.sources = sources
	for _, s := range sources {
		p, ok := tables[s.info.ID]
		if !ok {
			snap, err := req.Reader.Snapshot(st.ctx, s.info)
			if err != nil {
				return fmt.Errorf("snapshot of table %s: %w", s.info.Name, err)
			}
			p = pinned{snap, &table.ScanStats{}}
			tables[s.info.ID] = p
			st.snapshots = append(st.snapshots, snap)
			st.stats = append(st.stats, TableStats{s.info.Database, s.info.Name, p.stats})
		}
		s.st, s.snap, s.stats = st, p.snap, p.stats
		st.engine.sources.Store(s.id, s)
	}
	return nil
}

func (st *statement) addScan(s *scan) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.mu.scans = append(st.mu.scans, s)
}

// failed keeps the first error of a scan, with its kind, which DuckDB would
// lose. A scan that was only told to end, since another thread failed, is none:
// DuckDB says what that was.
func (st *statement) failed(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.mu.err == nil && !(errors.Is(err, context.Canceled) && st.parent.Err() == nil) {
		st.mu.err = err
	}
}

// close ends the statement and gives back all it holds, later if DuckDB does
// not stop. exhausted says that the result has been read to its end, so that
// nothing runs any more.
func (st *statement) close(exhausted bool) {
	if exhausted {
		st.release(true)
		return
	}
	st.cancel()
	st.wait(st.ctx, func() { st.release(false) }, func() {})
}

// release is close, and waits for DuckDB.
func (st *statement) release(exhausted bool) {
	watching := true
	if exhausted {
		watching = !st.stopWatch()
	}
	st.cancel()
	if st.result != nil {
		st.result.Close()
	}
	if !exhausted {
		// An abandoned query ends when the next one begins.
		if s, err := st.conn.Prepare("SELECT 1"); err == nil {
			s.Close()
		}
	}
	if st.prepared != nil {
		st.prepared.Close()
	}
	close(st.finished)
	if watching {
		<-st.watched
	}
	for _, s := range st.sources {
		st.engine.sources.Delete(s.id)
	}
	st.mu.Lock()
	scans := slices.Clone(st.mu.scans)
	st.mu.Unlock()
	for _, s := range scans {
		s.Close()
	}
	for _, s := range st.snapshots {
		s.Close()
	}
	st.engine.watch.leave(st)
	st.conn.release()
	st.engine.slots.leave()
}
