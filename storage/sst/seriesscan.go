package sst

import (
	"context"
	"slices"
	"sort"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// How a scan finds its rows with a series index: the index says which series
// are wanted and where their rows are. The time column is read only for series
// of which some rows are outside the wanted times, and searched, since the
// times of a series ascend. No tag page is read.

// A seriesScan finds the rows of one scan.
type seriesScan struct {
	index *SeriesIndex
	sel   run.Selection
	times table.TimeRange

	keep   []table.TimeRange // scratch
	pieces []seriesPiece
}

// A seriesPiece is rows of one series in a row group.
type seriesPiece struct {
	span
	keep []table.TimeRange // the times that are wanted; nil: all rows
}

// needsSeries reports whether a scan is better off with the series index: it
// is unless only whole row groups of fields are wanted.
func (s *scan) needsSeries() bool {
	if s.req.Selection != nil || s.req.Identity || s.req.FirstKey != nil || s.req.EndKey != nil ||
		!s.req.Times.Covers(s.r.meta.Times) {
		return true
	}
	for i := range s.columns {
		if at := s.columns[i].column; at >= 0 && s.r.footer.info.Columns[at].Role == table.Tag {
			return true
		}
	}
	for i := range s.req.Predicates {
		if c := s.req.Schema.Column(s.req.Predicates[i].Column); c != nil && c.Role == table.Tag {
			return true
		}
	}
	return false
}

// openSeries loads the series index, if there is one and it is of use.
func (s *scan) openSeries(ctx context.Context) error {
	s.opened = true
	if !s.needsSeries() {
		return nil
	}
	x, err := s.r.Series(ctx, s.req.Stats)
	if err != nil || x == nil {
		return err
	}
	q := &seriesScan{index: x, times: s.req.Times, sel: run.Selection{Except: true}}
	if s.req.Selection != nil {
		q.sel = *s.req.Selection
	} else {
		q.sel.Series = s.r.Match(x, &s.req)
	}
	s.series = q
	s.rules = slices.DeleteFunc(s.rules[s.timeRules:], func(r rule) bool { // these are done by q
		return s.r.footer.info.Columns[r.column].Role == table.Tag
	})
	for i := range s.columns {
		out := &s.columns[i]
		for t := range x.tags {
			if x.tags[t].column == out.column {
				out.column, out.tag = -1, t+1
			}
		}
	}
	s.ident.series = x
	return nil
}

// collect finds the pieces of row group g, and returns them as spans.
func (q *seriesScan) collect(r *Reader, g int) (spans []span) {
	start := uint32(r.footer.starts[g])
	rows := uint32(r.footer.info.Groups[g].Rows)
	x := q.index
	q.pieces, q.keep = q.pieces[:0], q.keep[:0]
	s, at := x.at(start), 0
	if !q.sel.Except {
		at = sort.Search(len(q.sel.Stretches), func(i int) bool { return q.sel.Stretches[i].Series >= s })
	}
	for ; int(s) < x.Len() && x.starts[s] < start+rows; s++ {
		list := q.sel.Stretches
		if !q.sel.Except {
			if at == len(list) {
				break
			}
			if s = max(s, list[at].Series); x.starts[s] >= start+rows {
				break
			}
		} else if s = uint32(run.NextBit(q.sel.Series, int(s), x.Len())); int(s) == x.Len() || x.starts[s] >= start+rows {
			break
		}
		for at < len(list) && list[at].Series < s {
			at++
		}
		first := at
		for at < len(list) && list[at].Series == s {
			at++
		}
		p := seriesPiece{span: span{int(max(x.starts[s], start) - start), int(min(x.starts[s+1], start+rows) - start)}}
		all := x.times[s]
		if first == at && q.sel.Except && q.times.Covers(all) {
			q.pieces, spans = append(q.pieces, p), addSpan(spans, p.span)
			continue
		}
		from := len(q.keep)
		q.keep = q.sel.Keep(q.keep, s, list[first:at], all.Intersect(q.times))
		switch n := len(q.keep) - from; {
		case n == 0:
			continue
		case n > 1 || q.keep[from] != all:
			p.keep = q.keep[from:len(q.keep):len(q.keep)]
		}
		q.pieces, spans = append(q.pieces, p), addSpan(spans, p.span)
	}
	return spans
}

// cut returns the rows within spans of the pieces that collect found.
func (q *seriesScan) cut(ctx context.Context, g *groupReader, spans []span) (out []span, err error) {
	at := g.r.columnsOf(table.Timestamp)[0]
	c, err := g.column(at)
	if err != nil {
		return nil, err
	}
	var unsure []span
	q.eachPart(c.info, spans, func(page int, part span, keep []table.TimeRange) {
		if judgeTimes(c.info, page, keep) == someRows {
			unsure = addSpan(unsure, part)
		}
	})
	if err := g.want(at, unsure); err != nil {
		return nil, err
	}
	if err := g.fetch(ctx); err != nil {
		return nil, err
	}
	q.eachPart(c.info, spans, func(page int, part span, keep []table.TimeRange) {
		switch judgeTimes(c.info, page, keep) {
		case noRow:
			return
		case allRows:
			out = addSpan(out, part)
			return
		}
		pg, pageErr := g.page(at, page)
		if pageErr != nil {
			err = pageErr
			return
		}
		base := c.info.pages[page].first
		for _, times := range keep {
			out = addSpan(out, pg.within(times, part.from-base, part.to-base, base))
		}
	})
	return out, err
}

// eachPart calls f for each part of a piece that lies in spans and in one page
// of c, with the times of it that are wanted.
func (q *seriesScan) eachPart(c *chunkInfo, spans []span, f func(page int, part span, keep []table.TimeRange)) {
	page, next := 0, 0
	for i := range q.pieces {
		p := q.pieces[i]
		for next < len(spans) && spans[next].to <= p.from {
			next++
		}
		for k := next; k < len(spans) && spans[k].from < p.to; k++ {
			part := span{max(p.from, spans[k].from), min(p.to, spans[k].to)}
			for part.from < part.to {
				for c.pages[page].end <= part.from {
					page++
				}
				end := min(part.to, c.pages[page].end)
				f(page, span{part.from, end}, p.keep)
				part.from = end
			}
		}
	}
}

// judgeTimes tells from the bounds of a page of the time index whether its rows
// are in one of the ranges of keep, where nil is all times.
func judgeTimes(c *chunkInfo, page int, keep []table.TimeRange) verdict {
	if keep == nil {
		return allRows
	}
	if c.bounds == nil || !c.bounds[page].known {
		return someRows
	}
	all := table.TimeRange{Min: c.bounds[page].min.Int, Max: c.bounds[page].max.Int}
	judged := noRow
	for _, times := range keep {
		if times.Covers(all) {
			return allRows
		}
		if times.Overlaps(all) {
			judged = someRows
		}
	}
	return judged
}
