package duckdb

// #include "glue.h"
import "C"

import "unsafe"

// A Chunk is up to VectorSize rows of a result, in memory of DuckDB's.
type Chunk struct {
	Len     int
	Vectors []Vector

	c     C.duckdb_data_chunk
	raw   []C.duckdb_vector
	data  []unsafe.Pointer
	valid []*C.uint64_t
}

func (c *Chunk) free() {
	if c.c != nil {
		C.duckdb_destroy_data_chunk(&c.c)
	}
}

func (c *Chunk) read(columns []Column) {
	n := len(columns)
	if c.Vectors == nil {
		c.Vectors = make([]Vector, n)
		c.raw, c.data, c.valid = make([]C.duckdb_vector, n), make([]unsafe.Pointer, n), make([]*C.uint64_t, n)
	}
	c.Len = int(C.duckdb_data_chunk_get_size(c.c))
	if n == 0 || c.Len == 0 {
		return
	}
	C.varve_read(c.c, C.idx_t(n), &c.raw[0], &c.data[0], &c.valid[0])
	for i := range c.Vectors {
		v := &c.Vectors[i]
		v.Type, v.data, v.valid = columns[i].Type, c.data[i], (*uint64)(c.valid[i])
		v.readChildren(c.raw[i])
	}
}

// A Vector is the values of one column of a chunk, or of what is nested in it.
type Vector struct {
	Type     *Type
	Children []Vector

	data  unsafe.Pointer
	valid *uint64
}

func (v *Vector) readChildren(raw C.duckdb_vector) {
	if len(v.Type.Children) == 0 {
		return
	}
	if v.Children == nil {
		v.Children = make([]Vector, len(v.Type.Children))
	}
	for i := range v.Children {
		var child C.duckdb_vector
		switch v.Type.ID {
		case Struct:
			child = C.duckdb_struct_vector_get_child(raw, C.idx_t(i))
		case Array:
			child = C.duckdb_array_vector_get_child(raw)
		default:
			child = C.duckdb_list_vector_get_child(raw)
		}
		c := &v.Children[i]
		c.Type = v.Type.Children[i]
		c.data = C.duckdb_vector_get_data(child)
		c.valid = (*uint64)(C.duckdb_vector_get_validity(child))
		c.readChildren(child)
	}
}

// IsNull reports whether row i is null.
func (v *Vector) IsNull(i int) bool {
	return v.valid != nil && unsafe.Slice(v.valid, i>>6+1)[i>>6]>>(i&63)&1 == 0
}

// Validity returns the bits of n rows, set where a row is not null; nil: all.
func (v *Vector) Validity(n int) []uint64 {
	if v.valid == nil {
		return nil
	}
	return unsafe.Slice(v.valid, (n+63)/64)
}

// Values returns the first n values of a vector whose values are of T's size.
func Values[T any](v *Vector, n int) []T { return unsafe.Slice((*T)(v.data), n) }

// At returns value i of a vector whose values are of T's size.
func At[T any](v *Vector, i int) T {
	var t T
	return *(*T)(unsafe.Add(v.data, uintptr(i)*unsafe.Sizeof(t)))
}

// Bytes returns string i, which is good as long as the chunk.
func (v *Vector) Bytes(i int) []byte {
	s := unsafe.Add(v.data, i*16)
	n := *(*uint32)(s)
	if n <= 12 {
		return unsafe.Slice((*byte)(unsafe.Add(s, 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Add(s, 8)), n)
}

// An Entry is where a list's values lie in its child.
type Entry struct{ Offset, Length uint64 }

// A HugeValue is a 128-bit integer.
type HugeValue struct {
	Lower uint64
	Upper int64
}

// An IntervalValue is an interval.
type IntervalValue struct {
	Months, Days int32
	Micros       int64
}
