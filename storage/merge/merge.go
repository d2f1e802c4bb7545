// Package merge makes one sorted stream of rows out of several, and of several
// versions of a row one.
//
// How it works:
//
//  1. Each source stands at its next row. A heap orders them by key, time,
//     and then newest first.
//  2. The rows of the first source up to the identity at which the second
//     stands belong to nobody else. They are taken in one piece, found by
//     galloping, and become a batch that is a view of the source's own if the
//     piece is long; short pieces are copied together.
//  3. Where two stand at one identity, its versions are resolved row by row.
//
// A source's batch ends when its Next is called, so a view is handed out
// before its source moves on.
package merge

import (
	"bytes"
	"context"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// Options says what New makes.
type Options struct {
	Request run.Request     // what the merged Source answers
	Mode    table.MergeMode // what becomes of several rows with one identity

	// KeepTombstones keeps the newest tombstone of an identity, for a file
	// that is not the oldest: it still hides rows elsewhere. Without it
	// tombstones hide what is older here, and are gone.
	KeepTombstones bool
}

// SourceRequest returns what the sources of a merge that answers req must be
// asked for.
func SourceRequest(req run.Request) run.Request {
	req.Identity, req.Alone = true, false
	return req
}

const (
	// defaultViewRows is the length from which a piece becomes a batch of its
	// own.
	defaultViewRows = 256
	// gatherRows and gatherBytes end a batch that is copied together.
	gatherRows  = 8192
	gatherBytes = 4 << 20
)

// New merges sources that answer SourceRequest(opts.Request) and takes them
// over: closing the merge closes them. Where sequences are equal, a later
// source is newer. A single source is legal, and has its own repeats merged.
func New(sources []run.Source, opts Options) run.Source {
	m := &merger{opts: opts, viewRows: defaultViewRows, sources: sources, mask: make([]bool, len(opts.Request.Columns))}
	for i, id := range opts.Request.Columns {
		c := opts.Request.Schema.Column(id)
		m.mask[i] = c != nil && c.Role == table.Field
	}
	m.build = run.NewBuilder(run.Types(&opts.Request), opts.Request.Identity)
	for i, s := range sources {
		d, ok := s.(run.Distinct)
		m.cursors = append(m.cursors, &cursor{source: s, rank: i, distinct: ok && d.Distinct(), ids: &m.ids})
	}
	return m
}

// A merger is the merged Source.
type merger struct {
	opts     Options
	viewRows int
	sources  []run.Source
	cursors  []*cursor // to be loaded and put into the heap
	heap     cursorHeap
	mask     []bool // columns that last_non_null merges

	build   *run.Builder
	view    run.Batch
	pending piece // waits until build was handed out
	out     run.Batch

	// The identity resolved last: what follows of it is older.
	resolved struct {
		any  bool
		key  []byte
		id   uint64 // of the key, as cursors have it
		time int64
	}
	ids uint64 // the last one given to a cursor
}

// A piece is consecutive rows of a cursor's batch that go out as they are.
type piece struct {
	c        *cursor
	from, to int
}

// Distinct reports that no two rows share an identity, which holds unless the
// table keeps all rows or a tombstone may stay below a row.
func (m *merger) Distinct() bool {
	return m.opts.Mode == table.LastRow || m.opts.Mode == table.LastNonNull && !m.opts.KeepTombstones
}

// Close closes the sources.
func (m *merger) Close() {
	for _, s := range m.sources {
		s.Close()
	}
	m.heap, m.cursors, m.pending = nil, nil, piece{}
}

// Next returns the next batch, or nil at the end.
func (m *merger) Next(ctx context.Context) (*run.Batch, error) {
	if m.pending.c != nil {
		return m.emitView(), nil
	}
	if err := m.start(ctx); err != nil {
		return nil, err
	}
	for {
		if m.pending.c != nil {
			return m.emitView(), nil
		}
		if len(m.heap) == 0 {
			if m.build.Len() > 0 {
				return m.emitBuilt(), nil
			}
			return nil, nil
		}
		if err := m.step(ctx); err != nil {
			return nil, err
		}
		full := m.build.Len() >= gatherRows || m.build.Bytes() >= gatherBytes
		if m.build.Len() > 0 && (full || m.pending.c != nil) {
			return m.emitBuilt(), nil
		}
	}
}

// start reads the first batch of each source, and the next one of a source of
// whose last batch a view has been out since the last Next.
func (m *merger) start(ctx context.Context) error {
	for len(m.cursors) > 0 {
		c := m.cursors[len(m.cursors)-1]
		ok, err := c.load(ctx)
		if err != nil {
			return err
		}
		m.cursors = m.cursors[:len(m.cursors)-1]
		if ok {
			m.heap.push(c)
		}
	}
	return nil
}

func (m *merger) emitBuilt() *run.Batch {
	return m.strip(m.build.Take())
}

func (m *merger) emitView() *run.Batch {
	p := m.pending
	m.pending = piece{}
	p.c.batch.Slice(p.from, p.to, &m.view)
	return m.strip(&m.view)
}

// strip removes the identity where nobody asked for it.
func (m *merger) strip(b *run.Batch) *run.Batch {
	if m.opts.Request.Identity {
		return b
	}
	m.out = run.Batch{Len: b.Len, Columns: b.Columns}
	return &m.out
}

// step takes the next piece or resolves the next identity.
func (m *merger) step(ctx context.Context) error {
	c := m.heap.pop()
	if m.isResolved(c) { // a version older than one resolved before
		return m.skip(ctx, c)
	}
	end := c.batch.Len
	if len(m.heap) > 0 {
		end = c.before(m.heap[0])
	}
	end = m.plain(c, end)
	if end > c.row {
		m.take(c, end)
		return m.advance(ctx, c)
	}
	return m.resolve(ctx, c)
}

// plain returns where the rows from c.row on, up to end, stop being ones that
// go out as they are: the identity of a repeat begins, or a tombstone is met.
func (m *merger) plain(c *cursor, end int) int {
	if m.opts.Mode != table.Append {
		end = c.unrepeated(end, m.opts.Mode == table.LastNonNull)
	}
	if c.batch.Ops == nil || m.opts.Mode == table.LastRow && m.opts.KeepTombstones {
		return end
	}
	for i := c.row; i < end; i++ {
		if c.batch.Ops[i] == table.Delete {
			return i
		}
	}
	return end
}

// take puts out rows up to end, as a view if they are many.
func (m *merger) take(c *cursor, end int) {
	from := c.row
	if end-from >= m.viewRows {
		m.pending = piece{c, from, end}
	} else {
		m.build.AppendLater(c.batch, from, end)
	}
	c.seek(end - 1)
	m.setResolved(c)
	c.seek(end)
}

// advance puts c back to the heap. If its batch is used up, the next one is
// loaded, or if a view of the old one is about to go out, will be.
func (m *merger) advance(ctx context.Context, c *cursor) error {
	if c.row < c.batch.Len {
		m.heap.push(c)
		return nil
	}
	if m.pending.c == c {
		m.cursors = append(m.cursors, c)
		return nil
	}
	m.build.Flush() // it may have rows of the old batch
	ok, err := c.load(ctx)
	if err != nil {
		m.cursors = append(m.cursors, c) // so that it is not lost if called again
		return err
	}
	if ok {
		m.heap.push(c)
	}
	return nil
}

func (m *merger) setResolved(c *cursor) {
	r := &m.resolved
	r.time = c.time()
	if r.any && r.id != 0 && r.id == c.id {
		return
	}
	r.any, r.id = true, c.id
	r.key = append(r.key[:0], c.key()...)
}

// isResolved reports whether c stands at a version of what was put out last.
func (m *merger) isResolved(c *cursor) bool {
	r := &m.resolved
	return r.any && m.opts.Mode != table.Append && c.time() == r.time &&
		(r.id != 0 && r.id == c.id || bytes.Equal(c.key(), r.key))
}

func (m *merger) skip(ctx context.Context, c *cursor) error {
	c.seek(c.row + 1)
	return m.advance(ctx, c)
}

// resolve puts out the identity at which c stands, whose newest version it
// has, and passes all its versions.
func (m *merger) resolve(ctx context.Context, c *cursor) error {
	deleted := c.batch.OpOf(c.row) == table.Delete
	if m.opts.Mode == table.Append {
		if !deleted || m.opts.KeepTombstones {
			m.build.AppendLater(c.batch, c.row, c.row+1)
		}
		return m.skip(ctx, c)
	}
	if !deleted || m.opts.KeepTombstones {
		m.build.AppendLater(c.batch, c.row, c.row+1)
	}
	m.setResolved(c)
	open := !deleted && m.opts.Mode == table.LastNonNull
	if err := m.skip(ctx, c); err != nil {
		return err
	}
	for len(m.heap) > 0 && m.isResolved(m.heap[0]) {
		c := m.heap.pop()
		if open {
			open = m.fold(c)
		}
		if err := m.skip(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// fold merges an older version into the row built last and reports whether
// still older ones may have a say. The row stays open even without nulls while
// tombstones are kept, since the newest of those must follow it.
func (m *merger) fold(c *cursor) (open bool) {
	if c.batch.OpOf(c.row) == table.Delete {
		if m.opts.KeepTombstones {
			m.build.AppendLater(c.batch, c.row, c.row+1)
		}
		return false
	}
	return m.build.FillNulls(c.batch, c.row, m.mask) || m.opts.KeepTombstones
}
