package storage

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/varvedb/varve/storage/merge"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// bySeries plans a cluster of which every file has a series index: what stands
// alone is read source by source, and only stretches are merged. It returns
// false if some file has none.
func (p *planner) bySeries(sources []*source) bool {
	for _, s := range sources {
		if s.file != nil && s.index == nil {
			return false
		}
	}
	p.findStretches(sources)
	ordered := slices.Clone(sources)
	if p.spec.Order == table.TimeDescending {
		slices.SortStableFunc(ordered, func(a, b *source) int { return cmp.Compare(b.times.Max, a.times.Max) })
	}
	for _, s := range ordered {
		p.passThrough(s)
	}
	p.mergeStretches(sources)
	return true
}

// selection returns what passThrough reads of a source, nil for all.
func (s *source) selection() *run.Selection {
	if s.match == nil && len(s.stretches) == 0 {
		return nil
	}
	return &run.Selection{Series: s.match, Stretches: s.stretches, Except: true}
}

// wantedRows returns about how many rows of each row group of a file are
// wanted, going by series and their times.
func (p *planner) wantedRows(s *source, groups []sst.RowGroup) []int64 {
	rows := make([]int64, len(groups))
	whole := s.index == nil || s.match == nil && p.spec.Times.Covers(s.times)
	series, start := uint32(0), int64(0)
	for i, g := range groups {
		if whole {
			rows[i] = g.Rows
			continue
		}
		end := start + g.Rows
		for {
			series = uint32(run.NextBit(s.match, int(series), s.index.Len()))
			if int(series) == s.index.Len() {
				break
			}
			first, last := s.index.Rows(series)
			if s.index.Times(series).Overlaps(p.spec.Times) {
				rows[i] += max(0, min(int64(last), end)-max(int64(first), start))
			}
			if int64(last) > end {
				break
			}
			series++
		}
		start = end
	}
	return rows
}

// passFile reads row groups of a file as they are.
func (p *planner) passFile(s *source, req run.Request) {
	groups := s.reader.RowGroups()
	wanted := p.wantedRows(s, groups)
	for next := 0; next < len(groups); {
		first, rows := next, int64(0)
		for next < len(groups) && rows < morselRows {
			rows += wanted[next]
			next++
		}
		end := next
		if rows == 0 {
			s.reader.CountPruned(&req, first, end)
			continue
		}
		p.add(rows, func() run.Source { return &tolerant{p: p, s: s, req: req, next: first, end: end, wanted: wanted} })
	}
}

// mergeStretches merges the stretches of sources, cut by key into partitions.
func (p *planner) mergeStretches(sources []*source) {
	var parts []*source
	var weights []weight
	var rows int64
	for _, s := range sources {
		s.stretches = s.wantedStretches(p.spec.Times)
		if len(s.stretches) == 0 {
			continue
		}
		list, n := p.stretchWeights(s)
		parts, weights, rows = append(parts, s), append(weights, list...), rows+n
	}
	if len(parts) == 0 {
		return
	}
	sortWeights(weights)
	cuts := cutKeys(weights, morselRows)
	perPart := rows / int64(len(cuts)+1)
	var first []byte
	for i := range len(cuts) + 1 {
		var end []byte
		if i < len(cuts) {
			end = cuts[i]
		}
		from, to := first, end
		p.add(perPart, func() run.Source { return p.mergeStretchPart(parts, from, to) })
		first = end
	}
}

// wantedStretches returns the stretches of series and times that are wanted.
func (s *source) wantedStretches(times table.TimeRange) []run.Stretch {
	var out []run.Stretch
	for _, x := range s.stretches {
		if x.Times.Overlaps(times) && (s.memory != nil || s.match.Get(int(x.Series))) {
			out = append(out, x)
		}
	}
	return out
}

// stretchRows returns about how many rows of count ones with times all are in
// times.
func stretchRows(count int64, all, times table.TimeRange) int64 {
	share := (float64(times.Max) - float64(times.Min) + 1) / (float64(all.Max) - float64(all.Min) + 1)
	return 1 + int64(math.Min(share, 1)*float64(count))
}

// stretchWeights returns where the rows of a source's stretches are among the
// keys, and how many there are about.
func (p *planner) stretchWeights(s *source) (weights []weight, rows int64) {
	if s.memory != nil {
		each := int64(s.memory.Rows()) / int64(max(1, s.memory.Series()))
		for _, x := range s.stretches {
			rows += stretchRows(each, s.times, x.Times)
		}
		if rows < morselRows {
			return []weight{{rows: rows}}, rows
		}
		keys := s.memory.SplitKeys(p.info.Schema, morselRows)
		share := rows / int64(len(keys)+1)
		weights = append(weights, weight{rows: share})
		for _, k := range keys {
			weights = append(weights, weight{k, share})
		}
		return weights, rows
	}
	for _, x := range s.stretches {
		first, end := s.index.Rows(x.Series)
		n := stretchRows(int64(end-first), s.index.Times(x.Series), x.Times)
		if len(weights) == 0 || weights[len(weights)-1].rows+n > morselRows/8 {
			weights = append(weights, weight{key: s.index.AppendKey(nil, x.Series)})
		}
		weights[len(weights)-1].rows += n
		rows += n
	}
	return weights, rows
}

// mergeStretchPart merges the stretches of series with keys in [first, end).
func (p *planner) mergeStretchPart(sources []*source, first, end []byte) run.Source {
	req := p.request()
	opts := merge.Options{Request: req, Mode: p.info.Merge}
	var parts []run.Source
	for _, s := range sources {
		ask := merge.SourceRequest(req)
		if s.memory != nil {
			ask.FirstKey, ask.EndKey = first, end
			ask.Selection = &run.Selection{Stretches: s.stretches}
			parts = append(parts, s.memory.Source(ask))
			continue
		}
		list := s.stretches
		if first != nil {
			list = list[stretchesBefore(list, s.index.Search(first)):]
		}
		if end != nil {
			list = list[:stretchesBefore(list, s.index.Search(end))]
		}
		if len(list) > 0 {
			ask.Selection = &run.Selection{Stretches: list}
			lo, hi := groupsOfRows(s, list)
			parts = append(parts, p.scanFile(s, ask, lo, hi))
		}
	}
	return merge.New(parts, opts)
}

// stretchesBefore returns how many of list are of series before the given one.
func stretchesBefore(list []run.Stretch, series uint32) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Series >= series })
}

// groupsOfRows returns the row groups with rows of the series of list.
func groupsOfRows(s *source, list []run.Stretch) (lo, hi int) {
	first, _ := s.index.Rows(list[0].Series)
	_, end := s.index.Rows(list[len(list)-1].Series)
	start := int64(0)
	for i, g := range s.reader.RowGroups() {
		if start+g.Rows <= int64(first) {
			lo = i + 1
		}
		if start < int64(end) {
			hi = i + 1
		}
		start += g.Rows
	}
	return lo, hi
}

func countBits(b table.Bitmap) (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
