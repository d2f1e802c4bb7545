package duckdb

// #include "glue.h"
import "C"

import (
	"sync"
	"time"
	"unsafe"
)

// A statement that works for longer than soloTime, or returns more chunks than
// soloChunks, is long enough for other threads to help with it.
const (
	soloTime   = time.Millisecond
	soloChunks = 4
)

// helpers are the threads that work on statements besides those that run them.
// DuckDB's own are turned off: they wake for every task of every statement, and
// the thread that runs a short one then waits, spinning, for what it would have
// done sooner itself. These work only while a long statement borrows them.
type helpers struct {
	state  C.duckdb_task_state
	wanted *C.int // whether anyone borrows them, for C
	done   sync.WaitGroup

	mu struct {
		sync.Mutex
		wake      *sync.Cond
		borrowers int
		closed    bool
	}
}

func newHelpers(db C.duckdb_database, threads int) *helpers {
	h := &helpers{state: C.duckdb_create_task_state(db), wanted: (*C.int)(C.calloc(1, C.sizeof_int))}
	h.mu.wake = sync.NewCond(&h.mu)
	for range threads {
		h.done.Go(h.run)
	}
	return h
}

func (h *helpers) run() {
	for h.wait() {
		C.varve_help(h.state, h.wanted)
	}
}

// wait waits for a borrower; false: there will be none.
func (h *helpers) wait() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.mu.borrowers == 0 && !h.mu.closed {
		h.mu.wake.Wait()
	}
	return !h.mu.closed
}

// borrow lets the helpers work until giveBack is called as often as borrow.
func (h *helpers) borrow() { h.add(1) }

func (h *helpers) giveBack() { h.add(-1) }

func (h *helpers) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.borrowers += n
	C.varve_want(h.wanted, C.bool(h.mu.borrowers > 0))
	if h.mu.borrowers > 0 {
		h.mu.wake.Broadcast()
	}
}

// close ends the helpers. Nothing runs any more.
func (h *helpers) close() {
	h.mu.Lock()
	h.mu.closed = true
	C.varve_want(h.wanted, false)
	h.mu.wake.Broadcast()
	h.mu.Unlock()
	h.done.Wait()
	C.duckdb_destroy_task_state(h.state)
	C.free(unsafe.Pointer(h.wanted))
}
