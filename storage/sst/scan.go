package sst

import (
	"context"
	"slices"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// How a scan reads a row group:
//
//  1. The group's time and key range, the statistics of its chunks and the
//     bloom filters say whether it can hold a row at all.
//  2. The page indexes leave spans of rows that may pass.
//  3. The columns of the conditions are read in those spans, one after the
//     other, each leaving fewer and exact spans.
//  4. The other columns are read where spans are left. Batches are views of
//     the decoded pages; only spans too short for that are copied together.

// Scan returns the rows of row groups [first, end) that req asks for. A request
// with a Selection needs the series index that this was made with; any other
// is answered faster with it, and it may be nil.
func (r *Reader) Scan(req run.Request, series *SeriesIndex, first, end int) run.Source {
	s := &scan{r: r, req: req, viewRows: defaultViewRows, group: first, end: end}
	s.prepare()
	s.useSeries(series)
	return s
}

const (
	// defaultViewRows is the length from which a span becomes a batch of its
	// own.
	defaultViewRows = 512
	// gatherRows and gatherBytes end a batch that is copied together.
	gatherRows  = 8192
	gatherBytes = 4 << 20
)

// A scan is a Source over row groups of one file.
type scan struct {
	r          *Reader
	req        run.Request
	group, end int
	viewRows   int
	err        error       // of the request
	series     *seriesScan // nil: without the series index

	rules     []rule
	timeRules int // how many of rules, the first ones, are the request's times
	columns   []output

	// The row group at hand.
	g       *groupReader // nil: none
	spans   []span
	ident   identity
	batch   run.Batch
	build   *run.Builder
	scratch table.Vector // of the columns of conditions
	held    bool         // batch is a piece that waits until build was handed out
}

func (s *scan) prepare() {
	info := &s.r.footer.info
	types := make([]table.Type, 0, len(s.req.Columns))
	for _, id := range s.req.Columns {
		out := output{column: -1}
		if at, ok := s.r.footer.columns[id]; ok {
			out.column, out.typ = at, info.Columns[at].Type
		}
		c := s.req.Schema.Column(id)
		switch {
		case c == nil && out.column < 0:
			s.err = fault.Errorf(fault.Internal, "scan of %s: column %d is not in the schema", s.r.key, id)
		case c != nil && out.column >= 0 && c.Type != out.typ:
			s.err = fault.Errorf(fault.Unsupported, "sst %s stores column %q as %s, and reading it as %s is not supported",
				s.r.key, c.Name, out.typ, c.Type)
		case c != nil:
			out.typ = c.Type
		}
		s.columns = append(s.columns, out)
		types = append(types, out.typ)
	}
	s.build = run.NewBuilder(types, s.req.Identity)
	rules, never := s.r.rules(&s.req)
	if never {
		s.group = s.end
	}
	s.rules = s.r.timeRules(s.req.Times)
	s.timeRules = len(s.rules)
	s.rules = append(s.rules, rules...)
	if s.req.Identity {
		s.ident.init(s.r)
	}
}

// Distinct reports whether the file is known to have no two rows of one
// identity.
func (s *scan) Distinct() bool { return s.r.meta.Distinct() }

// Close releases the pages of the row group at hand.
func (s *scan) Close() { s.group, s.g, s.spans, s.held = s.end, nil, nil, false }

// Next returns the next batch, or nil at the end.
func (s *scan) Next(ctx context.Context) (b *run.Batch, err error) {
	if s.err != nil {
		return nil, s.err
	}
	defer s.r.guard(s.r.footer.base, &err)
	if s.held {
		s.held = false
		return s.emit(&s.batch), nil
	}
	for {
		if len(s.spans) == 0 {
			// Pieces of different row groups have different Dicts and are
			// better not copied together.
			if s.build.Len() > 0 {
				return s.emit(s.build.Take()), nil
			}
			if more, err := s.nextGroup(ctx); err != nil || !more {
				if err == nil {
					s.release()
				}
				return nil, err
			}
			continue
		}
		if err := s.cut(); err != nil {
			return nil, err
		}
		if s.batch.Len >= s.viewRows || len(s.spans) == 0 && s.build.Len() == 0 {
			if s.build.Len() > 0 {
				s.held = true
				return s.emit(s.build.Take()), nil
			}
			return s.emit(&s.batch), nil
		}
		s.build.Append(&s.batch, 0, s.batch.Len)
		if s.build.Len() >= gatherRows || s.build.Bytes() >= gatherBytes {
			return s.emit(s.build.Take()), nil
		}
	}
}

func (s *scan) emit(b *run.Batch) *run.Batch {
	s.req.Stats.RowsRead.Add(int64(b.Len))
	return b
}

// nextGroup opens the next row group that has rows, and reports whether there
// is one.
func (s *scan) nextGroup(ctx context.Context) (bool, error) {
	for s.g = nil; s.group < s.end; s.group++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.req.Stats.RowGroups.Add(1)
		g := newGroupReader(s.r, s.group, s.req.Stats)
		spans, err := s.find(ctx, g)
		if err != nil {
			return false, err
		}
		if len(spans) == 0 {
			continue
		}
		if err := s.wantOutputs(g, spans); err != nil {
			return false, err
		}
		if err := g.fetch(ctx); err != nil {
			return false, err
		}
		s.g, s.spans = g, spans
		for i := range s.columns {
			s.columns[i].page = 0
		}
		s.ident.begin(g)
		s.group++
		return true, nil
	}
	return false, nil
}

