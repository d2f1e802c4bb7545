package sst

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/table"
)

// Pages of a chunk that are not data pages, as the cache numbers them.
const (
	dictPage   = -1
	bloomPage  = -2
	seriesPage = -3
)

// coalesceGap is how many unwanted bytes are read to save a request, and
// maxRead the size at which a request ends all the same.
const (
	coalesceGap = 64 << 10
	maxRead     = 8 << 20
)

// A groupReader reads pages of one row group for one scan.
type groupReader struct {
	r       *Reader
	group   int
	stats   *table.ScanStats
	columns []columnReader // by column of the file
	wants   []want
}

// A columnReader is the pages of one chunk that a scan has asked for.
type columnReader struct {
	info  *chunkInfo // nil: not used yet
	pages []*page    // decoded; nil: not yet
	raw   [][]byte   // as read; nil: not wanted, or decoded
	asked []bool     // counted and looked for in the cache
	dict  *dictionary
	rawD  []byte // the dictionary page as read
}

// A want is an extent to be read.
type want struct {
	column, page int
	extent
}

func newGroupReader(r *Reader, group int, stats *table.ScanStats) *groupReader {
	return &groupReader{r: r, group: group, stats: stats, columns: make([]columnReader, len(r.footer.info.Columns))}
}

// column returns the reader of a column of the file.
func (g *groupReader) column(i int) (*columnReader, error) {
	c := &g.columns[i]
	if c.info != nil {
		return c, nil
	}
	info, err := g.r.chunk(g.group, i)
	if err != nil {
		return nil, err
	}
	c.info, c.pages, c.raw = info, make([]*page, len(info.pages)), make([][]byte, len(info.pages))
	c.asked = make([]bool, len(info.pages))
	return c, nil
}

func (g *groupReader) cacheKey(column, page int) cache.Key {
	return cache.Key{File: g.r.file, Chunk: g.r.chunkIndex(g.group, column), Page: int32(page)}
}

// want asks for the pages of a column that hold rows of spans. fetch reads
// them.
func (g *groupReader) want(column int, spans []span) error {
	c, err := g.column(column)
	if err != nil {
		return err
	}
	return c.info.cutSpans(spans, func(p int, _ span) error {
		if c.asked[p] {
			return nil
		}
		c.asked[p] = true
		g.stats.Pages.Add(1)
		if hit, ok := g.r.cache.Get(g.cacheKey(column, p)).(*page); ok {
			g.stats.CacheHits.Add(1)
			c.pages[p] = hit
			return nil
		}
		g.wants = append(g.wants, want{column, p, c.info.pages[p].extent})
		g.wantDictionary(c, column)
		return nil
	})
}

func (g *groupReader) wantDictionary(c *columnReader, column int) {
	if c.info.dict.size == 0 || c.dict != nil || c.rawD != nil {
		return
	}
	if hit, ok := g.r.cache.Get(g.cacheKey(column, dictPage)).(*dictionary); ok {
		c.dict = hit
		return
	}
	c.rawD = []byte{} // asked for
	g.wants = append(g.wants, want{column, dictPage, c.info.dict})
}

// fetch reads what was asked for, neighbours together.
func (g *groupReader) fetch(ctx context.Context) error {
	slices.SortFunc(g.wants, func(a, b want) int { return cmp.Compare(a.offset, b.offset) })
	for i := 0; i < len(g.wants); {
		start, end, j := g.wants[i].offset, g.wants[i].offset+int64(g.wants[i].size), i+1
		for ; j < len(g.wants); j++ {
			w := &g.wants[j]
			if w.offset-end > coalesceGap || w.offset+int64(w.size)-start > maxRead {
				break
			}
			end = max(end, w.offset+int64(w.size))
		}
		buf := make([]byte, end-start)
		if err := g.r.read(ctx, start, buf); err != nil {
			return err
		}
		g.stats.BytesRead.Add(int64(len(buf)))
		for _, w := range g.wants[i:j] {
			g.deliver(&w, buf[w.offset-start:][:w.size:w.size])
		}
		i = j
	}
	g.wants = g.wants[:0]
	return nil
}

func (g *groupReader) deliver(w *want, raw []byte) {
	c := &g.columns[w.column]
	if w.page == dictPage {
		c.rawD = raw
	} else {
		c.raw[w.page] = raw
	}
}

// page returns a page that was fetched, decoding it at its first use.
func (g *groupReader) page(column, p int) (*page, error) {
	c := &g.columns[column]
	if c.pages[p] != nil {
		return c.pages[p], nil
	}
	if len(c.rawD) > 0 && c.dict == nil {
		d, err := g.r.decodeDictionary(c.info, c.rawD)
		if err != nil {
			return nil, err
		}
		c.dict, c.rawD = d, nil
		g.r.cache.Put(g.cacheKey(column, dictPage), d)
	}
	out, err := g.r.decodePage(c.info, &c.info.pages[p], c.raw[p], c.dict)
	if err != nil {
		return nil, err
	}
	c.pages[p], c.raw[p] = out, nil
	g.r.cache.Put(g.cacheKey(column, p), out)
	return out, nil
}

// A bloomFilter is a bloom filter in the cache.
type bloomFilter struct{ blocks bloom.SplitBlockFilter }

// Size returns the filter's bytes in memory.
func (b *bloomFilter) Size() int64 { return int64(len(b.blocks.Bytes())) }

// bloom returns the bloom filter of a column, or nil if it has none.
func (g *groupReader) bloom(ctx context.Context, column int) (*bloomFilter, error) {
	c, err := g.column(column)
	if err != nil || c.info.bloom.size == 0 {
		return nil, err
	}
	key := g.cacheKey(column, bloomPage)
	if hit, ok := g.r.cache.Get(key).(*bloomFilter); ok {
		return hit, nil
	}
	x := &c.info.bloom
	raw := make([]byte, x.size)
	if err := g.r.read(ctx, x.offset, raw); err != nil {
		return nil, err
	}
	g.stats.BytesRead.Add(int64(len(raw)))
	b, err := g.r.decodeBloom(x, raw)
	if err != nil {
		return nil, err
	}
	g.r.cache.Put(key, b)
	return b, nil
}

func (r *Reader) decodeBloom(x *extent, raw []byte) (b *bloomFilter, err error) {
	defer r.guard(x.offset, &err)
	if err := x.verify(raw); err != nil {
		return nil, r.damaged(x.offset, err)
	}
	in := compact.NewReaderFromBytes(raw)
	var h format.BloomFilterHeader
	if err := thrift.NewDecoder(in).Decode(&h); err != nil {
		return nil, r.damaged(x.offset, fmt.Errorf("decode bloom filter: %w", err))
	}
	body := raw[in.BytesRead():]
	if len(body) != int(h.NumBytes) || len(body) == 0 || len(body)%bloom.BlockSize != 0 {
		return nil, r.damaged(x.offset, fmt.Errorf("bloom filter of %d bytes has %d", h.NumBytes, len(body)))
	}
	return &bloomFilter{bloom.MakeSplitBlockFilter(body)}, nil
}
