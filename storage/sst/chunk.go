package sst

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	compact    thrift.CompactProtocol
)

// crcKey is the key, in a column chunk's metadata, of the CRC32C of its
// extents: dictionary page if any, data pages, bloom filter if any; each four
// bytes little-endian, all in base64.
const crcKey = "varve.crc32c"

// A chunkWriter writes the column chunks of a file.
type chunkWriter struct {
	out    *fileWriter
	enc    *encoder
	stamps stamps
	opts   WriteOptions

	// Of the chunk at hand:
	meta    format.ColumnMetaData
	columns format.ColumnIndex
	offsets format.OffsetIndex
	crcs    []byte
	total   bounds
	noIndex bool // a page has values without bounds
}

// A chunk is a written column chunk whose indexes wait for the end of the file.
type chunk struct {
	format.ColumnChunk
	columns format.ColumnIndex
	offsets format.OffsetIndex
	noIndex bool
}

// write writes c, which is finished, as one chunk with its bloom filter.
func (w *chunkWriter) write(c *column) (chunk, error) {
	w.begin(c)
	if w.enc.encoding == format.RLEDictionary {
		w.meta.DictionaryPageOffset = w.out.offset
		if err := w.writeDictionary(); err != nil {
			return chunk{}, err
		}
	}
	w.meta.DataPageOffset = w.out.offset
	pages := 0
	for from := 0; from < c.rows; pages++ {
		to := w.pageEnd(c, from)
		if err := w.writePage(c, from, to); err != nil {
			return chunk{}, err
		}
		from = to
	}
	w.meta.EncodingStats = append(w.meta.EncodingStats,
		format.PageEncodingStats{PageType: format.DataPageV2, Encoding: w.enc.encoding, Count: int32(pages)})
	if err := w.writeBloom(c); err != nil {
		return chunk{}, err
	}
	return w.end(c), nil
}

func (w *chunkWriter) begin(c *column) {
	w.enc.begin(c, w.opts.PageRows)
	w.meta = format.ColumnMetaData{
		Type:         physical(c.typ),
		Encoding:     []format.Encoding{w.enc.encoding},
		PathInSchema: []string{c.name},
		NumValues:    int64(c.rows),
	}
	if !c.required {
		w.meta.Encoding = append(w.meta.Encoding, format.RLE)
	}
	if w.enc.compress {
		w.meta.Codec = format.Zstd
	}
	w.columns, w.offsets = format.ColumnIndex{}, format.OffsetIndex{}
	w.crcs, w.total, w.noIndex = w.crcs[:0], bounds{}, false
}

func (w *chunkWriter) end(c *column) chunk {
	out := chunk{columns: w.columns, offsets: w.offsets, noIndex: w.noIndex}
	w.meta.Statistics.NullCount = int64(w.total.nulls)
	if w.total.known {
		w.meta.Statistics.MinValue = appendPlain([]byte{}, c.typ, w.total.min)
		w.meta.Statistics.MaxValue = appendPlain([]byte{}, c.typ, w.total.max)
	}
	w.meta.KeyValueMetadata = []format.KeyValue{{Key: crcKey, Value: base64.StdEncoding.EncodeToString(w.crcs)}}
	out.MetaData = w.meta
	return out
}

// pageEnd returns where the page that starts at row from ends: at the next
// multiple of PageRows, or earlier where strings are long.
func (w *chunkWriter) pageEnd(c *column, from int) int {
	end := min(c.rows, (from/w.opts.PageRows+1)*w.opts.PageRows)
	if c.typ.Layout() != table.Bytes || c.dict != nil {
		return end
	}
	limit := uint64(c.offsets[from]) + uint64(w.opts.PageBytes)
	if uint64(c.offsets[end]) <= limit {
		return end
	}
	for to := from + 1; ; to++ {
		if uint64(c.offsets[to]) > limit {
			return max(from+1, to-1)
		}
	}
}

func (w *chunkWriter) writeDictionary() error {
	e := w.enc
	values := e.dictionary()
	h := format.PageHeader{
		Type:                 format.DictionaryPage,
		UncompressedPageSize: int32(len(values)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(e.entries), Encoding: format.Plain}),
	}
	body := values
	if e.compress {
		// A dictionary page has no flag for raw values.
		e.packed = e.zstd.EncodeAll(values, e.packed[:0])
		body = e.packed
	}
	w.meta.Encoding = append(w.meta.Encoding, format.Plain)
	w.meta.EncodingStats = append(w.meta.EncodingStats,
		format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1})
	_, err := w.emit(&h, nil, body)
	return err
}