// find returns the spans of rows that pass, steps 1 to 3.
func (s *scan) find(ctx context.Context, g *groupReader) ([]span, error) {
	info := &s.r.footer.info.Groups[s.group]
	spans, err := s.prune(ctx, g, info)
	if err != nil {
		return nil, err
	}
	if len(spans) == 0 {
		s.req.Stats.RowGroupsPruned.Add(1)
		s.countPruned(g, nil)
		return nil, nil
	}
	s.countPruned(g, spans)
	if s.series != nil {
		if spans, err = s.series.cut(ctx, g, spans); err != nil || len(spans) == 0 {
			return nil, err
		}
	}
	for i := range s.rules {
		if spans, err = s.filter(ctx, g, &s.rules[i], spans); err != nil || len(spans) == 0 {
			return nil, err
		}
	}
	if s.series != nil {
		return spans, nil
	}
	return s.trimKeys(ctx, g, info, spans)
}

// CountPruned counts row groups [first, end), and about their pages, as ones
// that a scan could leave out.
func (r *Reader) CountPruned(req *run.Request, first, end int) {
	for g := first; g < end; g++ {
		req.Stats.RowGroups.Add(1)
		req.Stats.RowGroupsPruned.Add(1)
		req.Stats.PagesPruned.Add(int64(len(req.Columns) * len(r.footer.info.Groups[g].PageKeys)))
	}
}

// countPruned counts the pages of the requested columns outside spans.
func (s *scan) countPruned(g *groupReader, spans []span) {
	for i := range s.columns {
		if s.columns[i].column < 0 {
			continue // tags of the series index among them
		}
		c, err := g.column(s.columns[i].column)
		if err != nil {
			continue // found again where the column is read
		}
		left, last := 0, -1
		_ = c.info.cutSpans(spans, func(p int, _ span) error {
			if p != last {
				left, last = left+1, p
			}
			return nil
		})
		s.req.Stats.PagesPruned.Add(int64(len(c.info.pages) - left))
	}
}

// prune returns the spans that footer and bloom filters leave.
func (s *scan) prune(ctx context.Context, g *groupReader, info *groupInfo) ([]span, error) {
	if !info.Times.Overlaps(s.req.Times) || !keysOverlap(&s.req, info.FirstKey, info.LastKey) {
		return nil, nil
	}
	var spans []span
	if s.series != nil {
		spans = s.series.collect(s.r, s.group)
	} else {
		spans = s.pruneKeys(info)
	}
	if len(spans) == 0 {
		return nil, nil
	}
	for i := range s.rules {
		rule := &s.rules[i]
		c, err := g.column(rule.column)
		if err != nil {
			return nil, err
		}
		if rule.judge(&c.info.total) == noRow {
			return nil, nil
		}
		if c.info.bounds != nil {
			spans = rule.prunePages(c.info, spans)
		}
		if len(spans) == 0 {
			return nil, nil
		}
	}
	for i := range s.rules {
		rule := &s.rules[i]
		if !rule.bloom {
			continue
		}
		b, err := g.bloom(ctx, rule.column)
		if err != nil {
			return nil, err
		}
		if b != nil && rule.excludedBy(b.blocks) {
			return nil, nil
		}
	}
	return spans, nil
}

