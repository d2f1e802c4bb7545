package storage

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// # How a scan is planned
//
//  1. Sources (files and memtables) without a time of the scan are left out.
//  2. The others are clustered: two sources are in one cluster if their times
//     and their keys overlap, or both overlap a third's, and so on. Only
//     within a cluster can two rows have one identity.
//  3. The times that one source of a large cluster has for itself become a
//     cluster of their own. (Flushes of data that arrives in order overlap at
//     one time only: that at which the memtables were sealed.)
//  4. A cluster of one source without repeats is read as it is, in parts. Any
//     other is cut by key into parts, each of which is merged.
//  5. In append tables every source is a cluster.

const (
	// morselRows is about how many rows a partition has: fewer are not worth
	// handing to another thread, more leave threads idle at the end.
	morselRows = 65_536

	// parallelOpens bounds the footers that one scan fetches at a time.
	parallelOpens = 8
)

// A source is a file or a memtable that a scan has to look at.
type source struct {
	memory *memtable.Snapshot
	file   *file
	reader *sst.Reader // of file; nil if it could not be opened

	times       table.TimeRange
	first, last []byte // keys, of a file
	rows        int64
	unique      bool // no two rows share an identity, and none is a tombstone
}

// A cluster is sources that are read together, between some times.
type cluster struct {
	sources []*source
	times   table.TimeRange
}

// span returns the times that rows of the cluster may have.
func (c *cluster) span() table.TimeRange {
	times := c.sources[0].times
	for _, s := range c.sources[1:] {
		times = times.Union(s.times)
	}
	return times.Intersect(c.times)
}

// share estimates how much of a source's rows lie within the cluster's times.
func (c *cluster) share(s *source) float64 {
	in := s.times.Intersect(c.times)
	return (float64(in.Max) - float64(in.Min) + 1) / (float64(s.times.Max) - float64(s.times.Min) + 1)
}

// A planner makes the partitions of one scan.
type planner struct {
	e     *Engine
	info  *table.Info
	spec  table.ScanSpec
	stats *table.ScanStats
	parts []table.Partition
}

// Scan plans a read and returns its partitions.
func (s *snapshot) Scan(ctx context.Context, spec table.ScanSpec) ([]table.Partition, error) {
	p := &planner{e: s.e, info: s.info, spec: spec, stats: spec.Stats}
	if p.stats == nil {
		p.stats = new(table.ScanStats)
	}
	if spec.Times.Empty() {
		return nil, nil
	}
	var clusters []cluster
	for i := range s.regions {
		clusters = append(clusters, p.cluster(p.sources(&s.regions[i]))...)
	}
	clusters = p.cutAtLimit(p.inOrder(clusters))
	if err := p.openFiles(ctx, clusters); err != nil {
		return nil, err
	}
	for _, c := range clusters {
		p.partition(c)
	}
	return p.parts, nil
}

// sources returns the region's files and memtables that may hold rows of the
// scan.
func (p *planner) sources(v *regionView) []*source {
	var sources []*source
	for _, f := range v.files.files {
		if !f.Times.Overlaps(p.spec.Times) {
			p.stats.FilesPruned.Add(1)
			continue
		}
		p.stats.Files.Add(1)
		sources = append(sources, &source{file: f, times: f.Times, first: f.FirstKey, last: f.LastKey,
			rows: f.Rows, unique: f.Distinct() && f.Deletes == 0})
	}
	for _, m := range v.memory {
		if m.Rows() > 0 && m.Times().Overlaps(p.spec.Times) {
			sources = append(sources, &source{memory: m, times: m.Times(), rows: int64(m.Rows()), unique: m.Unique()})
		}
	}
	return sources
}

