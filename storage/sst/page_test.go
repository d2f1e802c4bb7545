package sst

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// FuzzPage decodes pages whose checksum is right and whose content may be
// anything, as one column type after the other. It ends in a page of the
// stated rows or in *Damaged, and never in a panic.
func FuzzPage(f *testing.F) {
	for _, page := range seedPages(f) {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &Reader{key: "fuzz"}
		x := extent{size: int32(len(raw)), crc: crc32.Checksum(raw, castagnoli)}
		for typ := table.Boolean; typ.Known(); typ++ {
			for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Zstd} {
				c := &chunkInfo{typ: typ, codec: codec, dict: x}
				dict, err := r.decodeDictionary(c, raw)
				wantDamaged(t, err)
				if dict == nil {
					dict = anyDictionary(typ)
				}
				for _, rows := range []int{1, 3, 40} {
					p, err := r.decodePage(c, &pageInfo{extent: x, end: rows}, raw, dict)
					wantDamaged(t, err)
					if err == nil {
						touch(p, rows)
					}
				}
			}
		}
	})
}

// anyDictionary returns a dictionary as pages of typ have it.
func anyDictionary(typ table.Type) *dictionary {
	switch typ.Layout() {
	case table.Floats:
		return &dictionary{n: 3, floats: []float64{1, 2, 3}}
	case table.Bytes:
		return &dictionary{n: 1, bytes: nullDict}
	default:
		return &dictionary{n: 3, ints: []int64{1, 2, 3}}
	}
}

func wantDamaged(t *testing.T, err error) {
	if d := (*Damaged)(nil); err != nil && !errors.As(err, &d) {
		t.Errorf("not *Damaged: %v", err)
	}
}

// touch copies every value, which panics if the vector is not whole.
func touch(p *page, rows int) {
	b := run.NewBuilder([]table.Type{p.vec.Type}, false)
	b.Append(&run.Batch{Len: rows, Columns: []table.Vector{p.rows(new(table.Vector), 0, rows)}}, 0, rows)
}

// seedPages returns the pages of a small file.
func seedPages(f *testing.F) (pages [][]byte) {
	schema := &table.Schema{Key: []table.ColumnID{1}, Columns: []table.Column{
		{ID: 1, Name: "host", Type: table.String, Role: table.Tag},
		{ID: 2, Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
		{ID: 3, Name: "v", Type: table.Float64, Role: table.Field},
		{ID: 4, Name: "s", Type: table.String, Role: table.Field},
		{ID: 5, Name: "b", Type: table.Boolean, Role: table.Field},
	}}
	n := 40
	b := &run.Batch{Len: n, Keys: [][]byte{table.AppendKeyBytes(nil, []byte("h"))}, Starts: []uint32{0}, Sequence: 1}
	v := table.Vector{Type: table.Float64, Len: n, Valid: table.NewBitmap(n)}
	s := table.Vector{Type: table.String, Len: n, Offsets: []uint32{0}}
	o := table.Vector{Type: table.Boolean, Len: n, Bools: make([]bool, n)}
	for i := range n {
		b.Times = append(b.Times, int64(i*i))
		v.Floats = append(v.Floats, float64(i)*1.1)
		if i%3 > 0 {
			v.Valid.Set(i)
		}
		s.Data = append(s.Data, byte('a'+i), 'x')
		s.Offsets = append(s.Offsets, uint32(len(s.Data)))
	}
	b.Columns = []table.Vector{v, s, o}
	var file bytes.Buffer
	meta, err := Write(context.Background(), &file, schema, &once{b}, WriteOptions{})
	if err != nil {
		f.Fatal(err)
	}
	footer, err := parseFooter(file.Bytes()[meta.TailOffset:], meta.TailOffset)
	if err != nil {
		f.Fatal(err)
	}
	for i := range footer.info.Columns {
		c, err := footer.chunk(0, i)
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range []extent{c.dict, c.pages[0].extent} {
			if x.size > 0 {
				pages = append(pages, file.Bytes()[x.offset:x.offset+int64(x.size)])
			}
		}
	}
	return pages
}

// once is a source of one batch.
type once struct{ b *run.Batch }

func (o *once) Close() {}

func (o *once) Next(context.Context) (*run.Batch, error) {
	b := o.b
	o.b = nil
	return b, nil
}