func (w *chunkWriter) writePage(c *column, from, to int) error {
	e := w.enc
	nulls := e.encodeValues(from, to)
	e.levels = e.levels[:0]
	if !c.required {
		valid := c.valid
		if nulls > 0 && nulls < to-from {
			valid = run.SliceBits(c.valid, from, to)
		}
		e.levels = appendLevels(e.levels, valid, to-from, nulls)
	}
	body, compressed := e.values, false
	if e.compress {
		if n := e.shrunk(); n < len(e.values) {
			body, compressed = e.packed, true
		}
	}
	h := format.PageHeader{
		Type:                 format.DataPageV2,
		UncompressedPageSize: int32(len(e.levels) + len(e.values)),
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues: int32(to - from), NumNulls: int32(nulls), NumRows: int32(to - from),
			Encoding:                   e.encoding,
			DefinitionLevelsByteLength: int32(len(e.levels)),
			IsCompressed:               thrift.New(compressed),
		}),
	}
	offset := w.out.offset
	size, err := w.emit(&h, e.levels, body)
	if err != nil {
		return err
	}
	w.offsets.PageLocations = append(w.offsets.PageLocations,
		format.PageLocation{Offset: offset, CompressedPageSize: int32(size), FirstRowIndex: int64(from)})
	w.index(c, c.boundsOf(from, to, nulls, &w.stamps))
	return nil
}

// index adds a page's bounds to the column index.
func (w *chunkWriter) index(c *column, b bounds) {
	null := b.nulls == b.rows
	w.noIndex = w.noIndex || !null && !b.known
	w.columns.NullPages = append(w.columns.NullPages, null)
	w.columns.NullCounts = append(w.columns.NullCounts, int64(b.nulls))
	lo, hi := []byte{}, []byte{}
	if !null && b.known {
		lo, hi = appendPlain(lo, c.typ, b.min), appendPlain(hi, c.typ, b.max)
	}
	w.columns.MinValues = append(w.columns.MinValues, lo)
	w.columns.MaxValues = append(w.columns.MaxValues, hi)
	w.total.union(c.typ, &b)
}

// emit writes one page and returns the size of its extent.
func (w *chunkWriter) emit(h *format.PageHeader, levels, values []byte) (int, error) {
	h.CompressedPageSize = int32(len(levels) + len(values))
	head, err := thrift.Marshal(&compact, h)
	if err != nil {
		return 0, fmt.Errorf("encode page header: %w", err)
	}
	crc := crc32.Checksum(head, castagnoli)
	crc = crc32.Update(crc, castagnoli, levels)
	crc = crc32.Update(crc, castagnoli, values)
	w.crcs = binary.LittleEndian.AppendUint32(w.crcs, crc)
	size := len(head) + len(levels) + len(values)
	w.meta.TotalCompressedSize += int64(size)
	w.meta.TotalUncompressedSize += int64(len(head)) + int64(h.UncompressedPageSize)
	for _, b := range [][]byte{head, levels, values} {
		if err := w.out.write(b); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// bloomBits is the bits a distinct value gets, for about 1 % false positives.
const bloomBits = 10

// writeBloom writes the bloom filter of a tag.
func (w *chunkWriter) writeBloom(c *column) error {
	if !c.tag || c.nulls == c.rows {
		return nil
	}
	hashes := c.hashes()
	filter := make(bloom.SplitBlockFilter, max(1, bloom.NumSplitBlocksOf(int64(len(hashes)), bloomBits)))
	for _, h := range hashes {
		filter.Insert(h)
	}
	h := format.BloomFilterHeader{NumBytes: int32(len(filter.Bytes()))}
	h.Algorithm.Value, h.Hash.Value, h.Compression.Value =
		&format.SplitBlockAlgorithm{}, &format.XxHash{}, &format.BloomFilterUncompressed{}
	data, err := thrift.Marshal(&compact, &h)
	if err != nil {
		return fmt.Errorf("encode bloom filter header: %w", err)
	}
	data = append(data, filter.Bytes()...)
	w.meta.BloomFilterOffset, w.meta.BloomFilterLength = w.out.offset, int32(len(data))
	w.crcs = binary.LittleEndian.AppendUint32(w.crcs, crc32.Checksum(data, castagnoli))
	return w.out.write(data)
}

// hashes returns the bloom filter's hashes of the column's values, each of a
// dictionary once.
func (c *column) hashes() []uint64 {
	var (
		hash bloom.XXH64
		out  []uint64
	)
	if c.dict != nil {
		for i := range c.dict.len() {
			out = append(out, hash.Sum64(c.dict.value(uint32(i))))
		}
		return out
	}
	var last uint64
	for i := range c.rows {
		if !c.valid.Get(i) {
			continue
		}
		h := hash.Sum64(c.plainAt(i))
		if len(out) == 0 || h != last {
			out = append(out, h)
		}
		last = h
	}
	return out
}

func (c *column) plainAt(i int) []byte {
	switch c.typ.Layout() {
	case table.Bytes:
		return c.data[c.offsets[i]:c.offsets[i+1]]
	case table.Floats:
		return appendPlain(nil, c.typ, table.Value{Float: c.floats[i]})
	case table.Bools:
		if c.bools[i] {
			return []byte{1}
		}
		return []byte{0}
	default:
		return appendPlain(nil, c.typ, table.Value{Int: c.ints[i]})
	}
}
