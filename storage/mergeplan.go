package storage

import (
	"bytes"
	"slices"

	"github.com/varvedb/varve/storage/merge"
	"github.com/varvedb/varve/storage/run"
)

// merge reads overlapping sources, cut by key into partitions.
func (p *planner) merge(sources []*source) {
	var rows int64
	for _, s := range sources {
		rows += s.rows
	}
	cuts := cutKeys(p.weights(sources), morselRows)
	perPart := rows / int64(len(cuts)+1)
	var first []byte
	for i := range len(cuts) + 1 {
		var end []byte
		if i < len(cuts) {
			end = cuts[i]
		}
		from, to := first, end
		p.add(perPart, func() run.Source { return p.mergePart(sources, from, to) })
		first = end
	}
}

// mergePart merges the rows with keys in [first, end).
func (p *planner) mergePart(sources []*source, first, end []byte) run.Source {
	req := p.request()
	req.FirstKey, req.EndKey = first, end
	opts := merge.Options{Request: req, Mode: p.info.Merge}
	ask := merge.SourceRequest(req)
	var parts []run.Source
	for _, s := range sources {
		if s.memory != nil {
			parts = append(parts, s.memory.Source(ask))
			continue
		}
		if lo, hi := groupsOf(s, first, end); lo < hi {
			parts = append(parts, p.scanFile(s, ask, lo, hi))
		}
	}
	return merge.New(parts, opts)
}

// groupsOf returns the row groups of a file with keys in [first, end).
func groupsOf(s *source, first, end []byte) (lo, hi int) {
	groups := s.reader.RowGroups()
	for lo < len(groups) && first != nil && bytes.Compare(groups[lo].LastKey, first) < 0 {
		lo++
	}
	hi = lo
	for hi < len(groups) && (end == nil || bytes.Compare(groups[hi].FirstKey, end) < 0) {
		hi++
	}
	return lo, hi
}

// A weight says that about rows rows have keys from key on, up to the next
// weight of the same source.
type weight struct {
	key  []byte
	rows int64
}

func (p *planner) weights(sources []*source) []weight {
	var weights []weight
	for _, s := range sources {
		if s.memory != nil {
			keys := s.memory.SplitKeys(p.info.Schema, morselRows)
			each := s.rows / int64(len(keys)+1)
			weights = append(weights, weight{rows: each})
			for _, k := range keys {
				weights = append(weights, weight{k, each})
			}
			continue
		}
		for _, g := range s.reader.RowGroups() {
			weights = append(weights, weight{g.FirstKey, g.Rows})
		}
	}
	sortWeights(weights)
	return weights
}

func sortWeights(weights []weight) {
	slices.SortFunc(weights, func(a, b weight) int { return bytes.Compare(a.key, b.key) })
}

// cutKeys returns ascending keys that cut the weights into parts of at least
// rows rows.
func cutKeys(weights []weight, rows int64) [][]byte {
	var cuts [][]byte
	var last []byte
	sum := int64(0)
	for _, w := range weights {
		if sum >= rows && bytes.Compare(w.key, last) > 0 {
			cuts = append(cuts, w.key)
			last, sum = w.key, 0
		}
		sum += w.rows
	}
	return cuts
}
