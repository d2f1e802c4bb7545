package storage

import (
	"bytes"
	"cmp"
	"context"
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
//  3. A cluster of one source without repeats is read as it is, in parts. Of
//     any other, what conflict.go finds is merged, and all else is read as it
//     is. If a file of the cluster has no series index, all of it is merged.
//     What is merged is cut by key into parts.
//  4. In append tables every source is a cluster.

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

	index     *sst.SeriesIndex // of file; nil if it has none
	match     table.Bitmap     // the series of index that pass the predicates on tags; nil: all
	stretches []run.Stretch    // what cannot be read without a merge; not set where all is merged
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
	var clusters [][]*source
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
func (p *planner) cluster(sources []*source) [][]*source {
	if p.info.Merge == table.Append {
		clusters := make([][]*source, len(sources))
		for i, s := range sources {
			clusters[i] = []*source{s}
		}
		return clusters
	}
	slices.SortFunc(sources, func(a, b *source) int { return cmp.Compare(a.times.Min, b.times.Min) })
	var clusters [][]*source
	for len(sources) > 0 {
		n, end := 1, sources[0].times.Max
		for n < len(sources) && sources[n].times.Min <= end {
			end = max(end, sources[n].times.Max)
			n++
		}
		clusters = append(clusters, splitByKey(sources[:n])...)
		sources = sources[n:]
	}
	return clusters
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

func clusterTimes(c []*source) table.TimeRange {
	times := c[0].times
	for _, s := range c[1:] {
		times = times.Union(s.times)
	}
	return times
}

// inOrder sorts clusters as the reader will want their rows.
func (p *planner) inOrder(clusters [][]*source) [][]*source {
	slices.SortStableFunc(clusters, func(a, b []*source) int {
		if p.spec.Order == table.TimeDescending {
			return cmp.Compare(clusterTimes(b).Max, clusterTimes(a).Max)
		}
		return cmp.Compare(clusterTimes(a).Min, clusterTimes(b).Min)
	})
	return clusters
}

// cutAtLimit leaves out clusters that lie wholly behind enough rows. It only
// counts rows that are sure to be returned, and so does nothing where a
// predicate may drop some.
func (p *planner) cutAtLimit(clusters [][]*source) [][]*source {
	if p.spec.Limit <= 0 || p.spec.Order == table.Unordered || len(p.spec.Predicates) > 0 {
		return clusters
	}
	var sure int64
	covered := table.TimeRange{Min: 0, Max: -1}
	for i, c := range clusters {
		times := clusterTimes(c)
		if sure >= int64(p.spec.Limit) && p.behind(times, covered) {
			for _, left := range clusters[i:] {
				for _, s := range left {
					if s.file != nil {
						p.stats.Files.Add(-1)
						p.stats.FilesPruned.Add(1)
					}
				}
			}
			return clusters[:i]
		}
		covered = covered.Union(times)
		if p.spec.Times.Covers(times) {
			sure += sureRows(c)
		}
	}
	return clusters
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
func sureRows(c []*source) (n int64) {
	for _, s := range c {
		if !s.unique {
			return 0
		}
		n = max(n, s.rows)
	}
	return n
}

// openFiles reads the footers of all files that are to be scanned.
func (p *planner) openFiles(ctx context.Context, clusters [][]*source) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelOpens)
	for _, c := range clusters {
		for _, s := range c {
			if s.file == nil {
				continue
			}
			g.Go(func() (err error) {
				s.reader, err = p.e.reader(ctx, s.file)
				if isDamage(err) {
					p.e.noteLoss(s.file, err, p.stats)
					return nil
				}
				if err != nil {
					return err
				}
				return p.openSeries(ctx, s)
			})
		}
	}
	return g.Wait()
}

// openSeries loads the series index of a file that was opened. Without it the
// file can still be read.
func (p *planner) openSeries(ctx context.Context, s *source) (err error) {
	s.index, err = s.reader.Series(ctx, p.stats)
	if isDamage(err) {
		p.e.noteDamage(s.file, err) // no row is lost by it
		s.reader.IgnoreSeries()
		return nil
	}
	if s.index != nil {
		req := p.request()
		s.match = s.reader.Match(s.index, &req)
	}
	return err
}

// partition appends the partitions of one cluster.
func (p *planner) partition(c []*source) {
	readable := c[:0:0]
	for _, s := range c {
		if s.memory != nil || s.reader != nil {
			readable = append(readable, s)
		}
	}
	switch {
	case len(readable) == 0:
	case p.info.Merge == table.Append || len(c) == 1 && c[0].unique:
		p.passThrough(readable[0])
	case !p.bySeries(readable):
		p.merge(readable)
	}
}

// request returns what a source is asked for.
func (p *planner) request() run.Request {
	return run.Request{Schema: p.info.Schema, Columns: p.spec.Columns, Times: p.spec.Times, Predicates: p.spec.Predicates, Stats: p.stats}
}

// passThrough reads one source as it is.
func (p *planner) passThrough(s *source) {
	req := p.request()
	req.Alone, req.Selection = true, s.selection()
	switch {
	case s.memory != nil && s.memory.Selective(req):
		p.add(s.rows, func() run.Source { return s.memory.Source(req) })
	case s.memory != nil:
		for first, end := range s.memory.Stretches(morselRows) {
			p.add(int64(end-first), func() run.Source { return s.memory.Arrival(req, first, end) })
		}
	default:
		p.passFile(s, req)
	}
}
