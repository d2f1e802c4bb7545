package sst

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/table"
)

// seriesFormat is the first byte of an encoded series index.
const seriesFormat = 1

// maxSeriesBytes bounds an index before compression; a file with a larger one
// has none.
const maxSeriesBytes = 256 << 20

// unzstdSeries decompresses series indexes.
var unzstdSeries, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxSeriesBytes))

// seriesInfo says where a file's series index is.
type seriesInfo struct {
	Offset int64  `json:"offset"`
	Size   int32  `json:"size"`
	CRC    uint32 `json:"crc32c"`
	Series int    `json:"series"`
}

// A seriesWriter collects the series index of a file that is being written.
type seriesWriter struct {
	minRows int  // a series must have on average
	off     bool // there are too many series

	starts []uint32
	times  []table.TimeRange
	mixed  []bool
	tags   []tagWriter
}

// A tagWriter numbers the values of one tag.
type tagWriter struct {
	typ   table.Type
	dict  dictBuilder // of the values as they are in keys
	codes []uint32
	buf   []byte
}

// earlySeries is the number of series from which a writer gives up before the
// end of the file if they have too few rows: its memory is bounded by it.
const earlySeries = 1 << 16

func newSeriesWriter(tags []column, minRows int) *seriesWriter {
	w := &seriesWriter{minRows: minRows, off: minRows < 0, tags: make([]tagWriter, len(tags))}
	for i := range w.tags {
		w.tags[i].typ = tags[i].typ
		w.tags[i].dict.reset()
	}
	return w
}

// begin starts a series at a row of the file.
func (w *seriesWriter) begin(row int64, values []tagValue) {
	if n := int64(len(w.starts)); row > math.MaxUint32-1<<20 || n >= earlySeries && row < n*int64(w.minRows) {
		w.off = true
	}
	if w.off {
		*w = seriesWriter{off: true}
		return
	}
	w.starts = append(w.starts, uint32(row))
	w.times = append(w.times, table.TimeRange{Min: math.MaxInt64, Max: math.MinInt64})
	w.mixed = append(w.mixed, false)
	for i := range w.tags {
		w.tags[i].add(&values[i])
	}
}

func (t *tagWriter) add(v *tagValue) {
	if !v.ok {
		t.codes = append(t.codes, 0)
		return
	}
	switch t.buf = t.buf[:0]; t.typ.Layout() {
	case table.Bytes:
		t.buf = table.AppendKeyBytes(t.buf, v.bytes)
	case table.Floats:
		t.buf = table.AppendKeyFloat(t.buf, v.float)
	default:
		t.buf = table.AppendKeyInt(t.buf, t.typ, v.int)
	}
	t.codes = append(t.codes, t.dict.code(t.buf)+1)
}

// rows adds rows with times from first to last to the series begun last.
func (w *seriesWriter) rows(first, last int64, mixed bool) {
	if w.off {
		return
	}
	n := len(w.times) - 1
	t := &w.times[n]
	t.Min, t.Max = min(t.Min, first), max(t.Max, last)
	w.mixed[n] = w.mixed[n] || mixed
}

// write writes the index of a file of so many rows, if it gets one.
//
// Encoded, it is the format byte and a zstd frame of: the number of series; of
// each its rows, its first time less that of the series before, and its last
// time less its first; a bit for each series with repeats or tombstones; and of
// each tag the number of its values, their lengths and bytes as in keys, and
// for each series the number of its value plus one, 0 for null. Numbers are
// varints.
func (w *seriesWriter) write(f *fileWriter, rows int64) (*seriesInfo, error) {
	n := len(w.starts)
	if w.off || int64(n)*int64(w.minRows) > rows {
		return nil, nil
	}
	raw := w.encode(rows)
	if len(raw) > maxSeriesBytes {
		return nil, nil
	}
	data := f.chunks.enc.zstd.EncodeAll(raw, []byte{seriesFormat})
	info := &seriesInfo{Offset: f.offset, Size: int32(len(data)), CRC: crc32.Checksum(data, castagnoli), Series: n}
	return info, f.write(data)
}

