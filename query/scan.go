package query

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// slowBatch is how long a batch takes that had to be fetched from afar.
const slowBatch = 5 * time.Millisecond

// soloRows is the size of a lone partition that is read without a goroutine.
const soloRows = 1 << 17

// A scan hands the partitions of one scan of a table to the threads of DuckDB.
//
//  1. A thread takes the next partition and reads it to its end, so that one
//     thread alone sees the partitions in their order.
//  2. While batches come fast, a thread reads them itself: handing them over
//     costs more than they do. Only the first partitions have goroutines from
//     the beginning, unless there is just a small one.
//  3. Once a batch has taken longer than slowBatch, every partition that is being
//     read, and as many more as there are threads, has a goroutine that fetches
//     its next batch. A thread that has copied the last rows of a batch asks for
//     the next one before it hands them to DuckDB, and the partition that a
//     thread will take next has fetched its first batch by then. A batch is good
//     until the next one is asked for, so no further ahead can be read without
//     copying; what takes longer is for the partitions themselves to read ahead.
//  4. Close ends the goroutines, waits for them and closes the partitions.
type scan struct {
	st     *statement
	name   string
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	slow   atomic.Bool

	mu struct {
		sync.Mutex
		closed bool
		parts  []table.Partition // not begun
		ahead  []*reader         // begun, not taken
		taken  []*reader
	}
}

// A reader reads one partition: the thread that has taken it asks either itself
// or, once that runs, the goroutine.
type reader struct {
	scan    *scan
	part    table.Partition
	running bool // whether there is a goroutine
	asked   bool // whether it owes an answer

	want chan struct{}   // a thread asks; closed when it is done
	got  chan batchOrErr // the goroutine answers, once per question

	mu struct {
		sync.Mutex // held while the partition is used
		closed     bool
	}
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
	if len(parts) == 1 && parts[0].Rows() <= soloRows {
		return s
	}
	for range threads {
		s.beginLocked()
	}
	return s
}

// nextLocked returns a reader of the next partition, or nil.
func (s *scan) nextLocked() *reader {
	if len(s.mu.parts) == 0 || s.mu.closed {
		return nil
	}
	r := &reader{scan: s, part: s.mu.parts[0]}
	s.mu.parts = s.mu.parts[1:]
	return r
}

// beginLocked starts the goroutine of the next partition.
func (s *scan) beginLocked() {
	if r := s.nextLocked(); r != nil {
		s.mu.ahead = append(s.mu.ahead, r)
		r.askLocked()
	}
}

// ask has the goroutine fetch the next batch.
func (r *reader) ask() {
	r.scan.mu.Lock()
	defer r.scan.mu.Unlock()
	r.askLocked()
}

func (r *reader) askLocked() {
	if !r.running && !r.scan.mu.closed {
		r.running = true
		r.want, r.got = make(chan struct{}, 1), make(chan batchOrErr, 1)
		r.scan.done.Go(r.run)
	}
	if r.running {
		r.asked = true
		r.want <- struct{}{}
	}
}

func (r *reader) run() {
	defer r.close()
	for {
		select {
		case _, ok := <-r.want:
			if !ok {
				return
			}
		case <-r.scan.ctx.Done():
			return
		}
		b, err := r.next()
		r.got <- batchOrErr{b, err}
	}
}

// answer returns the next batch, from the goroutine if that has been asked.
func (r *reader) answer() (*table.Batch, error) {
	if !r.asked {
		return r.next()
	}
	r.asked = false
	select {
	case g := <-r.got:
		return g.batch, g.err
	case <-r.scan.ctx.Done():
		return nil, r.scan.ctx.Err()
	}
}

// next reads the next batch. It turns a panic of the partition into an error, as
// the callbacks do.
func (r *reader) next() (b *table.Batch, err error) {
	s := r.scan
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			s.st.failed(fmt.Errorf("read table %s: %w", s.name, err))
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, context.Canceled
	}
	start := time.Now()
	b, err = r.part.Next(s.ctx)
	if time.Since(start) > slowBatch {
		s.slow.Store(true)
	}
	return b, err
}

// end is called by the thread that has read the partition to its end.
func (r *reader) end() {
	if r.running {
		close(r.want)
	} else {
		r.close()
	}
}

func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.closed {
		r.mu.closed = true
		r.part.Close()
	}
}

// Close ends what reads for the scan. It may be called more than once.
func (s *scan) Close() {
	s.cancel()
	s.mu.Lock()
	parts, taken := s.mu.parts, s.mu.taken
	s.mu.closed, s.mu.parts, s.mu.ahead, s.mu.taken = true, nil, nil, nil
	s.mu.Unlock()
	for _, p := range parts {
		p.Close()
	}
	s.done.Wait()
	for _, r := range taken {
		r.close()
	}
}

// Worker returns a thread's view of the scan.
func (s *scan) Worker() duckdb.Worker { return &worker{scan: s} }

// take returns the next partition, and begins the one after it.
func (s *scan) take() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	slow := s.slow.Load()
	if len(s.mu.ahead) == 0 && slow {
		s.beginLocked()
	}
	var r *reader
	if len(s.mu.ahead) > 0 {
		r = s.mu.ahead[0]
		s.mu.ahead = s.mu.ahead[1:]
	} else if r = s.nextLocked(); r == nil {
		return nil
	}
	s.mu.taken = append(s.mu.taken, r)
	if slow {
		s.beginLocked()
	}
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
		b, err := w.reader.answer()
		if err != nil {
			return nil, 0, 0, err
		}
		if w.batch, w.from = b, 0; b == nil {
			w.reader.end()
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
		if w.scan.slow.Load() {
			w.reader.ask()
		}
	}
}
