package memtable

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

const (
	batchRows  = 8192
	batchBytes = 8 << 20 // of byte strings, at which a batch ends earlier

	// A scan of less than one in chainShare series walks their chains; another
	// sorts all rows once.
	chainShare = 8
)

// Source returns the rows that req asks for, sorted by series key, then time,
// then sequence with the newest first. Predicates on fields are ignored.
// Nothing is done before the first Next.
func (s *Snapshot) Source(req run.Request) run.Source { return &sorted{s: s, req: req} }

// sorted is a Source in key order.
type sorted struct {
	s      *Snapshot
	req    run.Request
	closed atomic.Bool

	query   *query
	perm    *permutation      // nil: walk chains
	ranks   []uint32          // of the series still to come
	current uint32            // the series that rest belongs to
	keep    []table.TimeRange // the times of it that are wanted, if there is a Selection
	rest    []uint32          // its rows that are still to come
	walked  []uint32          // memory of rest, when it comes from a chain

	rows    []uint32 // of the batch
	series  []uint32 // of the batch's stretches
	starts  []uint32
	gather  *gatherer
	batch   run.Batch
	keys    [][]byte
	times   []int64
	numbers []uint64
	ops     []table.Op
}

// Distinct reports whether no two rows share an identity.
func (r *sorted) Distinct() bool { return r.s.unique }

// Close ends the scan.
func (r *sorted) Close() { r.closed.Store(true) }

// Next returns the next batch.
func (r *sorted) Next(ctx context.Context) (*run.Batch, error) {
	if r.closed.Load() || r.s.rows == 0 {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.query == nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	r.choose()
	if len(r.rows) == 0 {
		return nil, nil
	}
	r.batch = run.Batch{Len: len(r.rows), Columns: r.gather.gather(r.rows)}
	if r.req.Identity {
		r.identify()
	}
	r.req.Stats.MemtableRows.Add(int64(len(r.rows)))
	return &r.batch, nil
}

func (r *sorted) open() (err error) {
	if r.query, err = r.s.resolve(r.req); err != nil {
		return err
	}
	x := r.query.index
	r.gather = newGatherer(r.s, r.query)
	r.ranks = r.query.selectSeries()
	if r.perm = r.s.cachedPermutation(x); r.perm == nil && len(r.ranks) > len(x.order)/chainShare {
		r.perm = r.s.permutation(x)
	}
	return nil
}

// choose collects the rows of the next batch and where their series start.
func (r *sorted) choose() {
	r.rows, r.series, r.starts = r.rows[:0], r.series[:0], r.starts[:0]
	for size := 0; len(r.rows) < batchRows && size < batchBytes; {
		if len(r.rest) == 0 && !r.nextSeries() {
			return
		}
		n := min(len(r.rest), batchRows-len(r.rows))
		if r.query.byteColumns {
			n, size = r.gather.fit(r.rest[:n], size)
		}
		start := len(r.rows)
		r.rows = r.query.inTime(r.rows, r.s, r.rest[:n], r.keep)
		r.rest = r.rest[n:]
		if len(r.rows) > start {
			r.series, r.starts = append(r.series, r.current), append(r.starts, uint32(start))
		}
	}
}

// inTime appends those of rows that are in the request's times, or where there
// is a Selection in those of keep.
func (q *query) inTime(dst []uint32, s *Snapshot, rows []uint32, keep []table.TimeRange) []uint32 {
	if q.sel != nil {
		for _, row := range rows {
			k, off := locate(row)
			t := s.chunks[k].times[off]
			if slices.ContainsFunc(keep, func(x table.TimeRange) bool { return x.Contains(t) }) {
				dst = append(dst, row)
			}
		}
		return dst
	}
	if q.allTimes {
		return append(dst, rows...)
	}
	for _, row := range rows {
		if k, off := locate(row); q.req.Times.Contains(s.chunks[k].times[off]) {
			dst = append(dst, row)
		}
	}
	return dst
}

// nextSeries moves to the next series that has rows.
func (r *sorted) nextSeries() bool {
	for len(r.ranks) > 0 {
		rank := r.ranks[0]
		r.current, r.ranks = r.query.index.order[rank], r.ranks[1:]
		if q := r.query; q.sel != nil {
			if r.keep = q.sel.Keep(r.keep[:0], r.current, q.cuts.of(q.sel, r.current), r.req.Times); len(r.keep) == 0 {
				continue
			}
		}
		if r.perm != nil {
			r.rest = r.perm.rows[r.perm.starts[rank]:r.perm.starts[rank+1]]
		} else {
			r.walked = r.s.chain(r.walked[:0], r.current)
			r.rest = r.walked
		}
		if len(r.rest) > 0 {
			return true
		}
	}
	return false
}

// identify fills the identity of the batch's rows.
func (r *sorted) identify() {
	n, b := len(r.rows), &r.batch
	r.keys = r.keys[:0]
	for _, id := range r.series {
		r.keys = append(r.keys, r.s.at(id).key)
	}
	r.times, r.numbers = resize(r.times, n), resize(r.numbers, n)
	b.Keys, b.Starts, b.Times, b.Sequences = r.keys, r.starts, r.times, r.numbers
	if r.s.deletes {
		r.ops = resize(r.ops, n)
		b.Ops = r.ops
	}
	g := r.gather
	for i, k := range g.chunks {
		c, off := r.s.chunks[k], g.offsets[i]
		r.times[i], r.numbers[i] = c.times[off], c.sequences[off]
		if b.Ops == nil {
			continue
		}
		r.ops[i] = table.Put
		if ops := c.ops.Load(); ops != nil {
			r.ops[i] = (*ops)[off]
		}
	}
}

// SplitKeys returns keys that cut the rows into parts of about rowsPerPart
// rows, without the first and the last bound.
func (s *Snapshot) SplitKeys(schema *table.Schema, rowsPerPart int) [][]byte {
	parts := int(s.rows) / max(rowsPerPart, 1)
	if parts < 2 || s.series < 2 {
		return nil
	}
	x := s.index(schema)
	parts = min(parts, len(x.order))
	keys := make([][]byte, 0, parts-1)
	for i := 1; i < parts; i++ {
		keys = append(keys, x.key(x.order[i*len(x.order)/parts]))
	}
	return keys
}

// Selective reports whether req wants so few series that Source is the way to
// read them.
func (s *Snapshot) Selective(req run.Request) bool {
	q := &query{req: req, index: s.index(req.Schema)}
	q.addTagPredicates()
	return len(q.tagPredicates) > 0 && len(q.selectSeries())*chainShare <= len(q.index.order)
}
