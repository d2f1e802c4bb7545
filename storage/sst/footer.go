package sst

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/table"
)

const (
	magic = "PAR1"
	// fileKey is the key, in the file's metadata, of fileInfo as JSON.
	// The key varve.token_bloom is reserved for token blooms of full-text
	// columns; version 1 does not write it.
	fileKey = "varve.sst"
)

// fileInfo is what a file says of itself beyond Parquet.
type fileInfo struct {
	Format        int             `json:"format"`
	Region        table.RegionID  `json:"region"`
	SchemaVersion uint64          `json:"schema_version"`
	Columns       []columnInfo    `json:"columns"` // in the order of the file
	Rows          int64           `json:"rows"`
	Times         table.TimeRange `json:"times"`
	MinSequence   uint64          `json:"min_sequence"`
	MaxSequence   uint64          `json:"max_sequence"`
	Deletes       int64           `json:"deletes"`
	Repeats       int64           `json:"repeats"`
	PageRows      int             `json:"page_rows"` // every page ends at a multiple of it, or earlier
	Groups        []groupInfo     `json:"groups"`
	Series        *seriesInfo     `json:"series,omitempty"`
}

// columnInfo says which of our types a Parquet column has.
type columnInfo struct {
	ID   table.ColumnID `json:"id"`
	Name string         `json:"name"`
	Type table.Type     `json:"type"`
	Role table.Role     `json:"role"`
}

// groupInfo is what Parquet does not say of a row group.
type groupInfo struct {
	Rows     int64           `json:"rows"`
	Times    table.TimeRange `json:"times"`
	FirstKey []byte          `json:"first_key"`
	LastKey  []byte          `json:"last_key"`
	PageKeys [][]byte        `json:"page_keys"` // the series keys of rows 0, PageRows, 2*PageRows …
}

// A footerWriter collects what is written behind the last row group.
type footerWriter struct {
	groups []format.RowGroup
	infos  []groupInfo
	chunks [][]chunk
	series *seriesInfo
}

// addGroup adds a row group whose chunks were written from offset start on.
func (w *footerWriter) addGroup(f *fileWriter, chunks []chunk, start int64) {
	g := format.RowGroup{NumRows: int64(f.rows), FileOffset: start, Ordinal: int16(min(len(w.groups), 1<<15-1))}
	for i := range chunks {
		g.TotalByteSize += chunks[i].MetaData.TotalUncompressedSize
		g.TotalCompressedSize += chunks[i].MetaData.TotalCompressedSize
	}
	for i := range f.tags {
		g.SortingColumns = append(g.SortingColumns, format.SortingColumn{ColumnIdx: int32(i), NullsFirst: true})
	}
	n := len(f.columns)
	g.SortingColumns = append(g.SortingColumns,
		format.SortingColumn{ColumnIdx: int32(len(f.tags))},
		format.SortingColumn{ColumnIdx: int32(n - 2), Descending: true})
	w.groups = append(w.groups, g)
	w.infos = append(w.infos, f.group)
	w.chunks = append(w.chunks, chunks)
}

// write writes the page indexes and the Parquet footer, and completes f.meta.
func (w *footerWriter) write(f *fileWriter) error {
	tail, base := []byte(nil), f.offset
	index := func(v any) (offset int64, length int32, err error) {
		b, err := thrift.Marshal(&compact, v)
		offset = base + int64(len(tail))
		tail = append(tail, b...)
		return offset, int32(len(b)), err
	}
	// All column indexes, then all offset indexes: some readers read each kind
	// at once.
	var err error
	for c := range w.all() {
		if c.noIndex {
			continue
		}
		if c.ColumnIndexOffset, c.ColumnIndexLength, err = index(&c.columns); err != nil {
			return fmt.Errorf("encode column index: %w", err)
		}
	}
	for c := range w.all() {
		if c.OffsetIndexOffset, c.OffsetIndexLength, err = index(&c.offsets); err != nil {
			return fmt.Errorf("encode offset index: %w", err)
		}
	}
	for g, chunks := range w.chunks {
		for i := range chunks {
			w.groups[g].Columns = append(w.groups[g].Columns, chunks[i].ColumnChunk)
		}
	}
	md, err := w.metadata(f)
	if err != nil {
		return err
	}
	b, err := thrift.Marshal(&compact, md)
	if err != nil {
		return fmt.Errorf("encode parquet footer: %w", err)
	}
	tail = append(tail, b...)
	tail = binary.LittleEndian.AppendUint32(tail, uint32(len(b)))
	tail = append(tail, magic...)
	f.meta.TailOffset, f.meta.FooterCRC = base, crc32.Checksum(tail, castagnoli)
	if err := f.write(tail); err != nil {
		return err
	}
	f.meta.Size = f.offset
	return nil
}

// all iterates over the chunks of all row groups.
func (w *footerWriter) all() iter.Seq[*chunk] {
	return func(yield func(*chunk) bool) {
		for _, chunks := range w.chunks {
			for i := range chunks {
				if !yield(&chunks[i]) {
					return
				}
			}
		}
	}
}

