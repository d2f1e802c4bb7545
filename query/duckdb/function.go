package duckdb

// #include "glue.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"unsafe"

	"github.com/varvedb/varve/table"
)

// A Source is what a table function's argument stands for.
type Source interface {
	// Columns returns the names and types that the function answers with.
	Columns() []SourceColumn
	// Rows estimates the number of rows; negative: it is not known.
	Rows() int64
	// Scan begins a scan of the given columns, in this order; -1 is a column
	// of which only the number of rows matters. It returns the number of
	// threads that may call Worker.
	Scan(columns []int) (s Scan, threads int, err error)
}

// A SourceColumn is a column of a Source.
type SourceColumn struct {
	Name string
	Type table.Type
}

// A Scan is one scan of a Source.
type Scan interface {
	// Worker returns what one thread of DuckDB's reads from.
	Worker() Worker
	// Close is called once when DuckDB is done with the scan.
	Close()
}

// A Worker is used by one thread at a time.
type Worker interface {
	// Next returns the rows from..to of a batch, at most VectorSize of them and
	// from a multiple of 64; no batch means the end. The batch stays as it is
	// until the next call.
	Next() (b *table.Batch, from, to int, err error)
	// Copied is called when the rows of the last Next have been copied.
	Copied()
}

// Register makes a table function of one BIGINT, which find turns into its
// source.
func (c *Conn) Register(name string, find func(id int64) (Source, error)) error {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if C.varve_register(c.c, text, C.uintptr_t(cgo.NewHandle(find))) != C.DuckDBSuccess {
		return fmt.Errorf("duckdb: register function %s", name)
	}
	return nil
}

// RegisterGuards makes the functions varve_size, varve_width, varve_steps,
// varve_fits and varve_works, which tell the size of values and bound it.
func (c *Conn) RegisterGuards() error {
	if C.varve_register_guards(c.c) != C.DuckDBSuccess {
		return errors.New("duckdb: register the functions that bound others")
	}
	return nil
}

// scan and worker are what the handles of DuckDB's init data lead to.
type (
	scan struct {
		Scan
		columns []int
		types   []table.Type
	}
	worker struct {
		Worker
		fill filler
	}
)

//export varveRelease
func varveRelease(h C.uintptr_t) {
	handle := cgo.Handle(h)
	switch v := handle.Value().(type) {
	case *scan:
		v.Close()
	case *worker:
		v.fill.close()
	}
	handle.Delete()
}

// caught turns a panic of a callback into an error of the query: it must not
// unwind through C++.
func caught(set func(*C.char)) {
	if p := recover(); p != nil {
		fail(set, fmt.Errorf("panic in scan: %v\n%s", p, debug.Stack()))
	}
}

func fail(set func(*C.char), err error) {
	text := C.CString(err.Error())
	set(text)
	C.free(unsafe.Pointer(text))
}

//export varveBind
func varveBind(info C.duckdb_bind_info) {
	set := func(text *C.char) { C.duckdb_bind_set_error(info, text) }
	defer caught(set)
	find := cgo.Handle(uintptr(C.duckdb_bind_get_extra_info(info))).Value().(func(int64) (Source, error))
	v := C.duckdb_bind_get_parameter(info, 0)
	id := int64(C.duckdb_get_int64(v))
	C.duckdb_destroy_value(&v)
	src, err := find(id)
	if err != nil {
		fail(set, err)
		return
	}
	for _, c := range src.Columns() {
		name := C.CString(c.Name)
		t := C.duckdb_create_logical_type(physical[c.Type].id)
		C.duckdb_bind_add_result_column(info, name, t)
		C.duckdb_destroy_logical_type(&t)
		C.free(unsafe.Pointer(name))
	}
	if rows := src.Rows(); rows >= 0 {
		C.duckdb_bind_set_cardinality(info, C.idx_t(rows), false)
	}
	C.varve_set_bind_data(info, C.uintptr_t(cgo.NewHandle(src)))
}

//export varveInit
func varveInit(info C.duckdb_init_info) {
	set := func(text *C.char) { C.duckdb_init_set_error(info, text) }
	defer caught(set)
	src := cgo.Handle(uintptr(C.duckdb_init_get_bind_data(info))).Value().(Source)
	all := src.Columns()
	s := &scan{}
	for i := range C.duckdb_init_get_column_count(info) {
		// DuckDB asks for its row id column where it needs no column at all.
		c, t := int(C.duckdb_init_get_column_index(info, i)), table.InvalidType
		if c < 0 || c >= len(all) {
			c = -1
		} else {
			t = all[c].Type
		}
		s.columns, s.types = append(s.columns, c), append(s.types, t)
	}
	var threads int
	var err error
	if s.Scan, threads, err = src.Scan(s.columns); err != nil {
		fail(set, err)
		return
	}
	C.duckdb_init_set_max_threads(info, C.idx_t(max(threads, 1)))
	C.varve_set_init_data(info, C.uintptr_t(cgo.NewHandle(s)))
}

//export varveInitLocal
func varveInitLocal(info C.duckdb_init_info) {
	C.varve_set_init_data(info, C.uintptr_t(cgo.NewHandle(&worker{})))
}

//export varveFill
func varveFill(info C.duckdb_function_info, out C.duckdb_data_chunk) {
	set := func(text *C.char) { C.duckdb_function_set_error(info, text) }
	defer caught(set)
	s := cgo.Handle(uintptr(C.duckdb_function_get_init_data(info))).Value().(*scan)
	w := cgo.Handle(uintptr(C.duckdb_function_get_local_init_data(info))).Value().(*worker)
	if w.Worker == nil {
		w.Worker = s.Worker()
		w.fill.init(s.columns, s.types)
	}
	b, from, to, err := w.Next()
	switch {
	case err != nil:
		fail(set, err)
	case b == nil:
		C.duckdb_data_chunk_set_size(out, 0)
	default:
		w.fill.fill(out, b, from, to)
		w.Copied()
	}
}
