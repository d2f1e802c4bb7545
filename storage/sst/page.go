package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/table"
)

// A page is a decoded data page: vec with its values, or with all but them,
// which pack has.
type page struct {
	vec  table.Vector
	pack packed
}

// Size returns the page's bytes in memory, its dictionary's excluded.
func (p *page) Size() int64 {
	v := &p.vec
	return int64(8*len(v.Valid)+8*len(v.Ints)+8*len(v.Floats)+len(v.Bools)+4*len(v.Codes)+4*len(v.Offsets)+len(v.Data)) + p.pack.size() + 320
}

// A dictionary is a decoded dictionary page: one of its parts is set.
type dictionary struct {
	bytes  *table.Dict
	ints   []int64
	floats []float64
	n      int // entries
}

// Size returns the dictionary's bytes in memory.
func (d *dictionary) Size() int64 {
	n := 8*cap(d.ints) + 8*cap(d.floats)
	if d.bytes != nil {
		n += 4*len(d.bytes.Offsets) + len(d.bytes.Data)
	}
	return int64(n) + 128
}

// scratch is the buffers of one decoding at a time.
type scratch struct {
	thrift struct {
		reader  thrift.BytesReader
		decoder *thrift.Decoder
	}
	raw     []byte   // decompressed values
	codes   []uint32 // of all rows
	dense   []uint32 // of those that are not null
	all     []int64
	ints    []int64
	narrow  []int32
	floats  []float64
	bools   []bool
	offsets []uint32
}

var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.thrift.reader = compact.NewReaderFromBytes(nil)
	s.thrift.decoder = thrift.NewDecoder(s.thrift.reader)
	return s
}}

// unzstd decompresses whole pages; it may be used by several goroutines.
var unzstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<31))

// verify checks the CRC of an extent's bytes.
func (x *extent) verify(raw []byte) error {
	if crc := crc32.Checksum(raw, castagnoli); crc != x.crc {
		return fmt.Errorf("%d bytes have CRC %08x, not %08x", len(raw), crc, x.crc)
	}
	return nil
}

// decodePage verifies and decodes a data page. dict is the chunk's dictionary
// if it has one.
func (r *Reader) decodePage(c *chunkInfo, p *pageInfo, raw []byte, dict *dictionary) (out *page, err error) {
	defer r.guard(p.offset, &err)
	if err := p.verify(raw); err != nil {
		return nil, r.damaged(p.offset, err)
	}
	s := scratches.Get().(*scratch)
	out, err = s.dataPage(c, p, raw, dict)
	scratches.Put(s)
	if err != nil {
		return nil, r.damaged(p.offset, err)
	}
	return out, nil
}

// decodeDictionary verifies and decodes a chunk's dictionary page.
func (r *Reader) decodeDictionary(c *chunkInfo, raw []byte) (out *dictionary, err error) {
	defer r.guard(c.dict.offset, &err)
	if err := c.dict.verify(raw); err != nil {
		return nil, r.damaged(c.dict.offset, err)
	}
	s := scratches.Get().(*scratch)
	out, err = s.dictPage(c, raw)
	scratches.Put(s)
	if err != nil {
		return nil, r.damaged(c.dict.offset, fmt.Errorf("dictionary: %w", err))
	}
	return out, nil
}

// header decodes the header of a page and returns what follows it.
func (s *scratch) header(raw []byte) (h format.PageHeader, body []byte, err error) {
	s.thrift.reader.ResetBytes(raw)
	if err := s.thrift.decoder.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("decode page header: %w", err)
	}
	body = raw[s.thrift.reader.BytesRead():]
	if int(h.CompressedPageSize) != len(body) || h.UncompressedPageSize < 0 {
		return h, nil, fmt.Errorf("page body has %d bytes, not %d", len(body), h.CompressedPageSize)
	}
	return h, body, nil
}

// inflate decompresses a body of size bytes; it is the frame that decides how
// much memory that takes, so it has to say the same.
func (s *scratch) inflate(body []byte, size int) ([]byte, error) {
	var frame zstd.Header
	err := frame.Decode(body)
	if err != nil || frame.HasFCS && frame.FrameContentSize != uint64(size) {
		return nil, fmt.Errorf("page of %d bytes is a zstd frame of %d: %w", size, frame.FrameContentSize, errors.Join(errValues, err))
	}
	if s.raw, err = unzstd.DecodeAll(body, s.raw[:0]); err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(s.raw) != size {
		return nil, fmt.Errorf("page inflates to %d bytes, not %d", len(s.raw), size)
	}
	return s.raw, nil
}

