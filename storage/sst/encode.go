package sst

import (
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// An encoder turns a column of a row group into encoded pages. Its buffers are
// used again for every page.
type encoder struct {
	zstd    *zstd.Encoder
	numbers numberDict
	delta   delta.BinaryPackedEncoding
	lengths delta.LengthByteArrayEncoding

	// Of the column at hand:
	col      *column
	encoding format.Encoding
	codes    []uint32 // by row, with RLE_DICTIONARY
	width    int      // of a code
	entries  int      // of the dictionary
	compress bool

	values, levels, packed []byte
	denseInts              []int64
	denseFloats            []float64
	denseCodes             []uint32
	denseOffsets           []uint32
	narrow                 []int32
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	return &encoder{zstd: z}, err
}

// begin chooses the encoding of a finished column.
//
// Decode speed comes first: what has few values becomes a dictionary, other
// integers are delta-packed, other byte strings are lengths and bytes, and
// doubles are stored as they are, or split into byte streams where that makes
// them a fifth smaller. Pages are compressed if the first one shrinks by a
// tenth.
func (e *encoder) begin(c *column, pageRows int) {
	e.col, e.codes, e.entries = c, nil, 0
	first := min(pageRows, c.rows)
	switch c.typ.Layout() {
	case table.Bytes:
		e.encoding = format.DeltaLengthByteArray
		if c.dict != nil {
			e.useDict(c.codes, c.dict.len())
		}
	case table.Bools:
		e.encoding = format.Plain
	case table.Ints:
		e.encoding = format.DeltaBinaryPacked
		if !c.isTime && e.numbers.build(c.rows, func(i int) uint64 { return uint64(c.ints[i]) }) {
			e.useDict(e.numbers.codes, len(e.numbers.values))
		}
	case table.Floats:
		if e.numbers.build(c.rows, func(i int) uint64 { return math.Float64bits(c.floats[i]) }) {
			e.useDict(e.numbers.codes, len(e.numbers.values))
		} else {
			e.chooseFloat(first)
			return
		}
	}
	e.encodeValues(0, first)
	e.compress = e.shrunk() < len(e.values)*9/10
}

func (e *encoder) useDict(codes []uint32, entries int) {
	e.encoding, e.codes, e.entries, e.width = format.RLEDictionary, codes, entries, codeWidth(entries)
}

func (e *encoder) chooseFloat(first int) {
	e.encoding = format.Plain
	e.encodeValues(0, first)
	raw, plain := len(e.values), e.shrunk()
	e.encoding = format.ByteStreamSplit
	e.encodeValues(0, first)
	split := e.shrunk()
	e.compress = min(plain, split) < raw*9/10
	if split >= plain*8/10 || !e.compress {
		e.encoding = format.Plain
		e.compress = plain < raw*9/10
	}
}

// shrunk returns the compressed size of the page at hand.
func (e *encoder) shrunk() int {
	if len(e.values) < minCompress {
		return len(e.values)
	}
	e.packed = e.zstd.EncodeAll(e.values, e.packed[:0])
	return len(e.packed)
}

// minCompress is the size below which a page is not worth compressing.
const minCompress = 128

// dictionary returns the PLAIN values of the dictionary.
func (e *encoder) dictionary() []byte {
	e.values = e.values[:0]
	t := e.col.typ
	for i := range e.entries {
		switch t.Layout() {
		case table.Bytes:
			v := e.col.dict.value(uint32(i))
			e.values = append(e.values, byte(len(v)), byte(len(v)>>8), byte(len(v)>>16), byte(len(v)>>24))
			e.values = append(e.values, v...)
		case table.Floats:
			e.values = appendPlain(e.values, t, table.Value{Float: math.Float64frombits(e.numbers.values[i])})
		default:
			e.values = appendPlain(e.values, t, table.Value{Int: int64(e.numbers.values[i])})
		}
	}
	return e.values
}

// encodeValues encodes the values of rows [from, to) that are not null into
// e.values, and returns the number of nulls.
func (e *encoder) encodeValues(from, to int) (nulls int) {
	c := e.col
	var valid table.Bitmap
	if c.nulls > 0 {
		valid = run.SliceBits(c.valid, from, to)
		nulls = countNulls(valid, to-from)
	}
	if nulls == 0 {
		valid = nil
	}
	e.values = e.values[:0]
	if e.codes != nil {
		e.values = append(e.values, byte(e.width))
		e.values = appendHybrid(e.values, dense(&e.denseCodes, e.codes[from:to], valid), e.width)
		return nulls
	}
	switch c.typ.Layout() {
	case table.Ints:
		e.encodeInts(dense(&e.denseInts, c.ints[from:to], valid))
	case table.Floats:
		e.encodeFloats(dense(&e.denseFloats, c.floats[from:to], valid))
	case table.Bools:
		e.encodeBools(c.bools[from:to], valid)
	case table.Bytes:
		e.encodeBytes(from, to, valid)
	}
	return nulls
}

func (e *encoder) encodeInts(ints []int64) {
	if physical(e.col.typ) == format.Int64 {
		e.values, _ = e.delta.EncodeInt64(e.values, ints) // never fails
		return
	}
	e.narrow = e.narrow[:0]
	for _, v := range ints {
		e.narrow = append(e.narrow, int32(v))
	}
	e.values, _ = e.delta.EncodeInt32(e.values, e.narrow)
}

func (e *encoder) encodeFloats(floats []float64) {
	single := e.col.typ == table.Float32
	if e.encoding == format.ByteStreamSplit {
		e.values = appendSplit(e.values, floats, single)
	} else {
		e.values = appendFloats(e.values, floats, single)
	}
}

func (e *encoder) encodeBools(bools []bool, valid table.Bitmap) {
	n := 0
	for i, v := range bools {
		if !valid.Get(i) {
			continue
		}
		if n&7 == 0 {
			e.values = append(e.values, 0)
		}
		if v {
			e.values[n>>3] |= 1 << (n & 7)
		}
		n++
	}
}

// encodeBytes encodes strings. Nulls occupy no data, so that the data of the
// rows is one stretch.
func (e *encoder) encodeBytes(from, to int, valid table.Bitmap) {
	offsets := e.col.offsets[from : to+1]
	base := offsets[0]
	e.denseOffsets = append(e.denseOffsets[:0], 0)
	for i, end := range offsets[1:] {
		if valid.Get(i) {
			e.denseOffsets = append(e.denseOffsets, end-base)
		}
	}
	data := e.col.data[base:offsets[len(offsets)-1]]
	e.values, _ = e.lengths.EncodeByteArray(e.values, data, e.denseOffsets)
}

// dense returns the values that are not null, in buf if there are nulls.
func dense[T any](buf *[]T, values []T, valid table.Bitmap) []T {
	if valid == nil {
		return values
	}
	*buf = slices.Grow((*buf)[:0], len(values))
	for i, v := range values {
		if valid.Get(i) {
			*buf = append(*buf, v)
		}
	}
	return *buf
}

// countNulls returns the clear bits among the first n.
func countNulls(valid table.Bitmap, n int) (nulls int) {
	if valid == nil {
		return 0
	}
	for i := range n {
		if !valid.Get(i) {
			nulls++
		}
	}
	return nulls
}
