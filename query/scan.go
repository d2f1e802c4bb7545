package query

import (
	"context"
	"fmt"
	"sync"

	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// A scan hands the partitions of one scan of a table to the threads of DuckDB.
//
//  1. A thread takes the next partition and reads it to its end, so that one
//     thread alone sees the partitions in their order.
//  2. Every partition that is being read, and one more per scan, has a goroutine
//     that fetches its next batch. A thread that has copied the last rows of a
//     batch asks for the next one before it hands them to DuckDB, and the
//     partition that a thread will take next has fetched its first batch by then.
//     A batch is good until the next one is asked for, so no further ahead can be
//     read without copying; what takes longer is for the partitions themselves to
//     read ahead.
//  3. Close ends the goroutines and waits for them.
type scan struct {
	st     *statement
	name   string
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		parts  []table.Partition // not begun
		ahead  []*reader         // begun, not taken
	}
}

// A reader fetches the batches of one partition.
type reader struct {
	part table.Partition
	want chan struct{}   // a thread asks; closed when it is done
	got  chan batchOrErr // the goroutine answers, once per question
}

type batchOrErr struct {
	batch *table.Batch
	err   error
}

func newScan(st *statement, name string, parts []table.Partition, threads int) *scan {
	s := &scan{st: st, name: name}
	s.ctx, s.cancel = context.WithCancel(st.ctx)
	s.mu.parts = parts
	st.addScan(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	for range threads {
		s.beginLocked()
	}
	return s
}

// beginLocked starts the goroutine of the next partition.
func (s *scan) beginLocked() {
	if len(s.mu.parts) == 0 || s.mu.closed {
		return
	}
	r := &reader{part: s.mu.parts[0], want: make(chan struct{}, 1), got: make(chan batchOrErr, 1)}
	s.mu.parts = s.mu.parts[1:]
	s.mu.ahead = append(s.mu.ahead, r)
	r.want <- struct{}{}
	s.done.Go(func() { r.run(s) })
}

func (r *reader) run(s *scan) {
	defer r.part.Close()
	for {
		select {
		case _, ok := <-r.want:
			if !ok {
				return
			}
		case <-s.ctx.Done():
			return
		}
		b, err := r.next(s.ctx)
		if err != nil {
			s.st.failed(fmt.Errorf("read table %s: %w", s.name, err))
		}
		r.got <- batchOrErr{b, err}
	}
}

// next turns a panic of the partition into an error, as the callbacks do.
func (r *reader) next(ctx context.Context) (b *table.Batch, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return r.part.Next(ctx)
}

// Close ends what reads for the scan. It may be called more than once.
func (s *scan) Close() {
	s.cancel()
	s.mu.Lock()
	parts := s.mu.parts
	s.mu.closed, s.mu.parts, s.mu.ahead = true, nil, nil
	s.mu.Unlock()
	for _, p := range parts {
		p.Close()
	}
	s.done.Wait()
}

// Worker returns a thread's view of the scan.
func (s *scan) Worker() duckdb.Worker { return &worker{scan: s} }

// take returns the next partition, and begins the one after it.
func (s *scan) take() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.ahead) == 0 {
		s.beginLocked()
	}
	if len(s.mu.ahead) == 0 {
		return nil
	}
	r := s.mu.ahead[0]
	s.mu.ahead = s.mu.ahead[1:]
	s.beginLocked()
	return r
}

// A worker is what one thread reads from.
type worker struct {
	scan   *scan
	reader *reader
	batch  *table.Batch
	from   int
}

// Next returns the next rows.
func (w *worker) Next() (*table.Batch, int, int, error) {
	for w.batch == nil {
		if w.reader == nil {
			if w.reader = w.scan.take(); w.reader == nil {
				return nil, 0, 0, w.scan.ctx.Err()
			}
		}
		select {
		case g := <-w.reader.got:
			if g.err != nil {
				return nil, 0, 0, g.err
			}
			w.batch, w.from = g.batch, 0
		case <-w.scan.ctx.Done():
			return nil, 0, 0, w.scan.ctx.Err()
		}
		if w.batch == nil {
			close(w.reader.want)
			w.reader = nil
		}
	}
	from := w.from
	w.from = min(from+duckdb.VectorSize, w.batch.Len)
	return w.batch, from, w.from, nil
}

// Copied says that the rows of the last Next have been copied.
func (w *worker) Copied() {
	if w.batch != nil && w.from == w.batch.Len {
		w.batch = nil
		w.reader.want <- struct{}{}
	}
}
