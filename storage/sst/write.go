package sst

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// Write writes the rows of src, which answers Input(schema), as one SST to w
// and describes it. It holds about one row group in memory. It fails if src
// has no rows or is not sorted, and does not close src.
func Write(ctx context.Context, w io.Writer, schema *table.Schema, src run.Source, opts WriteOptions) (Meta, error) {
	fw, err := newFileWriter(w, schema, opts.withDefaults())
	if err != nil {
		return Meta{}, err
	}
	for {
		b, err := src.Next(ctx)
		if err != nil {
			return Meta{}, err
		}
		if b == nil {
			break
		}
		if err := fw.append(b); err != nil {
			return Meta{}, err
		}
	}
	return fw.finish()
}

// A fileWriter writes one file.
type fileWriter struct {
	w      io.Writer
	offset int64
	schema *table.Schema
	opts   WriteOptions
	chunks chunkWriter

	// All columns in the order of the file; tags, fields and the rest are
	// parts of the same list.
	columns  []column
	tags     []column
	fields   []column
	time     *column
	sequence *column
	op       *column

	rows   int // of the row group at hand
	meta   Meta
	footer footerWriter
	group  groupInfo

	series *seriesWriter

	// The series and the row written last.
	keys   table.KeyReader
	key    []byte
	values []tagValue
	last   struct {
		time     int64
		sequence uint64
		any      bool // there is one, and it is of the series key
	}
}

func newFileWriter(w io.Writer, schema *table.Schema, opts WriteOptions) (*fileWriter, error) {
	enc, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	f := &fileWriter{w: w, schema: schema, opts: opts}
	f.chunks = chunkWriter{out: f, enc: enc, opts: opts}
	f.addColumns()
	f.values = make([]tagValue, len(f.tags))
	f.series = newSeriesWriter(f.tags, f.opts.SeriesRows)
	f.meta = Meta{Format: FormatVersion, Times: table.TimeRange{Min: 1, Max: 0}}
	return f, f.write([]byte(magic))
}

func (f *fileWriter) addColumns() {
	add := func(c *table.Column, role table.Role) {
		f.columns = append(f.columns, column{
			id: c.ID, name: c.Name, typ: c.Type, dictMax: f.opts.DictionaryMaxBytes,
			required: role == table.Timestamp, tag: role == table.Tag, isTime: role == table.Timestamp,
		})
	}
	tags := f.schema.Tags()
	for _, c := range tags {
		add(c, table.Tag)
	}
	add(f.schema.TimeIndex(), table.Timestamp)
	for i := range f.schema.Columns {
		if c := &f.schema.Columns[i]; c.Role == table.Field {
			add(c, table.Field)
		}
	}
	f.columns = append(f.columns,
		column{id: SequenceColumn, name: "__sequence", typ: table.UInt64, required: true},
		column{id: OpColumn, name: "__op_type", typ: table.UInt8, required: true})
	n := len(f.columns)
	f.tags, f.time, f.fields = f.columns[:len(tags)], &f.columns[len(tags)], f.columns[len(tags)+1:n-2]
	f.sequence, f.op = &f.columns[n-2], &f.columns[n-1]
	for i := range f.columns {
		f.columns[i].reset()
	}
}

func (f *fileWriter) write(b []byte) error {
	n, err := f.w.Write(b)
	f.offset += int64(n)
	if err != nil {
		return fmt.Errorf("write sst at offset %d: %w", f.offset, err)
	}
	return nil
}

// append adds the rows of b, series by series, ending row groups as they fill.
func (f *fileWriter) append(b *run.Batch) error {
	for s, key := range b.Keys {
		if err := f.startSeries(key); err != nil {
			return err
		}
		for from, end := int(b.Starts[s]), b.StretchEnd(s); from < end; {
			n, err := f.room(b, end-from)
			if err != nil {
				return err
			}
			if err := f.appendSeries(b, from, from+n); err != nil {
				return err
			}
			from += n
		}
	}
	return nil
}

// room returns how many of the next n rows go into the row group at hand,
// after starting a new one if it is full.
func (f *fileWriter) room(b *run.Batch, n int) (int, error) {
	if f.rows == f.opts.RowGroupRows || f.rows > 0 && f.rows%stepRows == 0 && f.bytes() >= f.opts.RowGroupBytes {
		if err := f.endGroup(); err != nil {
			return 0, err
		}
	}
	n = min(n, f.opts.RowGroupRows-f.rows)
	return min(n, stepRows-f.rows%stepRows), nil
}

// stepRows is how often the bytes of a row group are counted. A row of the
// largest strings takes about a MiB, so that a row group overshoots by less
// than its own size.
const stepRows = 64

func (f *fileWriter) bytes() (n int64) {
	for i := range f.columns {
		n += f.columns[i].bytes()
	}
	return n
}

// startSeries makes key the series of the rows to come.
func (f *fileWriter) startSeries(key []byte) error {
	switch order := bytes.Compare(key, f.key); {
	case order == 0 && f.last.any:
		return nil
	case order < 0:
		return fmt.Errorf("write sst: series key %x comes after %x", key, f.key)
	}
	f.key = append(f.key[:0], key...)
	f.last.any = false
	f.keys.Reset(key)
	for i := range f.tags {
		f.values[i].read(&f.keys, f.tags[i].typ)
	}
	if f.keys.More() {
		return fmt.Errorf("write sst: series key %x has more than the table's %d tags", key, len(f.tags))
	}
	if err := f.keys.Err(); err != nil {
		return err
	}
	f.series.begin(f.meta.Rows+int64(f.rows), f.values)
	return nil
}