var errValues = errors.New("page holds other values than it says")

func (s *scratch) dictPage(c *chunkInfo, raw []byte) (*dictionary, error) {
	h, body, err := s.header(raw)
	if err != nil {
		return nil, err
	}
	d, ok := h.DictionaryPageHeader.Get()
	if !ok || d.NumValues < 0 {
		return nil, errors.New("page is not a dictionary")
	}
	if c.codec == format.Zstd {
		if body, err = s.inflate(body, int(h.UncompressedPageSize)); err != nil {
			return nil, err
		}
	}
	return parseDictionary(c.typ, int(d.NumValues), body)
}

func parseDictionary(t table.Type, n int, body []byte) (*dictionary, error) {
	d := &dictionary{n: n}
	if n > len(body)/4 {
		return nil, errValues
	}
	switch t.Layout() {
	case table.Floats:
		d.floats = make([]float64, n, max(n, 256)) // see lookUp
		if !decodeFloats(d.floats, body, t == table.Float32) {
			return nil, errValues
		}
	case table.Ints:
		d.ints = make([]int64, n, max(n, 256))
		wide := physical(t) == format.Int64
		if wide && len(body) != 8*n || !wide && len(body) != 4*n {
			return nil, errValues
		}
		for i := range d.ints {
			if wide {
				d.ints[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
			} else {
				d.ints[i] = widen(t, binary.LittleEndian.Uint32(body[4*i:]))
			}
		}
	case table.Bytes:
		d.bytes = &table.Dict{Offsets: make([]uint32, 1, n+2), Data: make([]byte, 0, max(0, len(body)-4*n))}
		for range n {
			if len(body) < 4 || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-4) {
				return nil, errValues
			}
			size := binary.LittleEndian.Uint32(body)
			d.bytes.Data = append(d.bytes.Data, body[4:4+size]...)
			d.bytes.Offsets = append(d.bytes.Offsets, uint32(len(d.bytes.Data)))
			body = body[4+size:]
		}
		if len(body) != 0 {
			return nil, errValues
		}
		if n == 0 { // all rows are null, and their codes must still be codes
			d.bytes.Offsets = append(d.bytes.Offsets, 0)
		}
	default:
		return nil, fmt.Errorf("dictionary of %s", t)
	}
	return d, nil
}

func (s *scratch) dataPage(c *chunkInfo, p *pageInfo, raw []byte, dict *dictionary) (*page, error) {
	head, body, err := s.header(raw)
	if err != nil {
		return nil, err
	}
	h, ok := head.DataPageHeaderV2.Get()
	rows := p.end - p.first
	if !ok || int(h.NumValues) != rows || h.NumNulls < 0 || int(h.NumNulls) > rows {
		return nil, fmt.Errorf("page is not one of %d rows", rows)
	}
	levels := int(h.DefinitionLevelsByteLength)
	if levels < 0 || levels > len(body) || levels > int(head.UncompressedPageSize) {
		return nil, errValues
	}
	out := &page{vec: table.Vector{Type: c.typ, Len: rows}}
	if h.NumNulls > 0 {
		if out.vec.Valid, err = decodeLevels(body[:levels], rows); err != nil {
			return nil, err
		}
		if countNulls(out.vec.Valid, rows) != int(h.NumNulls) {
			return nil, errValues
		}
	}
	values := body[levels:]
	if c.codec == format.Zstd && h.IsCompressed.V {
		if values, err = s.inflate(values, int(head.UncompressedPageSize)-levels); err != nil {
			return nil, err
		}
	}
	return out, s.values(out, values, h.Encoding, dict, rows-int(h.NumNulls))
}

// values decodes the n values of a page's rows that are not null.
func (s *scratch) values(p *page, src []byte, enc format.Encoding, dict *dictionary, n int) error {
	v := &p.vec
	if enc == format.RLEDictionary {
		return s.coded(p, src, dict, n)
	}
	switch layout := v.Type.Layout(); {
	case layout == table.Ints && enc == format.DeltaBinaryPacked:
		return s.deltaInts(p, src, n)
	case layout == table.Floats && (enc == format.Plain || enc == format.ByteStreamSplit):
		v.Floats = make([]float64, v.Len)
		dst := room(&s.floats, v.Floats, n)
		decode := decodeFloats
		if enc == format.ByteStreamSplit {
			decode = decodeSplit
		}
		if !decode(dst, src, v.Type == table.Float32) {
			return errValues
		}
		spread(v.Floats, dst, v.Valid)
	case layout == table.Bools && enc == format.Plain:
		if len(src) != (n+7)/8 {
			return errValues
		}
		v.Bools = make([]bool, v.Len)
		dst := room(&s.bools, v.Bools, n)
		for i := range dst {
			dst[i] = src[i>>3]>>(i&7)&1 != 0
		}
		spread(v.Bools, dst, v.Valid)
	case layout == table.Bytes && enc == format.DeltaLengthByteArray:
		return s.lengths(v, src, n)
	default:
		return fmt.Errorf("encoding %s of %s is not one of format version 1", enc, v.Type)
	}
	return nil
}

