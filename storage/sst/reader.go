package sst

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/table"
)

// A Reader reads one SST. Any number of goroutines may use it. It holds the
// decoded footer and nothing else: drop it to free the memory.
type Reader struct {
	bucket objectstore.Bucket
	key    string
	meta   Meta
	cache  *cache.Cache
	file   uint64 // names the file's pages in the cache
	footer *footer
	chunks []lazyChunk // of all row groups, group by group

	noSeries atomic.Bool // the series index is damaged
}

// Open reads and verifies the footer of the SST at key. The pages that scans
// decode are kept in c, and found again there by every Reader that is opened
// with the same number, which the file got from cache.NewFile.
func Open(ctx context.Context, bucket objectstore.Bucket, key string, meta Meta, c *cache.Cache, number uint64) (*Reader, error) {
	if meta.Format > FormatVersion {
		return nil, fault.Errorf(fault.Unsupported, "sst %s has format version %d; this program reads up to %d",
			key, meta.Format, FormatVersion)
	}
	r := &Reader{bucket: bucket, key: key, meta: meta, cache: c, file: number}
	size := meta.Size - meta.TailOffset
	if meta.TailOffset < 0 || size < 8 {
		return nil, r.damaged(meta.TailOffset, errors.New("size and tail offset in the manifest make no sense"))
	}
	tail := make([]byte, size)
	if err := r.read(ctx, meta.TailOffset, tail); err != nil {
		return nil, err
	}
	if crc := crc32.Checksum(tail, castagnoli); crc != meta.FooterCRC {
		return nil, r.damaged(meta.TailOffset, fmt.Errorf("footer has CRC %08x, not %08x", crc, meta.FooterCRC))
	}
	if err := r.parse(tail, meta.TailOffset); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) parse(tail []byte, base int64) (err error) {
	defer r.guard(base, &err)
	if r.footer, err = parseFooter(tail, base); err != nil {
		return r.damaged(base, err)
	}
	r.chunks = make([]lazyChunk, len(r.footer.groups)*len(r.footer.info.Columns))
	return nil
}

// Meta returns the file's description as given to Open.
func (r *Reader) Meta() Meta { return r.meta }

// Size returns about how many bytes the Reader holds in memory.
func (r *Reader) Size() int64 {
	// A decoded chunk takes about a KiB and its page indexes as much as their
	// encoded form twice.
	return int64(3*len(r.footer.tail) + 1024*len(r.chunks))
}

// A RowGroup describes one row group, the smallest unit of parallel scanning.
type RowGroup struct {
	Rows              int64
	Times             table.TimeRange
	FirstKey, LastKey []byte
}

// RowGroups returns the file's row groups in order.
func (r *Reader) RowGroups() []RowGroup {
	groups := make([]RowGroup, len(r.footer.info.Groups))
	for i, g := range r.footer.info.Groups {
		groups[i] = RowGroup{Rows: g.Rows, Times: g.Times, FirstKey: g.FirstKey, LastKey: g.LastKey}
	}
	return groups
}

// read reads bytes of the file. A file that ends early is damaged.
func (r *Reader) read(ctx context.Context, offset int64, p []byte) error {
	err := r.bucket.ReadRange(ctx, r.key, offset, p)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return r.damaged(offset, errors.New("the file ends early"))
	}
	if err != nil {
		return fmt.Errorf("read sst %s at offset %d: %w", r.key, offset, err)
	}
	return nil
}

func (r *Reader) damaged(offset int64, reason error) error {
	if d := (*Damaged)(nil); errors.As(reason, &d) {
		return reason
	}
	return &Damaged{Key: r.key, Offset: offset, Reason: reason.Error()}
}

// guard turns a panic of a decoder into *Damaged.
func (r *Reader) guard(offset int64, err *error) {
	if p := recover(); p != nil {
		*err = r.damaged(offset, fmt.Errorf("decoder: %v", p))
	}
}

// An extent is a stretch of the file with its CRC32C.
type extent struct {
	offset int64
	size   int32
	crc    uint32
}

// pageInfo is a data page: rows [first, end) of its row group.
type pageInfo struct {
	extent
	first, end int
}

// chunkInfo is what the footer says of a column chunk.
type chunkInfo struct {
	typ    table.Type
	codec  format.CompressionCodec
	pages  []pageInfo
	dict   extent   // size 0: none
	bloom  extent   // size 0: none
	total  bounds   // of all rows
	bounds []bounds // by page; nil: not known
}

// constant returns the chunk's only value if it has just one and no nulls.
func (c *chunkInfo) constant() (int64, bool) {
	return c.total.min.Int, c.total.known && c.total.nulls == 0 && c.total.min.Int == c.total.max.Int
}

// pageAt returns the index of the page with the given row.
func (c *chunkInfo) pageAt(row int) int {
	i, found := slices.BinarySearchFunc(c.pages, row, func(p pageInfo, row int) int { return p.first - row })
	if found {
		return i
	}
	return i - 1
}

// A lazyChunk is decoded at its first use: most queries use few columns.
type lazyChunk struct {
	once sync.Once
	info *chunkInfo
	err  error
}

func (r *Reader) chunkIndex(group, column int) uint32 {
	return uint32(group*len(r.footer.info.Columns) + column)
}

