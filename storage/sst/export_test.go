package sst

import (
	"context"
	"io"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// SetViewRows makes views of spans from n rows on.
func SetViewRows(s run.Source, n int) { s.(*scan).viewRows = n }

// ParseSeries decodes a series index that was decompressed.
func ParseSeries(raw []byte, types []table.Type, rows int64) (*SeriesIndex, error) {
	return parseSeries(raw, types, rows)
}

// EncodeSeries returns the series index of a file of src's rows, before
// compression.
func EncodeSeries(schema *table.Schema, src run.Source) []byte {
	f, err := newFileWriter(io.Discard, schema, WriteOptions{SeriesRows: 1}.withDefaults())
	if err != nil {
		panic(err)
	}
	for b, err := src.Next(context.Background()); b != nil || err != nil; b, err = src.Next(context.Background()) {
		if err != nil || f.append(b) != nil {
			panic("encode")
		}
	}
	return f.series.encode(f.meta.Rows + int64(f.rows))
}
