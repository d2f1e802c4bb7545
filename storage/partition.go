package storage

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A partition is a part of a scan. Its source is made by the first Next.
type partition struct {
	rows  int64
	open  func() run.Source
	stats *table.ScanStats
	batch table.Batch

	mu struct {
		sync.Mutex
		source run.Source
		closed bool
	}
}

func (p *planner) add(rows int64, open func() run.Source) {
	p.parts = append(p.parts, &partition{rows: rows, open: open, stats: p.stats})
}

// Rows returns an estimate of how many rows are to come.
func (p *partition) Rows() int64 { return p.rows }

// Next returns the next batch, or nil at the end.
func (p *partition) Next(ctx context.Context) (*table.Batch, error) {
	src := p.source()
	if src == nil {
		return nil, nil
	}
	b, err := src.Next(ctx)
	if err != nil || b == nil {
		return nil, err
	}
	p.stats.RowsReturned.Add(int64(b.Len))
	p.batch = table.Batch{Len: b.Len, Columns: b.Columns}
	return &p.batch, nil
}

func (p *partition) source() run.Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.source == nil && !p.mu.closed {
		p.mu.source = p.open()
	}
	if p.mu.closed {
		return nil
	}
	return p.mu.source
}

// Close releases the partition's memory.
func (p *partition) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.source != nil && !p.mu.closed {
		p.mu.source.Close()
	}
	p.mu.closed = true
}

// scanFile reads row groups [first, end) of a file, and leaves out what is
// damaged in them.
func (p *planner) scanFile(s *source, req run.Request, first, end int) run.Source {
	if s.index != nil && req.Selection == nil {
		req.Selection = &run.Selection{Series: s.match, Except: true}
	}
	return &tolerant{p: p, s: s, req: req, next: first, end: end}
}

// tolerant reads a file row group by row group. Where one is damaged, it goes
// on with the next.
type tolerant struct {
	p         *planner
	s         *source
	req       run.Request
	next, end int
	wanted    []int64 // about how many rows of each row group are wanted, if known: none means none
	current   run.Source
	closed    atomic.Bool
}

// Distinct reports whether no two rows share an identity.
func (t *tolerant) Distinct() bool { return t.s.unique }

// Next returns the next batch.
func (t *tolerant) Next(ctx context.Context) (*run.Batch, error) {
	for !t.closed.Load() {
		if t.current == nil {
			for t.next < t.end && t.wanted != nil && t.wanted[t.next] == 0 {
				t.s.reader.CountPruned(&t.req, t.next, t.next+1)
				t.next++
			}
			if t.next == t.end {
				return nil, nil
			}
			t.current = t.s.reader.Scan(t.req, t.s.index, t.next, t.next+1)
			t.next++
		}
		b, err := t.current.Next(ctx)
		if b != nil && err == nil {
			return b, nil
		}
		if err != nil && !isDamage(err) {
			return nil, err
		}
		if err != nil {
			t.p.e.noteLoss(t.s.file, err, t.p.stats)
		}
		t.current.Close()
		t.current = nil
	}
	return nil, nil
}

// Close releases memory.
func (t *tolerant) Close() {
	if t.closed.Swap(true) {
		return
	}
	if t.current != nil {
		t.current.Close()
	}
}
