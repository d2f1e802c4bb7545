// Package duckdb is the part of DuckDB's C interface that Varve uses: one
// database in memory, connections, prepared statements with streaming results,
// and table functions written in Go. It knows nothing of tables and SQL rules;
// those are in package query.
package duckdb

/*
#cgo CFLAGS: -O3 -DDUCKDB_STATIC_BUILD
#include "glue.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	_ "github.com/duckdb/duckdb-go-bindings" // links the library
)

// VectorSize is the number of rows of a full chunk.
const VectorSize = 2048

// An Error is what DuckDB said, taken apart.
type Error struct {
	Class   string // such as Parser, Binder, Catalog, Conversion, INTERRUPT
	Message string // without the class and without the quoted line
}

// Error returns the class and the message as DuckDB prints them.
func (e *Error) Error() string {
	if e.Class == "" {
		return e.Message
	}
	return e.Class + " Error: " + e.Message
}

// closedResult is what DuckDB puts before the error of a query that failed in
// one thread while another asked for its rows.
const closedResult = "Attempting to execute an unsuccessful or closed pending query result\nError: "

// newError splits a text such as "Binder Error: …\n\nLINE 1: …".
func newError(text string) *Error {
	if _, cause, ok := strings.Cut(text, closedResult); ok {
		text = cause
	}
	text, _, _ = strings.Cut(text, "\n\nLINE ")
	class, message, ok := strings.Cut(text, " Error: ")
	if !ok || len(class) > 40 || strings.ContainsAny(class, "\n\"'") {
		return &Error{Message: text}
	}
	return &Error{Class: class, Message: message}
}

// A Database is one DuckDB instance in memory.
type Database struct {
	db      C.duckdb_database
	helpers *helpers
}

// A Setting is a name and value of DuckDB's configuration.
type Setting struct{ Name, Value string }

// Open starts an instance of so many threads with the given settings, made in
// this order: without external access the directories cannot be changed any more.
func Open(threads int, settings []Setting) (*Database, error) {
	n := strconv.Itoa(threads)
	settings = append([]Setting{{"threads", n}, {"external_threads", n}}, settings...)
	var config C.duckdb_config
	if C.duckdb_create_config(&config) != C.DuckDBSuccess {
		return nil, errors.New("duckdb: create config")
	}
	defer C.duckdb_destroy_config(&config)
	for _, s := range settings {
		n, v := C.CString(s.Name), C.CString(s.Value)
		state := C.duckdb_set_config(config, n, v)
		C.free(unsafe.Pointer(n))
		C.free(unsafe.Pointer(v))
		if state != C.DuckDBSuccess {
			return nil, fmt.Errorf("duckdb: setting %s=%s is refused", s.Name, s.Value)
		}
	}
	d := &Database{}
	var text *C.char
	if C.duckdb_open_ext(nil, &d.db, config, &text) != C.DuckDBSuccess {
		defer C.duckdb_free(unsafe.Pointer(text))
		return nil, fmt.Errorf("duckdb: open: %w", newError(C.GoString(text)))
	}
	d.helpers = newHelpers(d.db, threads-1)
	return d, nil
}

// Close ends the instance; its connections must be closed before.
func (d *Database) Close() {
	d.helpers.close()
	C.duckdb_close(&d.db)
}

// A Conn is a connection. One goroutine uses it at a time, but for Interrupt.
type Conn struct {
	c       C.duckdb_connection
	helpers *helpers
}

// Connect opens a connection.
func (d *Database) Connect() (*Conn, error) {
	c := &Conn{helpers: d.helpers}
	if C.duckdb_connect(d.db, &c.c) != C.DuckDBSuccess {
		return nil, errors.New("duckdb: connect")
	}
	return c, nil
}

// Close closes the connection; its statements must be closed before.
func (c *Conn) Close() { C.duckdb_disconnect(&c.c) }

// Interrupt ends what the connection is running. Any goroutine may call it.
func (c *Conn) Interrupt() { C.duckdb_interrupt(c.c) }

// Exec runs statements that return nothing of interest.
func (c *Conn) Exec(sql string) error {
	text := C.CString(sql)
	defer C.free(unsafe.Pointer(text))
	var r C.duckdb_result
	defer C.duckdb_destroy_result(&r)
	if C.duckdb_query(c.c, text, &r) != C.DuckDBSuccess {
		return newError(C.GoString(C.duckdb_result_error(&r)))
	}
	return nil
}

// A Stmt is a prepared statement of one connection.
type Stmt struct {
	s       C.duckdb_prepared_statement
	helpers *helpers
	columns []Column
}

// Prepare parses and binds one statement.
func (c *Conn) Prepare(sql string) (*Stmt, error) {
	text := C.CString(sql)
	defer C.free(unsafe.Pointer(text))
	s := &Stmt{helpers: c.helpers}
	if C.duckdb_prepare(c.c, text, &s.s) != C.DuckDBSuccess {
		defer s.Close()
		return nil, newError(C.GoString(C.duckdb_prepare_error(s.s)))
	}
	return s, nil
}

// Columns returns the names and types of the statement's result.
func (s *Stmt) Columns() []Column {
	if s.columns != nil {
		return s.columns
	}
	columns := make([]Column, int(C.duckdb_prepared_statement_column_count(s.s)))
	for i := range columns {
		t := C.duckdb_prepared_statement_column_logical_type(s.s, C.idx_t(i))
		columns[i] = Column{takeString((*C.char)(unsafe.Pointer(C.duckdb_prepared_statement_column_name(s.s, C.idx_t(i))))), readType(t)}
		C.duckdb_destroy_logical_type(&t)
	}
	s.columns = columns
	return columns
}

// Close frees the statement; its results must be closed before.
func (s *Stmt) Close() { C.duckdb_destroy_prepare(&s.s) }

// BindText sets parameter i, counted from 1.
func (s *Stmt) BindText(i int, text string) error {
	p := (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
	if C.duckdb_bind_varchar_length(s.s, C.idx_t(i), p, C.idx_t(len(text))) != C.DuckDBSuccess {
		return fmt.Errorf("duckdb: bind parameter %d", i)
	}
	return nil
}

// Run starts the statement and returns when its first chunk is there. The
// result streams: DuckDB holds only a few chunks of it at any time.
func (s *Stmt) Run() (*Result, error) {
	var pending C.duckdb_pending_result
	defer C.duckdb_destroy_pending(&pending)
	if C.duckdb_pending_prepared_streaming(s.s, &pending) != C.DuckDBSuccess {
		return nil, newError(C.GoString(C.duckdb_pending_error(pending)))
	}
	r := &Result{r: new(C.duckdb_result), helpers: s.helpers}
	if !C.varve_work(pending, C.int64_t(soloTime)) {
		r.borrow()
		C.varve_work(pending, 0)
	}
	if text := C.duckdb_pending_error(pending); text != nil && *text != 0 {
		r.Close()
		return nil, newError(C.GoString(text))
	}
	if C.duckdb_execute_pending(pending, r.r) != C.DuckDBSuccess {
		defer r.Close()
		return nil, newError(C.GoString(C.duckdb_result_error(r.r)))
	}
	r.Columns = s.Columns()
	return r, nil
}

// Text runs the statement and returns the string in its first row and column.
// It does not stream, which for one row takes half the time.
func (s *Stmt) Text() (string, error) {
	var r C.duckdb_result
	defer C.duckdb_destroy_result(&r)
	if C.duckdb_execute_prepared(s.s, &r) != C.DuckDBSuccess {
		return "", newError(C.GoString(C.duckdb_result_error(&r)))
	}
	c := Chunk{c: C.duckdb_fetch_chunk(r)}
	defer c.free()
	if c.c == nil {
		return "", nil
	}
	c.read([]Column{{Type: &Type{ID: Varchar}}})
	if c.Len == 0 || c.Vectors[0].IsNull(0) {
		return "", nil
	}
	return string(c.Vectors[0].Bytes(0)), nil
}

// A Column is the name and type of a result's column.
type Column struct {
	Name string
	Type *Type
}

// A Result is a stream of chunks. One goroutine reads it at a time.
type Result struct {
	Columns []Column

	r        *C.duckdb_result
	chunk    Chunk
	chunks   int // so far
	helpers  *helpers
	borrowed bool
}

// borrow lets the helpers work until the result is closed.
func (r *Result) borrow() {
	if !r.borrowed {
		r.borrowed = true
		r.helpers.borrow()
	}
}

// Next returns the next chunk of at least one row, or nil at the end. A chunk
// is good until the next call.
func (r *Result) Next() (*Chunk, error) {
	for {
		r.chunk.free()
		if r.chunks++; r.chunks > soloChunks {
			r.borrow()
		}
		r.chunk.c = C.duckdb_fetch_chunk(*r.r)
		if r.chunk.c == nil {
			if text := C.duckdb_result_error(r.r); text != nil && *text != 0 {
				return nil, newError(C.GoString(text))
			}
			return nil, nil
		}
		if r.chunk.read(r.Columns); r.chunk.Len > 0 {
			return &r.chunk, nil
		}
	}
}

// Close frees the result. What still runs for it is ended.
func (r *Result) Close() {
	r.chunk.free()
	C.duckdb_destroy_result(r.r)
	if r.borrowed {
		r.borrowed = false
		r.helpers.giveBack()
	}
}