// coded decodes dictionary codes.
func (s *scratch) coded(p *page, src []byte, dict *dictionary, n int) error {
	v := &p.vec
	if dict == nil || len(src) == 0 || n > 0 && dict.n == 0 || v.Type.Layout() == table.Bools {
		return errValues
	}
	codes := grow(&s.codes, v.Len)
	dst := room(&s.dense, codes, n)
	if err := decodeHybrid(dst, src[1:], int(src[0]), uint32(dict.n)); err != nil {
		return err
	}
	spread(codes, dst, v.Valid)
	switch {
	case dict.bytes != nil:
		v.Dict = dict.bytes
		p.pack.packCodes(codes, uint32(max(dict.n, 1)-1))
	case dict.n > 0:
		p.pack.numbers = dict
		p.pack.packCodes(codes, uint32(dict.n-1))
	case dict.floats != nil: // all rows are null
		v.Floats = make([]float64, v.Len)
	default:
		v.Ints = make([]int64, v.Len)
	}
	return nil
}

// deltaCount reports whether delta-packed data says that it has n values. The
// decoder allocates for as many as it says.
func deltaCount(src []byte, n int) bool {
	for i := range 3 { // block size, mini-blocks, values
		v, k := binary.Uvarint(src)
		if k <= 0 {
			return false
		}
		if i == 2 {
			return v == uint64(n)
		}
		src = src[k:]
	}
	return false
}

func (s *scratch) deltaInts(p *page, src []byte, n int) (err error) {
	var enc delta.BinaryPackedEncoding
	if !deltaCount(src, n) {
		return errValues
	}
	v := &p.vec
	all := grow(&s.all, v.Len)
	dst := room(&s.ints, all, n)
	if physical(v.Type) == format.Int64 {
		var got []int64
		if got, err = enc.DecodeInt64(dst[:0], src); err != nil || len(got) != n {
			return errors.Join(errValues, err)
		}
		if n > 0 && &got[0] != &dst[0] {
			copy(dst, got)
		}
	} else {
		if s.narrow, err = enc.DecodeInt32(s.narrow[:0], src); err != nil || len(s.narrow) != n {
			return errors.Join(errValues, err)
		}
		for i, x := range s.narrow {
			dst[i] = widen(v.Type, uint32(x))
		}
	}
	spread(all, dst, v.Valid)
	if !p.pack.packInts(all, v.Valid, grow(&s.codes, v.Len)) {
		v.Ints = slices.Clone(all)
	}
	return nil
}

func (s *scratch) lengths(v *table.Vector, src []byte, n int) (err error) {
	var enc delta.LengthByteArrayEncoding
	if !deltaCount(src, n) {
		return errValues
	}
	var data []byte
	if data, s.offsets, err = enc.DecodeByteArray(nil, src, s.offsets); err != nil || len(s.offsets) != n+1 {
		return errors.Join(errValues, err)
	}
	v.Data, v.Offsets = data, make([]uint32, v.Len+1)
	if v.Valid == nil {
		copy(v.Offsets, s.offsets)
		return nil
	}
	k := 0
	for i := range v.Len {
		if v.Valid.Get(i) {
			k++
		}
		v.Offsets[i+1] = s.offsets[k]
	}
	return nil
}

// room returns where to decode n values: out itself if there are no nulls.
func room[T any](buf *[]T, out []T, n int) []T {
	if n == len(out) {
		return out
	}
	return grow(buf, n)
}

func grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// spread puts the values of src, of which some rows have none, into their
// rows; those get zero.
func spread[T any](out, src []T, valid table.Bitmap) {
	if valid == nil {
		return
	}
	var zero T
	k := 0
	for i := range out {
		out[i] = zero
		if valid.Get(i) {
			out[i] = src[k]
			k++
		}
	}
}
