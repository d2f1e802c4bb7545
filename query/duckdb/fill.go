package duckdb

// #include "glue.h"
import "C"

import (
	"unsafe"

	"github.com/varvedb/varve/table"
)

// physical says how a column of each type is stored by DuckDB.
var physical = [...]struct {
	id    C.duckdb_type
	width int // bytes of a value; 0: a string
}{
	table.InvalidType:          {C.DUCKDB_TYPE_BIGINT, 8},
	table.Boolean:              {C.DUCKDB_TYPE_BOOLEAN, 1},
	table.Int8:                 {C.DUCKDB_TYPE_TINYINT, 1},
	table.Int16:                {C.DUCKDB_TYPE_SMALLINT, 2},
	table.Int32:                {C.DUCKDB_TYPE_INTEGER, 4},
	table.Int64:                {C.DUCKDB_TYPE_BIGINT, 8},
	table.UInt8:                {C.DUCKDB_TYPE_UTINYINT, 1},
	table.UInt16:               {C.DUCKDB_TYPE_USMALLINT, 2},
	table.UInt32:               {C.DUCKDB_TYPE_UINTEGER, 4},
	table.UInt64:               {C.DUCKDB_TYPE_UBIGINT, 8},
	table.Float32:              {C.DUCKDB_TYPE_FLOAT, 4},
	table.Float64:              {C.DUCKDB_TYPE_DOUBLE, 8},
	table.String:               {C.DUCKDB_TYPE_VARCHAR, 0},
	table.Binary:               {C.DUCKDB_TYPE_BLOB, 0},
	table.Date:                 {C.DUCKDB_TYPE_DATE, 4},
	table.TimestampSecond:      {C.DUCKDB_TYPE_TIMESTAMP_S, 8},
	table.TimestampMillisecond: {C.DUCKDB_TYPE_TIMESTAMP_MS, 8},
	table.TimestampMicrosecond: {C.DUCKDB_TYPE_TIMESTAMP, 8},
	table.TimestampNanosecond:  {C.DUCKDB_TYPE_TIMESTAMP_NS, 8},
}

// A filler copies rows of batches into chunks of DuckDB's, for one thread.
type filler struct {
	source  []int // per output column its column in the batch; -1: none
	types   []table.Type
	vectors []C.duckdb_vector
	data    []unsafe.Pointer
	dicts   []dictVector
}

// A dictVector is the dictionary that a column had last, and the vector made of
// it once enough rows have used it to be worth one.
type dictVector struct {
	dict   *table.Dict
	rows   int
	vector C.duckdb_vector
}

// dictReuse is how many rows an entry must serve on average before its
// dictionary becomes a vector.
const dictReuse = 4

// init takes the columns of the scan. A batch holds those that are not -1, in
// the same order.
func (f *filler) init(columns []int, types []table.Type) {
	n := len(columns)
	f.types = types
	f.source = make([]int, n)
	next := 0
	for i, c := range columns {
		f.source[i] = -1
		if c >= 0 {
			f.source[i] = next
			next++
		}
	}
	f.vectors, f.data, f.dicts = make([]C.duckdb_vector, n), make([]unsafe.Pointer, n), make([]dictVector, n)
}

func (f *filler) close() {
	for i := range f.dicts {
		f.dicts[i].free()
	}
}

func (d *dictVector) free() {
	if d.vector != nil {
		C.duckdb_destroy_vector(&d.vector)
	}
}

// fill copies the rows from..to of b.
func (f *filler) fill(out C.duckdb_data_chunk, b *table.Batch, from, to int) {
	if len(f.vectors) > 0 {
		C.varve_vectors(out, C.idx_t(len(f.vectors)), &f.vectors[0], &f.data[0])
	}
	for i, s := range f.source {
		if s < 0 {
			clear(unsafe.Slice((*int64)(f.data[i]), to-from))
			continue
		}
		f.column(i, &b.Columns[s], from, to)
	}
	C.duckdb_data_chunk_set_size(out, C.idx_t(to-from))
}

func (f *filler) column(i int, v *table.Vector, from, to int) {
	n := to - from
	bits := validBits(v.Valid, from, to)
	if v.Type.Layout() == table.Bytes {
		f.strings(i, v, bits, from, n)
		return
	}
	switch v.Type.Layout() {
	case table.Bools:
		copy(unsafe.Slice((*bool)(f.data[i]), n), v.Bools[from:to])
	case table.Floats:
		if v.Type == table.Float32 {
			C.varve_narrow_float((*C.float)(f.data[i]), (*C.double)(&v.Floats[from]), C.idx_t(n))
		} else {
			copy(unsafe.Slice((*float64)(f.data[i]), n), v.Floats[from:to])
		}
	default:
		if w := physical[v.Type].width; w < 8 {
			C.varve_narrow_int(f.data[i], (*C.int64_t)(&v.Ints[from]), C.idx_t(n), C.int(w))
		} else {
			copy(unsafe.Slice((*int64)(f.data[i]), n), v.Ints[from:to])
		}
	}
	if bits != nil {
		C.varve_validity(f.vectors[i], (*C.uint64_t)(&bits[0]), C.idx_t(n))
	}
}

func (f *filler) strings(i int, v *table.Vector, bits table.Bitmap, from, n int) {
	var mask *C.uint64_t
	if bits != nil {
		mask = (*C.uint64_t)(&bits[0])
	}
	if v.Dict == nil {
		C.varve_strings(f.vectors[i], (*C.uint32_t)(&v.Offsets[from]), bytesPointer(v.Data), mask, C.idx_t(n))
	} else if d := f.dictionary(i, v, n); d != nil {
		C.varve_slice(f.vectors[i], d, (*C.uint32_t)(&v.Codes[from]), mask, C.idx_t(n), C.uint32_t(v.Dict.Len()))
		return
	} else {
		offsets := v.Dict.Offsets
		if len(offsets) == 0 {
			offsets = []uint32{0} // every row is null
		}
		C.varve_coded(f.vectors[i], (*C.uint32_t)(&v.Codes[from]), (*C.uint32_t)(&offsets[0]),
			bytesPointer(v.Dict.Data), mask, C.idx_t(n))
	}
	if bits != nil {
		C.varve_validity(f.vectors[i], mask, C.idx_t(n))
	}
}

// dictionary returns the vector of v's dictionary, or nil while too few rows
// have used it.
func (f *filler) dictionary(i int, v *table.Vector, n int) C.duckdb_vector {
	d := &f.dicts[i]
	if d.dict != v.Dict {
		d.free()
		// The rows of the whole batch count, since all are to come.
		*d = dictVector{dict: v.Dict, rows: v.Len - n}
	}
	d.rows += n
	if d.vector == nil && v.Dict.Len() > 0 && v.Dict.Len() <= d.rows/dictReuse {
		d.vector = C.varve_dictionary(physical[v.Type].id, (*C.uint32_t)(&v.Dict.Offsets[0]),
			bytesPointer(v.Dict.Data), C.idx_t(v.Dict.Len()))
	}
	return d.vector
}

// bytesPointer returns a pointer to b's first byte, also if it has none.
func bytesPointer(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// validBits returns the bits of the rows from..to, from being a multiple of 64;
// nil if all are set.
func validBits(b table.Bitmap, from, to int) table.Bitmap {
	if b == nil {
		return nil
	}
	b = b[from>>6:]
	n := to - from
	for i := range n >> 6 {
		if b[i] != ^uint64(0) {
			return b
		}
	}
	if rest := n & 63; rest != 0 && ^b[n>>6]<<(64-rest) != 0 {
		return b
	}
	return nil
}