// cluster groups the sources of one region.
func (p *planner) cluster(sources []*source) (clusters []cluster) {
	if p.info.Merge == table.Append {
		for _, s := range sources {
			clusters = append(clusters, cluster{[]*source{s}, p.spec.Times})
		}
		return clusters
	}
	slices.SortFunc(sources, func(a, b *source) int { return cmp.Compare(a.times.Min, b.times.Min) })
	for len(sources) > 0 {
		n, end := 1, sources[0].times.Max
		for n < len(sources) && sources[n].times.Min <= end {
			end = max(end, sources[n].times.Max)
			n++
		}
		for _, part := range p.splitByTime(sources[:n]) {
			for _, group := range splitByKey(part.sources) {
				clusters = append(clusters, cluster{group, part.times})
			}
		}
		sources = sources[n:]
	}
	return clusters
}

// splitByTime takes the times that one source has for itself out of a group
// that is sorted by start, where that is most of the source: the rest of it is
// then looked through for the few rows that others may share.
func (p *planner) splitByTime(sources []*source) (parts []cluster) {
	var rows int64
	for _, s := range sources {
		rows += s.rows
	}
	if len(sources) == 1 || rows < p.e.opts.MergeWholeRows {
		return []cluster{{sources, p.spec.Times}}
	}
	rest := p.spec.Times
	for i, own := range ownTimes(sources) {
		alone := cluster{sources[i : i+1], own}
		if own.Empty() || !sources[i].unique || alone.share(sources[i]) < 0.5 {
			continue
		}
		if own.Min > rest.Min {
			parts = p.addPart(parts, sources, table.TimeRange{Min: rest.Min, Max: own.Min - 1})
		}
		parts = p.addPart(parts, alone.sources, own)
		if own.Max == math.MaxInt64 {
			return parts
		}
		rest.Min = max(rest.Min, own.Max+1)
	}
	return p.addPart(parts, sources, rest)
}

// ownTimes returns for each of the sources, which are sorted by start, the
// times after all earlier ones have ended and before the next one starts.
func ownTimes(sources []*source) []table.TimeRange {
	times := make([]table.TimeRange, len(sources))
	end := int64(math.MinInt64) // of the sources before
	for i, s := range sources {
		own := s.times
		if i > 0 && end >= own.Min {
			own.Min = end
			if end < math.MaxInt64 {
				own.Min++
			} else {
				own = emptyRange
			}
		}
		if i+1 < len(sources) && sources[i+1].times.Min <= own.Max {
			own.Max = sources[i+1].times.Min
			if own.Max > math.MinInt64 {
				own.Max--
			} else {
				own = emptyRange
			}
		}
		times[i], end = own, max(end, s.times.Max)
	}
	return times
}

var emptyRange = table.TimeRange{Min: math.MaxInt64, Max: math.MinInt64}

// addPart adds those of the sources that have rows within times.
func (p *planner) addPart(parts []cluster, sources []*source, times table.TimeRange) []cluster {
	times = times.Intersect(p.spec.Times)
	if times.Empty() {
		return parts
	}
	part := cluster{times: times}
	for _, s := range sources {
		if s.times.Overlaps(times) {
			part.sources = append(part.sources, s)
		}
	}
	if len(part.sources) == 0 {
		return parts
	}
	return append(parts, part)
}

// splitByKey groups sources with overlapping times by their keys. A memtable
// may hold any key.
func splitByKey(sources []*source) [][]*source {
	if len(sources) == 1 || slices.ContainsFunc(sources, func(s *source) bool { return s.memory != nil }) {
		return [][]*source{sources}
	}
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b *source) int { return bytes.Compare(a.first, b.first) })
	var clusters [][]*source
	for len(sources) > 0 {
		n, end := 1, sources[0].last
		for n < len(sources) && bytes.Compare(sources[n].first, end) <= 0 {
			if bytes.Compare(sources[n].last, end) > 0 {
				end = sources[n].last
			}
			n++
		}
		clusters = append(clusters, sources[:n])
		sources = sources[n:]
	}
	return clusters
}

// inOrder sorts clusters as the reader will want their rows.
func (p *planner) inOrder(clusters []cluster) []cluster {
	slices.SortStableFunc(clusters, func(a, b cluster) int {
		if p.spec.Order == table.TimeDescending {
			return cmp.Compare(b.span().Max, a.span().Max)
		}
		return cmp.Compare(a.span().Min, b.span().Min)
	})
	return clusters
}

