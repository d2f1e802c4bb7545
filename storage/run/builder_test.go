package run_test

import (
	"fmt"
	"testing"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// The Dict of a Builder lives on from batch to batch. A batch is only charged
// for what it added, or a large one would end all that follow at their first
// row.
func TestBytesOfOneBatch(t *testing.T) {
	dict, codes := &table.Dict{Offsets: []uint32{0}}, []uint32{}
	for i := range uint32(1000) {
		dict.Data = fmt.Appendf(dict.Data, "value %d", i)
		dict.Offsets = append(dict.Offsets, uint32(len(dict.Data)))
		codes = append(codes, i)
	}
	src := &run.Batch{Len: 1000, Columns: []table.Vector{{Type: table.String, Len: 1000, Dict: dict, Codes: codes}}}
	b := run.NewBuilder([]table.Type{table.String}, false)
	b.Append(src, 0, 900)
	if b.Bytes() < 5000 {
		t.Errorf("900 new values are %d bytes", b.Bytes())
	}
	b.Take()
	b.Append(src, 0, 100)
	if b.Bytes() != 0 {
		t.Errorf("100 known values are %d bytes", b.Bytes())
	}
	b.Append(src, 0, 1000)
	if n := b.Bytes(); n < 500 || n > 2000 {
		t.Errorf("100 new values are %d bytes", n)
	}
}
