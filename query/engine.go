package query

import (
	"context"

	"github.com/varvedb/varve/fault"
)

// Options tunes an Engine. A zero field means its default.
type Options struct {
	TempDir     string // where large statements spill to; required
	MemoryLimit int64  // bytes that DuckDB may use; 1 GiB
	Threads     int    // of DuckDB; GOMAXPROCS
	MaxRunning  int    // statements that run at once; Threads
	MaxQueued   int    // statements that wait to run; 128 per running one
}

// An Engine runs statements. Any number of goroutines may use it.
type Engine struct{}

// Open starts an Engine, which runs until Close.
func Open(opts Options) (*Engine, error) { return &Engine{}, nil }

// Close waits for the results that are open to be closed, and ends the engine.
func (e *Engine) Close() error { return nil }

func (e *Engine) run(ctx context.Context, req Request) (*Result, error) {
	return nil, fault.Errorf(fault.Unsupported, "queries are not wired up yet")
}