// encode returns the index before compression.
func (w *seriesWriter) encode(rows int64) []byte {
	n := len(w.starts)
	raw := binary.AppendUvarint(nil, uint64(n))
	for i, start := range w.starts {
		end := uint32(rows)
		if i+1 < n {
			end = w.starts[i+1]
		}
		raw = binary.AppendUvarint(raw, uint64(end-start))
	}
	last := int64(0)
	for _, t := range w.times {
		raw = binary.AppendVarint(raw, t.Min-last)
		last = t.Min
	}
	for _, t := range w.times {
		raw = binary.AppendUvarint(raw, uint64(t.Max)-uint64(t.Min))
	}
	bits := make([]byte, (n+7)/8)
	for i, mixed := range w.mixed {
		if mixed {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	raw = append(raw, bits...)
	for i := range w.tags {
		raw = w.tags[i].append(raw)
	}
	return raw
}

func (t *tagWriter) append(raw []byte) []byte {
	d := &t.dict
	raw = binary.AppendUvarint(raw, uint64(d.len()))
	for c := range d.len() {
		raw = binary.AppendUvarint(raw, uint64(len(d.value(uint32(c)))))
	}
	raw = append(raw, d.data...)
	for _, c := range t.codes {
		raw = binary.AppendUvarint(raw, uint64(c))
	}
	return raw
}

// seriesKey names the series index in the cache.
func (r *Reader) seriesKey() cache.Key {
	return cache.Key{File: r.file, Chunk: math.MaxUint32, Page: seriesPage}
}

// HasSeries reports whether the file has a series index that can be used.
func (r *Reader) HasSeries() bool { return r.footer.info.Series != nil && !r.noSeries.Load() }

// IgnoreSeries makes the Reader do without the file's series index, because it
// is damaged.
func (r *Reader) IgnoreSeries() { r.noSeries.Store(true) }

// Series returns the file's series index, or nil if it has none. stats counts
// what is read.
func (r *Reader) Series(ctx context.Context, stats *table.ScanStats) (*SeriesIndex, error) {
	if !r.HasSeries() {
		return nil, nil
	}
	if hit, ok := r.cache.Get(r.seriesKey()).(*SeriesIndex); ok {
		return hit, nil
	}
	info := r.footer.info.Series
	if info.Offset < 0 || info.Size < 1 || info.Offset+int64(info.Size) > r.footer.base {
		return nil, r.damaged(r.footer.base, fmt.Errorf("series index of %d bytes at %d lies outside the file", info.Size, info.Offset))
	}
	raw := make([]byte, info.Size)
	if err := r.read(ctx, info.Offset, raw); err != nil {
		return nil, err
	}
	stats.BytesRead.Add(int64(len(raw)))
	x, err := r.decodeSeries(info, raw)
	if err != nil {
		return nil, err
	}
	r.cache.Put(r.seriesKey(), x)
	return x, nil
}

func (r *Reader) decodeSeries(info *seriesInfo, data []byte) (x *SeriesIndex, err error) {
	defer r.guard(info.Offset, &err)
	if crc := crc32.Checksum(data, castagnoli); crc != info.CRC {
		return nil, r.damaged(info.Offset, fmt.Errorf("series index has CRC %08x, not %08x", crc, info.CRC))
	}
	if data[0] != seriesFormat {
		return nil, r.damaged(info.Offset, fmt.Errorf("series index has format %d", data[0]))
	}
	raw, err := unzstdSeries.DecodeAll(data[1:], nil)
	if err != nil {
		return nil, r.damaged(info.Offset, fmt.Errorf("decompress series index: %w", err))
	}
	tags := r.columnsOf(table.Tag)
	types := make([]table.Type, len(tags))
	for i, at := range tags {
		types[i] = r.footer.info.Columns[at].Type
	}
	x, err = parseSeries(raw, types, r.footer.info.Rows)
	if err != nil {
		return nil, r.damaged(info.Offset, fmt.Errorf("series index: %w", err))
	}
	for i, at := range tags {
		x.tags[i].column = at
	}
	return x, nil
}

// errSeries reports an index that contradicts itself or the file.
var errSeries = errors.New("it does not fit the file")

// A seriesParser reads an index from front to back; after an error it reads
// zeros.
type seriesParser struct {
	rest []byte
	bad  bool
}

func (p *seriesParser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	return v | p.skip(n)
}

func (p *seriesParser) varint() int64 {
	v, n := binary.Varint(p.rest)
	return v | int64(p.skip(n))
}

// skip goes n bytes on, and returns 0.
func (p *seriesParser) skip(n int) uint64 {
	if n <= 0 || p.bad {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return 0
}

// count reads a number of things that take at least a byte each.
func (p *seriesParser) count() int {
	n := p.uvarint()
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return 0
	}
	return int(n)
}

// bytes reads n bytes.
func (p *seriesParser) bytes(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// parseSeries decodes an index of a file with so many rows and tags of the
// given types.
func parseSeries(raw []byte, types []table.Type, rows int64) (*SeriesIndex, error) {
	p := &seriesParser{rest: raw}
	n := p.count()
	x := &SeriesIndex{starts: make([]uint32, 1, n+1), times: make([]table.TimeRange, n), tags: make([]seriesTag, len(types))}
	sum := uint64(0)
	for range n {
		c := p.uvarint()
		if sum += c; c == 0 || c > uint64(rows) || sum > uint64(rows) || sum > math.MaxUint32 {
			return nil, errSeries
		}
		x.starts = append(x.starts, uint32(sum))
	}
	if sum != uint64(rows) {
		return nil, errSeries
	}
	last := int64(0)
	for i := range x.times {
		last += p.varint()
		x.times[i].Min = last
	}
	for i := range x.times {
		t := &x.times[i]
		if t.Max = int64(uint64(t.Min) + p.uvarint()); t.Max < t.Min {
			return nil, errSeries
		}
	}
	for i, b := range p.bytes(uint64(n+7) / 8) {
		if b != 0 && x.mixed == nil {
			x.mixed = table.NewBitmap(n)
		}
		if b != 0 {
			x.mixed[i/8] |= uint64(b) << (i % 8 * 8)
		}
	}
	for i := range x.tags {
		if err := x.tags[i].parse(p, types[i], n); err != nil {
			return nil, err
		}
	}
	if p.bad || len(p.rest) > 0 {
		return nil, errSeries
	}
	return x, nil
}

// parse reads one tag of n series.
func (t *seriesTag) parse(p *seriesParser, typ table.Type, n int) error {
	count := p.count()
	t.keys = &table.Dict{Offsets: make([]uint32, 1, count+1)}
	sum := uint64(0)
	for range count {
		if sum += p.uvarint(); sum > uint64(len(p.rest)) {
			return errSeries
		}
		t.keys.Offsets = append(t.keys.Offsets, uint32(sum))
	}
	t.keys.Data = append([]byte(nil), p.bytes(sum)...)
	if p.bad || n > len(p.rest) {
		return errSeries
	}
	t.codes = make([]uint32, n)
	for i := range t.codes {
		c := p.uvarint()
		if c > uint64(count) {
			return errSeries
		}
		t.codes[i] = uint32(c)
		t.nulls = t.nulls || c == 0
	}
	return t.decodeValues(typ, count)
}

// decodeValues takes the values out of their form in keys.
func (t *seriesTag) decodeValues(typ table.Type, count int) error {
	v := &t.values
	v.Type, v.Len = typ, count
	if typ.Layout() == table.Bytes {
		v.Dict = nullDict
		if count > 0 {
			v.Dict = &table.Dict{Offsets: make([]uint32, 1, count+1), Data: make([]byte, 0, len(t.keys.Data))}
		}
	}
	var r table.KeyReader
	for i := range count {
		r.Reset(t.keys.Value(uint32(i)))
		ok := false
		switch typ.Layout() {
		case table.Floats:
			var f float64
			f, ok = r.Float()
			v.Floats = append(v.Floats, f)
		case table.Bytes:
			var b []byte
			b, ok = r.Bytes()
			v.Dict.Data = append(v.Dict.Data, b...)
			v.Dict.Offsets = append(v.Dict.Offsets, uint32(len(v.Dict.Data)))
		default:
			var u int64
			u, ok = r.Int(typ)
			if typ.Layout() == table.Bools {
				v.Bools = append(v.Bools, u != 0)
			} else {
				v.Ints = append(v.Ints, u)
			}
		}
		if !ok || r.More() || r.Err() != nil {
			return errSeries
		}
	}
	return nil
}
