package memtable

import (
	"math"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// cuts finds the stretches of a Selection by series. Selections of a table
// number its series in the order in which they came.

type cuts = *cutTable

type cutTable struct {
	first []uint32        // by series: its first stretch + 1; 0: it has none
	times table.TimeRange // of all stretches
}

// newCuts returns nil if sel has no stretches to leave out.
func newCuts(sel *run.Selection, series uint32) cuts {
	if len(sel.Stretches) == 0 && sel.Except {
		return nil
	}
	c := &cutTable{first: make([]uint32, series), times: table.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}}
	for i, x := range sel.Stretches {
		if c.first[x.Series] == 0 {
			c.first[x.Series] = uint32(i) + 1
		}
		c.times = table.TimeRange{Min: min(c.times.Min, x.Times.Min), Max: max(c.times.Max, x.Times.Max)}
	}
	return c
}

func (c cuts) has(series uint32) bool {
	return int(series) < len(c.first) && c.first[series] > 0
}

// of returns the stretches of a series.
func (c cuts) of(sel *run.Selection, series uint32) []run.Stretch {
	if c == nil || !c.has(series) {
		return nil
	}
	from := c.first[series] - 1
	to := from
	for int(to) < len(sel.Stretches) && sel.Stretches[to].Series == series {
		to++
	}
	return sel.Stretches[from:to]
}

// wants reports whether sel wants a row.
func (c cuts) wants(sel *run.Selection, series uint32, at int64) bool {
	if !c.times.Contains(at) {
		return sel.Except
	}
	for _, x := range c.of(sel, series) {
		if x.Times.Contains(at) {
			return !sel.Except
		}
	}
	return sel.Except
}

// reach reports whether a stretch may hold one of times.
func (c cuts) reach(times []int64) bool {
	if c == nil {
		return false
	}
	lo, hi := times[0], times[0]
	for _, t := range times {
		lo, hi = min(lo, t), max(hi, t)
	}
	return c.times.Overlaps(table.TimeRange{Min: lo, Max: hi})
}

// A Series is what a snapshot knows of one of its series without looking at
// rows.
type Series struct {
	ID    uint32
	Key   []byte
	Times table.TimeRange // covers the rows of the snapshot
	Mixed bool            // it may have repeats or tombstones
}

// EachSeries calls f with the series that pass the key range and the tag
// predicates of req, in the order of their numbers.
func (s *Snapshot) EachSeries(req run.Request, f func(Series)) {
	q := &query{req: req}
	q.addTagPredicates()
	wanted := table.Bitmap(nil)
	if len(q.tagPredicates) > 0 || req.FirstKey != nil || req.EndKey != nil {
		q.index = s.index(req.Schema)
		wanted = table.NewBitmap(int(s.series))
		for _, rank := range q.selectSeries() {
			if id := q.index.order[rank]; id < s.series {
				wanted.Set(int(id))
			}
		}
	}
	for id := range s.series {
		if wanted.Get(int(id)) {
			x := s.at(id)
			f(Series{ID: id, Key: x.key, Times: table.TimeRange{Min: x.min.Load(), Max: x.max.Load()}, Mixed: x.mixed.Load()})
		}
	}
}