// prunePages leaves out the pages whose bounds rule out every row.
func (r *rule) prunePages(c *chunkInfo, spans []span) (out []span) {
	_ = c.cutSpans(spans, func(p int, part span) error {
		if r.judge(&c.bounds[p]) != noRow {
			out = addSpan(out, part)
		}
		return nil
	})
	return out
}

// filter leaves the rows of spans that pass a rule.
func (s *scan) filter(ctx context.Context, g *groupReader, r *rule, spans []span) (out []span, err error) {
	c, err := g.column(r.column)
	if err != nil {
		return nil, err
	}
	if r.judge(&c.info.total) == allRows {
		return spans, nil
	}
	sure := func(p int) bool { return c.info.bounds != nil && r.judge(&c.info.bounds[p]) == allRows }
	var unsure []span
	_ = c.info.cutSpans(spans, func(p int, part span) error {
		if !sure(p) {
			unsure = append(unsure, part)
		}
		return nil
	})
	if err := g.want(r.column, unsure); err != nil {
		return nil, err
	}
	if err := g.fetch(ctx); err != nil {
		return nil, err
	}
	err = c.info.cutSpans(spans, func(p int, part span) error {
		if sure(p) {
			out = addSpan(out, part)
			return nil
		}
		pg, err := g.page(r.column, p)
		if err != nil {
			return err
		}
		base := c.info.pages[p].first
		v := pg.rows(&s.scratch, part.from-base, part.to-base)
		out = r.filter(out, &v, 0, v.Len, part.from)
		return nil
	})
	return out, err
}

func (s *scan) wantOutputs(g *groupReader, spans []span) error {
	for i := range s.columns {
		if at := s.columns[i].column; at >= 0 {
			if err := g.want(at, spans); err != nil {
				return err
			}
		}
	}
	if s.req.Identity {
		return s.ident.want(g, spans)
	}
	return nil
}

// cut makes the next piece, which lies in one page of every column, the batch.
func (s *scan) cut() error {
	sp := &s.spans[0]
	to := sp.to
	for i := range s.columns {
		if out := &s.columns[i]; out.column >= 0 {
			to = min(to, out.seek(s.g, sp.from))
		}
	}
	if s.req.Identity {
		to = min(to, s.ident.seek(s.g, sp.from))
	}
	switch {
	case len(s.columns) == 0 && !s.req.Identity:
		to = min(to, sp.from+maxCount)
	default:
		to = min(to, sp.from+maxExpand)
	}
	b := &s.batch
	b.Len, b.Columns = to-sp.from, b.Columns[:0]
	for i := range s.columns {
		if out := &s.columns[i]; out.tag > 0 {
			first := uint32(s.r.footer.starts[s.g.group])
			b.Columns = append(b.Columns, s.series.index.fill(out.memory(), out.tag-1, first+uint32(sp.from), first+uint32(to)))
			continue
		}
		v, err := s.columns[i].vector(s.g, sp.from, to)
		if err != nil {
			return err
		}
		b.Columns = append(b.Columns, v)
	}
	if s.req.Identity {
		if err := s.ident.fill(s.g, b, sp.from, to); err != nil {
			return err
		}
	}
	if sp.from = to; sp.from == sp.to {
		s.spans = s.spans[1:]
	}
	return nil
}

const (
	// maxCount bounds batches without columns.
	maxCount = 1 << 20
	// maxExpand bounds other batches, so that a buffer for each of some tens of
	// columns stays in the processor's cache. It is a chunk of DuckDB's, and a
	// fifth of a page: no chunk is filled in part.
	maxExpand = 2048
)

var _ run.Distinct = (*scan)(nil)

// columnsOf returns the positions of the file's columns with a role.
func (r *Reader) columnsOf(role table.Role) (at []int) {
	for i, c := range r.footer.info.Columns {
		if c.Role == role {
			at = append(at, i)
		}
	}
	return slices.Clip(at)
}
