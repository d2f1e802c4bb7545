package sst

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/table"
)

// Describe prints a file: its schema, row groups, and column chunks with
// encodings and sizes. It needs no Meta, and so cannot verify the footer.
func Describe(ctx context.Context, bucket objectstore.Bucket, key string, w io.Writer) (err error) {
	r := &Reader{bucket: bucket, key: key}
	object, err := bucket.Stat(ctx, key)
	if err != nil {
		return fmt.Errorf("describe sst %s: %w", key, err)
	}
	defer r.guard(0, &err)
	if err := r.readTail(ctx, object.Size); err != nil {
		return err
	}
	p := &printer{w: w}
	p.file(r, object.Size)
	for g := range r.footer.groups {
		p.group(r, g)
	}
	return p.err
}

// Sequences returns the smallest and the largest sequence of a file's rows. It
// needs no Meta, and so cannot verify the footer.
func Sequences(ctx context.Context, bucket objectstore.Bucket, key string) (first, last uint64, err error) {
	r := &Reader{bucket: bucket, key: key}
	object, err := bucket.Stat(ctx, key)
	if err != nil {
		return 0, 0, fmt.Errorf("read sst %s: %w", key, err)
	}
	defer r.guard(0, &err)
	if err := r.readTail(ctx, object.Size); err != nil {
		return 0, 0, err
	}
	return r.footer.info.MinSequence, r.footer.info.MaxSequence, nil
}

// readTail finds the footer from the file's end. The page indexes, which lie
// before the Parquet footer, are read too.
func (r *Reader) readTail(ctx context.Context, size int64) error {
	if size < 12 {
		return r.damaged(0, fmt.Errorf("a file of %d bytes is too short", size))
	}
	end := make([]byte, 8)
	if err := r.read(ctx, size-8, end); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end)) + 8
	if string(end[4:]) != magic || n > size {
		return r.damaged(size-8, fmt.Errorf("file does not end with a footer and %s", magic))
	}
	tail := make([]byte, n)
	if err := r.read(ctx, size-n, tail); err != nil {
		return err
	}
	if err := r.parse(tail, size-n); err != nil {
		return err
	}
	first := size - n
	for g := range r.footer.groups {
		for i := range r.footer.groups[g].Columns {
			if at := r.footer.groups[g].Columns[i].OffsetIndexOffset; at > 0 {
				first = min(first, at)
			}
			if at := r.footer.groups[g].Columns[i].ColumnIndexOffset; at > 0 {
				first = min(first, at)
			}
		}
	}
	tail = make([]byte, size-first)
	if err := r.read(ctx, first, tail); err != nil {
		return err
	}
	return r.parse(tail, first)
}

// A printer prints until the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) file(r *Reader, size int64) {
	f := &r.footer.info
	p.printf("sst %s: format %d, %d bytes, %d rows\n", r.key, f.Format, size, f.Rows)
	p.printf("region %d/%d, schema version %d\n", f.Region.Table(), uint32(f.Region), f.SchemaVersion)
	p.printf("times [%d, %d], sequences [%d, %d], %d tombstones, %d repeats\n",
		f.Times.Min, f.Times.Max, f.MinSequence, f.MaxSequence, f.Deletes, f.Repeats)
	if s := f.Series; s != nil {
		p.printf("series index: %d series in %d bytes at %d\n", s.Series, s.Size, s.Offset)
	}
	p.printf("columns:\n")
	for _, c := range f.Columns {
		p.printf("  %10d %-24s %-21s %s\n", c.ID, c.Name, c.Type, c.Role)
	}
}

func (p *printer) group(r *Reader, g int) {
	info := &r.footer.info.Groups[g]
	p.printf("row group %d: %d rows, times [%d, %d], keys [%x, %x]\n",
		g, info.Rows, info.Times.Min, info.Times.Max, info.FirstKey, info.LastKey)
	for i := range r.footer.info.Columns {
		c, err := r.chunk(g, i)
		if err != nil {
			p.printf("  %-24s %v\n", r.footer.info.Columns[i].Name, err)
			continue
		}
		md := &r.footer.groups[g].Columns[i].MetaData
		p.printf("  %-24s %-11s %-23s %3d pages %10d bytes (%d raw) %d nulls%s\n", r.footer.info.Columns[i].Name,
			md.Codec, dataEncoding(md), len(c.pages), md.TotalCompressedSize, md.TotalUncompressedSize, c.total.nulls, rangeText(&c.total))
	}
}

// dataEncoding returns the encoding of a chunk's data pages.
func dataEncoding(md *format.ColumnMetaData) string {
	for _, s := range md.EncodingStats {
		if s.PageType == format.DataPageV2 {
			return s.Encoding.String()
		}
	}
	return "?"
}

func rangeText(b *bounds) string {
	if !b.known {
		return ""
	}
	switch b.min.Type.Layout() {
	case table.Floats:
		return fmt.Sprintf(" [%v, %v]", b.min.Float, b.max.Float)
	case table.Bytes:
		return fmt.Sprintf(" [%.40q, %.40q]", b.min.Bytes, b.max.Bytes)
	}
	if b.min.Type == table.UInt64 {
		return fmt.Sprintf(" [%d, %d]", uint64(b.min.Int), uint64(b.max.Int))
	}
	return fmt.Sprintf(" [%d, %d]", b.min.Int, b.max.Int)
}
