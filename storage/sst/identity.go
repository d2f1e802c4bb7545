package sst

import (
	"bytes"
	"context"
	"math"
	"math/bits"
	"sort"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// identity reads the keys, times, sequences and operations of rows.
type identity struct {
	tags     []output
	time     output
	sequence output
	op       output

	constSequence bool // of the row group at hand; its page is not read
	onlyPuts      bool

	series  *SeriesIndex // tells the keys; nil: the tags' pages do
	changes table.Bitmap // rows that begin a stretch
	views   []table.Vector
	keyData []byte
	ops     []table.Op
	seqs    []uint64
}

func (d *identity) init(r *Reader) {
	for _, at := range r.columnsOf(table.Tag) {
		d.tags = append(d.tags, output{column: at, typ: r.footer.info.Columns[at].Type})
	}
	d.time.column = r.columnsOf(table.Timestamp)[0]
	d.sequence.column, d.op.column = r.footer.columns[SequenceColumn], r.footer.columns[OpColumn]
	d.views = make([]table.Vector, len(d.tags))
}

func (d *identity) begin(*groupReader) {
	for i := range d.tags {
		d.tags[i].page = 0
	}
	d.time.page, d.sequence.page, d.op.page = 0, 0, 0
}

// used returns the columns whose pages are read.
func (d *identity) used(g *groupReader) ([]*output, error) {
	seq, err := g.column(d.sequence.column)
	if err != nil {
		return nil, err
	}
	op, err := g.column(d.op.column)
	if err != nil {
		return nil, err
	}
	_, d.constSequence = seq.info.constant()
	kind, constant := op.info.constant()
	d.onlyPuts = constant && table.Op(kind) == table.Put
	used := []*output{&d.time}
	if !d.constSequence {
		used = append(used, &d.sequence)
	}
	if !d.onlyPuts {
		used = append(used, &d.op)
	}
	for i := range d.pageTags() {
		used = append(used, &d.tags[i])
	}
	return used, nil
}

// pageTags returns the tags that are read from pages.
func (d *identity) pageTags() []output {
	if d.series != nil {
		return nil
	}
	return d.tags
}

func (d *identity) want(g *groupReader, spans []span) error {
	used, err := d.used(g)
	if err != nil {
		return err
	}
	for _, o := range used {
		if err := g.want(o.column, spans); err != nil {
			return err
		}
	}
	return nil
}

// seek moves all columns to a row and returns where the first page ends.
func (d *identity) seek(g *groupReader, row int) int {
	end := d.time.seek(g, row)
	if !d.constSequence {
		end = min(end, d.sequence.seek(g, row))
	}
	if !d.onlyPuts {
		end = min(end, d.op.seek(g, row))
	}
	for i := range d.pageTags() {
		end = min(end, d.tags[i].seek(g, row))
	}
	return end
}

// fill gives b the identity of rows [from, to), which lie in the pages that
// were sought.
func (d *identity) fill(g *groupReader, b *run.Batch, from, to int) error {
	times, err := d.time.vector(g, from, to)
	if err != nil {
		return err
	}
	b.Times, b.Sequences, b.Ops = times.Ints, nil, nil
	if d.constSequence {
		v, _ := g.columns[d.sequence.column].info.constant()
		b.Sequence = uint64(v)
	} else {
		v, err := d.sequence.vector(g, from, to)
		if err != nil {
			return err
		}
		d.seqs = d.seqs[:0]
		for _, s := range v.Ints {
			d.seqs = append(d.seqs, uint64(s))
		}
		b.Sequences = d.seqs
	}
	if !d.onlyPuts {
		v, err := d.op.vector(g, from, to)
		if err != nil {
			return err
		}
		d.ops = d.ops[:0]
		for _, op := range v.Ints {
			d.ops = append(d.ops, table.Op(op))
		}
		b.Ops = d.ops
	}
	if d.series != nil {
		d.runs(g, b, from, to)
		return nil
	}
	return d.stretches(g, b, from, to)
}

// runs takes the stretches from the series index.
func (d *identity) runs(g *groupReader, b *run.Batch, from, to int) {
	first := uint32(g.r.footer.starts[g.group])
	row, end := first+uint32(from), first+uint32(to)
	b.Keys, b.Starts, d.keyData = b.Keys[:0], b.Starts[:0], d.keyData[:0]
	for s := d.series.at(row); row < end; s++ {
		at := len(d.keyData)
		d.keyData = d.series.AppendKey(d.keyData, s)
		b.Keys = append(b.Keys, d.keyData[at:len(d.keyData):len(d.keyData)])
		b.Starts = append(b.Starts, row-first-uint32(from))
		row = d.series.starts[s+1]
	}
}

// stretches finds where the tags change and encodes a key for each stretch.
func (d *identity) stretches(g *groupReader, b *run.Batch, from, to int) (err error) {
	n := to - from
	d.changes = append(d.changes[:0], make(table.Bitmap, (n+63)/64)...)
	d.changes.Set(0)
	for i := range d.tags {
		if d.views[i], err = d.tags[i].vector(g, from, to); err != nil {
			return err
		}
		markChanges(d.changes, &d.views[i])
	}
	b.Keys, b.Starts, d.keyData = b.Keys[:0], b.Starts[:0], d.keyData[:0]
	for w, word := range d.changes {
		for ; word != 0; word &= word - 1 {
			row := w<<6 + bits.TrailingZeros64(word)
			at := len(d.keyData)
			d.keyData = appendKey(d.keyData, d.views, row)
			b.Keys = append(b.Keys, d.keyData[at:len(d.keyData):len(d.keyData)])
			b.Starts = append(b.Starts, uint32(row))
		}
	}
	return nil
}

// markChanges sets the bits of rows whose value differs from the row before.
func markChanges(changes table.Bitmap, v *table.Vector) {
	switch v.Type.Layout() {
	case table.Ints:
		markDifferent(changes, v.Ints)
	case table.Bools:
		markDifferent(changes, v.Bools)
	case table.Floats:
		for i := 1; i < v.Len; i++ {
			if math.Float64bits(v.Floats[i]) != math.Float64bits(v.Floats[i-1]) {
				changes.Set(i)
			}
		}
	case table.Bytes:
		if v.Dict != nil {
			markDifferent(changes, v.Codes)
			break
		}
		for i := 1; i < v.Len; i++ {
			if !bytes.Equal(v.Bytes(i), v.Bytes(i-1)) {
				changes.Set(i)
			}
		}
	}
	if v.Valid != nil {
		for i := 1; i < v.Len; i++ {
			if v.Valid.Get(i) != v.Valid.Get(i-1) {
				changes.Set(i)
			}
		}
	}
}

func markDifferent[T comparable](changes table.Bitmap, values []T) {
	for i := 1; i < len(values); i++ {
		if values[i] != values[i-1] {
			changes.Set(i)
		}
	}
}

// appendKey appends the series key of a row.
func appendKey(key []byte, tags []table.Vector, row int) []byte {
	nulls := 0
	for i := range tags {
		v := &tags[i]
		if v.IsNull(row) {
			key = table.AppendKeyNull(key)
			nulls++
			continue
		}
		nulls = 0
		key = table.AppendKeyValue(key, v, row)
	}
	return table.TrimKey(key, nulls)
}

// keysOverlap reports whether keys from first to last may be wanted.
func keysOverlap(req *run.Request, first, last []byte) bool {
	return (req.FirstKey == nil || bytes.Compare(last, req.FirstKey) >= 0) &&
		(req.EndKey == nil || bytes.Compare(first, req.EndKey) < 0)
}

// pruneKeys leaves out the pages whose keys are all outside the request.
func (s *scan) pruneKeys(info *groupInfo) (out []span) {
	pageRows, rows := s.r.footer.info.PageRows, int(info.Rows)
	for p, first := range info.PageKeys {
		last := info.LastKey
		if p+1 < len(info.PageKeys) {
			last = info.PageKeys[p+1]
		}
		if keysOverlap(&s.req, first, last) {
			out = addSpan(out, span{p * pageRows, min(rows, (p+1)*pageRows)})
		}
	}
	return out
}

// trimKeys cuts the rows outside the wanted keys off spans. Only the first and
// the last page that pruneKeys left can have any.
func (s *scan) trimKeys(ctx context.Context, g *groupReader, info *groupInfo, spans []span) ([]span, error) {
	from, to := 0, int(info.Rows)
	var err error
	if k := s.req.FirstKey; k != nil && bytes.Compare(info.FirstKey, k) < 0 {
		if from, err = s.searchKey(ctx, g, info, k); err != nil {
			return nil, err
		}
	}
	if k := s.req.EndKey; k != nil && bytes.Compare(info.LastKey, k) >= 0 {
		if to, err = s.searchKey(ctx, g, info, k); err != nil {
			return nil, err
		}
	}
	var out []span
	for _, sp := range spans {
		out = addSpan(out, span{max(sp.from, from), min(sp.to, to)})
	}
	return out, nil
}

// searchKey returns the first row whose key is at least key.
func (s *scan) searchKey(ctx context.Context, g *groupReader, info *groupInfo, key []byte) (int, error) {
	// The row is in the page before the first that begins with such a key.
	p := sort.Search(len(info.PageKeys), func(i int) bool { return bytes.Compare(info.PageKeys[i], key) >= 0 })
	if p == 0 {
		return 0, nil
	}
	pageRows := s.r.footer.info.PageRows
	in := span{(p - 1) * pageRows, min(int(info.Rows), p*pageRows)}
	tags := s.r.columnsOf(table.Tag)
	for _, at := range tags {
		if err := g.want(at, []span{in}); err != nil {
			return 0, err
		}
	}
	if err := g.fetch(ctx); err != nil {
		return 0, err
	}
	var err error
	var buf []byte
	n := sort.Search(in.to-in.from, func(i int) bool {
		if err != nil {
			return true
		}
		buf, err = s.keyAt(g, tags, buf[:0], in.from+i)
		return bytes.Compare(buf, key) >= 0
	})
	return in.from + n, err
}

// keyAt appends the series key of a row whose tag pages were fetched.
func (s *scan) keyAt(g *groupReader, tags []int, buf []byte, row int) ([]byte, error) {
	views := make([]table.Vector, len(tags))
	for i, at := range tags {
		c := g.columns[at].info
		p := c.pageAt(row)
		pg, err := g.page(at, p)
		if err != nil {
			return nil, err
		}
		views[i] = pg.rows(new(table.Vector), row-c.pages[p].first, row-c.pages[p].first+1)
	}
	return appendKey(buf, views, 0), nil
}