// cutAtLimit leaves out clusters that lie wholly behind enough rows. It only
// counts rows that are sure to be returned, and so does nothing where a
// predicate may drop some.
func (p *planner) cutAtLimit(clusters []cluster) []cluster {
	if p.spec.Limit <= 0 || p.spec.Order == table.Unordered || len(p.spec.Predicates) > 0 {
		return clusters
	}
	var sure int64
	covered := table.TimeRange{Min: 0, Max: -1}
	for i := range clusters {
		times := clusters[i].span()
		if sure >= int64(p.spec.Limit) && p.behind(times, covered) {
			p.countCut(clusters[:i], clusters[i:])
			return clusters[:i]
		}
		covered = covered.Union(times)
		sure += clusters[i].sureRows()
	}
	return clusters
}

// countCut counts the files that only the clusters behind the limit need.
func (p *planner) countCut(kept, cut []cluster) {
	needed := make(map[*file]bool)
	for _, c := range kept {
		for _, s := range c.sources {
			needed[s.file] = true
		}
	}
	for _, c := range cut {
		for _, s := range c.sources {
			if s.file != nil && !needed[s.file] {
				needed[s.file] = true
				p.stats.Files.Add(-1)
				p.stats.FilesPruned.Add(1)
			}
		}
	}
}

// behind reports whether every row of times comes after every row of covered,
// and so do the rows of all later clusters, in the order of the scan.
func (p *planner) behind(times, covered table.TimeRange) bool {
	if p.spec.Order == table.TimeDescending {
		return times.Max < covered.Min
	}
	return times.Min > covered.Max
}

// sureRows returns how many rows a cluster has at least.
func (c *cluster) sureRows() (n int64) {
	for _, s := range c.sources {
		if !s.unique {
			return 0
		}
		if c.times.Covers(s.times) {
			n = max(n, s.rows)
		}
	}
	return n
}

// openFiles reads the footers of all files that are to be scanned.
func (p *planner) openFiles(ctx context.Context, clusters []cluster) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelOpens)
	started := make(map[*source]bool)
	for _, c := range clusters {
		for _, s := range c.sources {
			if s.file == nil || started[s] {
				continue
			}
			started[s] = true
			g.Go(func() (err error) {
				s.reader, err = p.e.reader(ctx, s.file)
				if isDamage(err) {
					p.e.quarantine(s.file, err, p.stats)
					return nil
				}
				return err
			})
		}
	}
	return g.Wait()
}

// partition appends the partitions of one cluster.
func (p *planner) partition(c cluster) {
	alone := p.info.Merge == table.Append || len(c.sources) == 1 && c.sources[0].unique
	c.sources = slices.DeleteFunc(slices.Clone(c.sources), func(s *source) bool { return s.memory == nil && s.reader == nil })
	switch {
	case len(c.sources) == 0:
	case alone:
		p.passThrough(&c, c.sources[0])
	default:
		p.merge(&c)
	}
}

// request returns what the sources of a cluster are asked for.
func (p *planner) request(c *cluster) run.Request {
	return run.Request{Schema: p.info.Schema, Columns: p.spec.Columns, Times: c.times, Predicates: p.spec.Predicates, Stats: p.stats}
}

// passThrough reads one source as it is.
func (p *planner) passThrough(c *cluster, s *source) {
	req := p.request(c)
	req.Alone = true
	switch {
	case s.memory != nil && s.memory.Selective(req):
		p.add(s.rows, func() run.Source { return s.memory.Source(req) })
	case s.memory != nil:
		for first, end := range s.memory.Stretches(morselRows) {
			p.add(int64(end-first), func() run.Source { return s.memory.Arrival(req, first, end) })
		}
	default:
		groups := s.reader.RowGroups()
		for next := 0; next < len(groups); {
			first, rows := next, int64(0)
			for next < len(groups) && rows < morselRows {
				rows += groups[next].Rows
				next++
			}
			end := next
			p.add(rows, func() run.Source { return p.scanFile(s, req, first, end) })
		}
	}
}