func (w *footerWriter) metadata(f *fileWriter) (*format.FileMetaData, error) {
	info := fileInfo{
		Format: FormatVersion, Region: f.opts.Region, SchemaVersion: f.schema.Version,
		Rows: f.meta.Rows, Times: f.meta.Times,
		MinSequence: f.meta.MinSequence, MaxSequence: f.meta.MaxSequence,
		Deletes: f.meta.Deletes, Repeats: f.meta.Repeats,
		PageRows: f.opts.PageRows, Groups: w.infos, Series: w.series,
	}
	md := &format.FileMetaData{
		Version: 2, NumRows: f.meta.Rows, RowGroups: w.groups, CreatedBy: "varve sst v1",
		Schema: []format.SchemaElement{{Name: "row", NumChildren: thrift.New(int32(len(f.columns)))}},
	}
	for i := range f.columns {
		c := &f.columns[i]
		role := table.Field
		switch {
		case c.tag:
			role = table.Tag
		case c.isTime:
			role = table.Timestamp
		}
		info.Columns = append(info.Columns, columnInfo{ID: c.id, Name: c.name, Type: c.typ, Role: role})
		md.Schema = append(md.Schema, schemaElement(c.name, c.id, c.typ, c.required))
		md.ColumnOrders = append(md.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	text, err := json.Marshal(&info)
	if err != nil {
		return nil, fmt.Errorf("encode file info: %w", err)
	}
	md.KeyValueMetadata = []format.KeyValue{{Key: fileKey, Value: string(text)}}
	return md, nil
}

// A footer is the decoded footer of a file.
type footer struct {
	info    fileInfo
	columns map[table.ColumnID]int // position in info.Columns
	groups  []format.RowGroup
	starts  []int64 // the first row of each group in the file
	tail    []byte  // from tailOffset to the end
	base    int64   // tailOffset
}

// parseFooter decodes a tail that was verified, or is about to be described.
func parseFooter(tail []byte, base int64) (f *footer, err error) {
	f = &footer{tail: tail, base: base, columns: make(map[table.ColumnID]int)}
	body, err := footerBody(tail)
	if err != nil {
		return nil, err
	}
	var md format.FileMetaData
	if err := thrift.Unmarshal(&compact, body, &md); err != nil {
		return nil, fmt.Errorf("decode parquet footer: %w", err)
	}
	i := slices.IndexFunc(md.KeyValueMetadata, func(kv format.KeyValue) bool { return kv.Key == fileKey })
	if i < 0 {
		return nil, fmt.Errorf("footer has no %s", fileKey)
	}
	if err := json.Unmarshal([]byte(md.KeyValueMetadata[i].Value), &f.info); err != nil {
		return nil, fmt.Errorf("decode file info: %w", err)
	}
	f.groups = md.RowGroups
	return f, f.check()
}

// footerBody returns the thrift part of a tail.
func footerBody(tail []byte) ([]byte, error) {
	n := len(tail)
	if n < 8 || string(tail[n-4:]) != magic {
		return nil, fmt.Errorf("file does not end with %s", magic)
	}
	size := int64(binary.LittleEndian.Uint32(tail[n-8:]))
	if size > int64(n-8) {
		return nil, fmt.Errorf("footer of %d bytes is longer than the file's tail", size)
	}
	return tail[n-8-int(size) : n-8], nil
}

// check checks that the parts of a footer fit together.
func (f *footer) check() error {
	switch {
	case f.info.Format > FormatVersion:
		return fmt.Errorf("format version %d is newer than this program's %d", f.info.Format, FormatVersion)
	case f.info.Format < 1 || f.info.PageRows < 1 || len(f.info.Groups) != len(f.groups) || len(f.groups) == 0:
		return fmt.Errorf("file info does not fit the footer")
	}
	for i, c := range f.info.Columns {
		if !c.Type.Known() {
			return fmt.Errorf("column %q has unknown type %d", c.Name, c.Type)
		}
		f.columns[c.ID] = i
	}
	var rows int64
	for i := range f.groups {
		g := &f.groups[i]
		if g.NumRows < 1 || g.NumRows != f.info.Groups[i].Rows || len(g.Columns) != len(f.info.Columns) {
			return fmt.Errorf("row group %d does not fit the file info", i)
		}
		f.starts = append(f.starts, rows)
		rows += g.NumRows
	}
	if rows != f.info.Rows {
		return fmt.Errorf("row groups have %d rows, not %d", rows, f.info.Rows)
	}
	return nil
}

// section returns bytes of the tail by their offset in the file.
func (f *footer) section(offset int64, length int32) ([]byte, error) {
	from := offset - f.base
	if from < 0 || length < 0 || from+int64(length) > int64(len(f.tail)) {
		return nil, fmt.Errorf("section %d+%d lies outside the footer", offset, length)
	}
	return f.tail[from : from+int64(length)], nil
}