// appendSeries adds rows [from, to) of b, which are of the current series.
func (f *fileWriter) appendSeries(b *run.Batch, from, to int) error {
	oddities := f.meta.Repeats + f.meta.Deletes
	if err := f.checkOrder(b, from, to); err != nil {
		return err
	}
	if f.rows == 0 {
		f.startGroup()
	}
	if f.rows%f.opts.PageRows == 0 {
		f.group.PageKeys = append(f.group.PageKeys, slices.Clone(f.key))
	}
	// A page begins within these rows only if it begins with them or after a
	// row of the same series; room keeps both apart where steps divide pages.
	for r := (f.rows/f.opts.PageRows + 1) * f.opts.PageRows; r < f.rows+to-from; r += f.opts.PageRows {
		f.group.PageKeys = append(f.group.PageKeys, slices.Clone(f.key))
	}
	n := to - from
	for i := range f.tags {
		f.tags[i].appendRepeat(&f.values[i], n)
	}
	f.time.ints = append(f.time.ints, b.Times[from:to]...)
	f.time.rows += n
	for i := range f.fields {
		f.fields[i].append(&b.Columns[i], from, to)
	}
	f.appendAge(b, from, to)
	f.series.rows(b.Times[from], b.Times[to-1], f.meta.Repeats+f.meta.Deletes > oddities)
	f.rows += n
	f.group.LastKey = append(f.group.LastKey[:0], f.key...)
	return nil
}

// appendAge adds sequences and operations.
func (f *fileWriter) appendAge(b *run.Batch, from, to int) {
	seq := f.sequence
	for i := from; i < to; i++ {
		s := f.opts.Sequence
		if s == 0 {
			s = b.SequenceOf(i)
		}
		seq.ints = append(seq.ints, int64(s))
	}
	seq.rows += to - from
	for i := from; i < to; i++ {
		op := b.OpOf(i)
		if op == table.Delete {
			f.meta.Deletes++
		}
		f.op.ints = append(f.op.ints, int64(op))
	}
	f.op.rows += to - from
}

// checkOrder checks that rows follow their predecessors, and counts repeats.
func (f *fileWriter) checkOrder(b *run.Batch, from, to int) error {
	for i := from; i < to; i++ {
		t, s := b.Times[i], b.SequenceOf(i)
		if f.last.any && t <= f.last.time {
			if t < f.last.time || s > f.last.sequence {
				return fmt.Errorf("write sst: row (time %d, sequence %d) of series %x comes after (%d, %d)",
					t, s, f.key, f.last.time, f.last.sequence)
			}
			f.meta.Repeats++
		}
		f.last.time, f.last.sequence, f.last.any = t, s, true
	}
	return nil
}

func (f *fileWriter) startGroup() {
	f.group = groupInfo{FirstKey: slices.Clone(f.key)}
	if f.meta.Rows == 0 {
		f.meta.FirstKey = f.group.FirstKey
	}
}

// endGroup writes the row group at hand.
func (f *fileWriter) endGroup() error {
	f.group.Rows = int64(f.rows)
	times := f.time.boundsOf(0, f.rows, 0, nil)
	f.group.Times = table.TimeRange{Min: times.min.Int, Max: times.max.Int}
	chunks := make([]chunk, len(f.columns))
	start := f.offset
	for i := range f.columns {
		c := &f.columns[i]
		c.finish()
		var err error
		if chunks[i], err = f.chunks.write(c); err != nil {
			return err
		}
	}
	f.countGroup()
	f.footer.addGroup(f, chunks, start)
	for i := range f.columns {
		f.columns[i].reset()
	}
	f.rows = 0
	return nil
}

func (f *fileWriter) countGroup() {
	seq := f.sequence.boundsOf(0, f.rows, 0, nil)
	lo, hi := uint64(seq.min.Int), uint64(seq.max.Int)
	if f.meta.Rows == 0 {
		f.meta.MinSequence, f.meta.MaxSequence = lo, hi
	}
	f.meta.MinSequence, f.meta.MaxSequence = min(f.meta.MinSequence, lo), max(f.meta.MaxSequence, hi)
	f.meta.Rows += int64(f.rows)
	f.meta.Times = f.meta.Times.Union(f.group.Times)
	f.meta.LastKey = f.group.LastKey
}

// errEmpty reports a source without rows.
var errEmpty = errors.New("write sst: there are no rows")

// finish writes what is left and the footer.
func (f *fileWriter) finish() (Meta, error) {
	if f.rows > 0 {
		if err := f.endGroup(); err != nil {
			return Meta{}, err
		}
	}
	if f.meta.Rows == 0 {
		return Meta{}, errEmpty
	}
	var err error
	if f.footer.series, err = f.series.write(f, f.meta.Rows); err != nil {
		return Meta{}, err
	}
	if err := f.footer.write(f); err != nil {
		return Meta{}, err
	}
	return f.meta, nil
}