// chunk returns the description of a column chunk.
func (r *Reader) chunk(group, column int) (*chunkInfo, error) {
	l := &r.chunks[r.chunkIndex(group, column)]
	l.once.Do(func() {
		defer r.guard(r.footer.base, &l.err)
		info, err := r.footer.chunk(group, column)
		if err != nil {
			l.err = r.damaged(r.footer.base, fmt.Errorf("row group %d, column %d: %w", group, column, err))
			return
		}
		l.info = info
	})
	return l.info, l.err
}

// chunk decodes the description of a column chunk.
func (f *footer) chunk(group, column int) (*chunkInfo, error) {
	src, rows := &f.groups[group].Columns[column], int(f.groups[group].NumRows)
	md := &src.MetaData
	c := &chunkInfo{typ: f.info.Columns[column].Type, codec: md.Codec}
	c.total = statBounds(c.typ, &md.Statistics, rows)
	b, err := f.section(src.OffsetIndexOffset, src.OffsetIndexLength)
	if err != nil {
		return nil, err
	}
	var locations format.OffsetIndex
	if err := thrift.Unmarshal(&compact, b, &locations); err != nil {
		return nil, fmt.Errorf("decode offset index: %w", err)
	}
	if md.DictionaryPageOffset > 0 {
		c.dict = extent{offset: md.DictionaryPageOffset, size: int32(md.DataPageOffset - md.DictionaryPageOffset)}
	}
	if md.BloomFilterOffset > 0 {
		c.bloom = extent{offset: md.BloomFilterOffset, size: md.BloomFilterLength}
	}
	for _, l := range locations.PageLocations {
		c.pages = append(c.pages, pageInfo{
			extent: extent{offset: l.Offset, size: l.CompressedPageSize},
			first:  int(l.FirstRowIndex),
		})
	}
	if err := c.closePages(rows, f.base); err != nil {
		return nil, err
	}
	if err := c.setCRCs(md.KeyValueMetadata); err != nil {
		return nil, err
	}
	if src.ColumnIndexOffset == 0 {
		return c, nil
	}
	return c, f.addBounds(c, src)
}

// closePages sets the ends of the pages and checks that they cover all rows.
func (c *chunkInfo) closePages(rows int, fileEnd int64) error {
	for i := range c.pages {
		p := &c.pages[i]
		if p.end = rows; i+1 < len(c.pages) {
			p.end = c.pages[i+1].first
		}
		if p.end <= p.first || p.size <= 0 || p.offset < 0 || p.offset+int64(p.size) > fileEnd {
			return fmt.Errorf("page %d has rows [%d, %d) in %d bytes at %d", i, p.first, p.end, p.size, p.offset)
		}
	}
	if len(c.pages) == 0 || c.pages[0].first != 0 {
		return errors.New("pages do not begin with row 0")
	}
	return nil
}

func (c *chunkInfo) setCRCs(kvs []format.KeyValue) error {
	i := slices.IndexFunc(kvs, func(kv format.KeyValue) bool { return kv.Key == crcKey })
	if i < 0 {
		return fmt.Errorf("no %s", crcKey)
	}
	crcs, err := base64.StdEncoding.DecodeString(kvs[i].Value)
	if err != nil {
		return fmt.Errorf("decode %s: %w", crcKey, err)
	}
	extents := make([]*extent, 0, len(c.pages)+2)
	if c.dict.size > 0 {
		extents = append(extents, &c.dict)
	}
	for i := range c.pages {
		extents = append(extents, &c.pages[i].extent)
	}
	if c.bloom.size > 0 {
		extents = append(extents, &c.bloom)
	}
	if len(crcs) != 4*len(extents) {
		return fmt.Errorf("%d bytes of checksums for %d extents", len(crcs), len(extents))
	}
	for i, x := range extents {
		x.crc = binary.LittleEndian.Uint32(crcs[4*i:])
	}
	return nil
}

// addBounds decodes the column index.
func (f *footer) addBounds(c *chunkInfo, src *format.ColumnChunk) error {
	b, err := f.section(src.ColumnIndexOffset, src.ColumnIndexLength)
	if err != nil {
		return err
	}
	var index format.ColumnIndex
	if err := thrift.Unmarshal(&compact, b, &index); err != nil {
		return fmt.Errorf("decode column index: %w", err)
	}
	n := len(c.pages)
	if len(index.NullPages) != n || len(index.NullCounts) != n || len(index.MinValues) != n || len(index.MaxValues) != n {
		return fmt.Errorf("column index is not one of %d pages", n)
	}
	c.bounds = make([]bounds, n)
	for i := range c.bounds {
		b := &c.bounds[i]
		b.rows, b.nulls = c.pages[i].end-c.pages[i].first, int(index.NullCounts[i])
		if index.NullPages[i] {
			continue
		}
		var ok, ok2 bool
		b.min, ok = parsePlain(c.typ, index.MinValues[i])
		b.max, ok2 = parsePlain(c.typ, index.MaxValues[i])
		b.known = ok && ok2
	}
	return nil
}

// statBounds returns the bounds that a chunk's statistics state.
func statBounds(t table.Type, s *format.Statistics, rows int) bounds {
	b := bounds{rows: rows, nulls: int(s.NullCount)}
	if s.MinValue == nil || s.MaxValue == nil {
		return b
	}
	var ok, ok2 bool
	b.min, ok = parsePlain(t, s.MinValue)
	b.max, ok2 = parsePlain(t, s.MaxValue)
	b.known = ok && ok2
	return b
}
