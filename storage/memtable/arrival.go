package memtable

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// Arrival returns those of the rows [first, end), in the order in which they
// came, that req asks for. Nothing is merged or hidden, so it is for snapshots
// that are Unique, or tables that keep every row. Where all rows of a chunk
// are wanted, the vectors are the memory of the chunk.
func (s *Snapshot) Arrival(req run.Request, first, end int) run.Source {
	return &arrival{s: s, req: req, next: uint32(first), end: min(uint32(end), s.rows)}
}

type arrival struct {
	s      *Snapshot
	req    run.Request
	next   uint32
	end    uint32
	closed atomic.Bool

	query  *query
	passed []bool // by series; nil: all pass
	gather *gatherer
	rows   []uint32
	batch  run.Batch
}

// Distinct reports whether no two rows share an identity.
func (r *arrival) Distinct() bool { return r.s.unique }

// Close ends the scan.
func (r *arrival) Close() { r.closed.Store(true) }

// Next returns the next batch.
func (r *arrival) Next(ctx context.Context) (*run.Batch, error) {
	if r.closed.Load() || r.next >= r.end {
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
	before := r.next
	defer func() { r.req.Stats.MemtableRows.Add(int64(r.next - before)) }()
	if k, off, n := r.choose(); n > 0 {
		r.batch = run.Batch{Len: n, Columns: r.gather.stretch(k, off, n)}
		return &r.batch, nil
	}
	if len(r.rows) == 0 {
		return nil, nil
	}
	r.batch = run.Batch{Len: len(r.rows), Columns: r.gather.gather(r.rows)}
	return &r.batch, nil
}

func (r *arrival) open() (err error) {
	if r.query, err = r.s.resolve(r.req); err != nil {
		return err
	}
	r.gather = newGatherer(r.s, r.query)
	if len(r.query.tagPredicates) == 0 && r.req.FirstKey == nil && r.req.EndKey == nil {
		return nil
	}
	r.passed = make([]bool, r.query.index.series)
	for _, rank := range r.query.selectSeries() {
		r.passed[r.query.index.order[rank]] = true
	}
	return nil
}

// viewRows is the number of wanted rows in a chunk from which they are handed
// out where they are.
const viewRows = 512

// choose finds the next batch: a long stretch of a chunk, or short ones whose
// rows it collects.
func (r *arrival) choose() (chunk, first, n int) {
	r.rows = r.rows[:0]
	for size := 0; r.next < r.end && len(r.rows) < batchRows && size < batchBytes; {
		k, off := locate(r.next)
		c := r.s.chunks[k]
		end := off + min(uint32(len(c.times))-off, r.end-r.next)
		from, to := r.wanted(c, off, end)
		r.next += from - off
		switch {
		case to-from >= viewRows && len(r.rows) > 0:
			return 0, 0, 0 // after what was collected
		case to-from >= viewRows:
			r.next += to - from
			return int(k), int(from), int(to - from)
		}
		at := len(r.rows)
		for range min(int(to-from), batchRows-at) {
			r.rows = append(r.rows, r.next)
			r.next++
		}
		if r.query.byteColumns && len(r.rows) > at {
			var fits int
			fits, size = r.gather.fit(r.rows[at:], size)
			r.next -= uint32(len(r.rows) - at - fits)
			r.rows = r.rows[:at+fits]
		}
	}
	return 0, 0, 0
}

// wanted returns the first stretch [from, to) of rows of a chunk, between off
// and end, that are wanted; it is empty at end if there is none.
func (r *arrival) wanted(c *chunk, off, end uint32) (from, to uint32) {
	if r.passed == nil && r.query.allTimes && !r.query.cuts.reach(c.times[off:end]) {
		return off, end
	}
	for from = off; from < end && !r.wants(c, from); {
		from++
	}
	for to = from; to < end && r.wants(c, to); {
		to++
	}
	return from, to
}

func (r *arrival) wants(c *chunk, i uint32) bool {
	id, at := c.series[i], c.times[i]
	return (r.passed == nil || r.passed[id]) && (r.query.allTimes || r.req.Times.Contains(at)) &&
		(r.query.cuts == nil || r.query.cuts.wants(r.query.sel, id, at))
}

// stretch returns n rows of one chunk, as far as possible without a copy.
func (g *gatherer) stretch(k, off, n int) []table.Vector {
	c := g.s.chunks[k]
	for i := range g.q.columns {
		out, v := &g.q.columns[i], &g.views[i]
		*v = table.Vector{Type: out.typ, Len: n, Codes: v.Codes, Valid: v.Valid}
		switch {
		case out.kind == kindTime:
			v.Valid, v.Ints = nil, c.times[off:off+n]
		case out.kind == kindTag:
			fillTag(v, out.tag, c.series[off:off+n])
		case out.kind == kindField && out.perRow[k] != nil:
			out.perRow[k].share(v, off, n)
		default:
			fillNull(v, n)
		}
	}
	return g.views
}

// share lets v see n rows of the column.
func (c *column) share(v *table.Vector, off, n int) {
	if valid := c.valid.Load(); valid == nil {
		v.Valid = nil
	} else {
		v.Valid = clearBitmap(v.Valid, n)
		for i, ok := range (*valid)[off : off+n] {
			if ok {
				v.Valid.Set(i)
			}
		}
	}
	switch {
	case c.ints != nil:
		v.Ints = c.ints[off : off+n]
	case c.floats != nil:
		v.Floats = c.floats[off : off+n]
	case c.other.bools != nil:
		v.Bools = c.other.bools[off : off+n]
	default:
		v.Offsets, v.Data = c.other.offsets[off:off+n+1], *c.other.data.Load()
	}
}

// Stretches cuts the rows into stretches of about n for Arrival, at the bounds
// of chunks where n is not less than a chunk.
func (s *Snapshot) Stretches(n int) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		for first := 0; first < int(s.rows); {
			end := first + n
			if n >= chunkRows {
				if _, off := locate(uint32(end)); end < int(s.rows) {
					end -= int(off)
				}
			}
			end = min(end, int(s.rows))
			if !yield(first, end) {
				return
			}
			first = end
		}
	}
}
