// Package table is the vocabulary of Varve: column types, schemas, columnar
// batches and rows, and the two interfaces through which everything above the
// storage engine writes and reads it.
//
// Nothing here does I/O, and nothing here assumes that a region is in this
// process.
package table

import "fmt"

// A Type is the type of a column's values as the user sees it.
type Type uint8

// The types. Their numbers are part of the file formats and never change.
const (
	InvalidType          Type = 0
	Boolean              Type = 1
	Int8                 Type = 2
	Int16                Type = 3
	Int32                Type = 4
	Int64                Type = 5
	UInt8                Type = 6
	UInt16               Type = 7
	UInt32               Type = 8
	UInt64               Type = 9
	Float32              Type = 10
	Float64              Type = 11
	String               Type = 12
	Binary               Type = 13
	Date                 Type = 14 // days since 1970-01-01
	TimestampSecond      Type = 15
	TimestampMillisecond Type = 16
	TimestampMicrosecond Type = 17
	TimestampNanosecond  Type = 18
)

// A Layout is how the values of a type lie in memory. Several types share one.
type Layout uint8

// The layouts.
const (
	NoLayout Layout = iota
	Ints            // Vector.Ints: every integer, date and timestamp; UInt64 as its bits
	Floats          // Vector.Floats: Float32 (widened) and Float64
	Bools           // Vector.Bools
	Bytes           // Vector.Codes and Dict, or Offsets and Data
)

type typeInfo struct {
	name   string // upstream's name in results, such as Int64
	sql    string // the name in DDL, such as BIGINT
	layout Layout
}

var typeInfos = [...]typeInfo{
	InvalidType:          {"Null", "NULL", NoLayout},
	Boolean:              {"Boolean", "BOOLEAN", Bools},
	Int8:                 {"Int8", "TINYINT", Ints},
	Int16:                {"Int16", "SMALLINT", Ints},
	Int32:                {"Int32", "INT", Ints},
	Int64:                {"Int64", "BIGINT", Ints},
	UInt8:                {"UInt8", "TINYINT UNSIGNED", Ints},
	UInt16:               {"UInt16", "SMALLINT UNSIGNED", Ints},
	UInt32:               {"UInt32", "INT UNSIGNED", Ints},
	UInt64:               {"UInt64", "BIGINT UNSIGNED", Ints},
	Float32:              {"Float32", "FLOAT", Floats},
	Float64:              {"Float64", "DOUBLE", Floats},
	String:               {"String", "STRING", Bytes},
	Binary:               {"Binary", "VARBINARY", Bytes},
	Date:                 {"Date", "DATE", Ints},
	TimestampSecond:      {"TimestampSecond", "TIMESTAMP(0)", Ints},
	TimestampMillisecond: {"TimestampMillisecond", "TIMESTAMP(3)", Ints},
	TimestampMicrosecond: {"TimestampMicrosecond", "TIMESTAMP(6)", Ints},
	TimestampNanosecond:  {"TimestampNanosecond", "TIMESTAMP(9)", Ints},
}

// Known reports whether t is one of the types above, InvalidType excluded. A
// decoder asks before it trusts a number from a file.
func (t Type) Known() bool { return t > InvalidType && int(t) < len(typeInfos) }

// String returns the name that results carry, such as Int64.
func (t Type) String() string {
	if int(t) < len(typeInfos) {
		return typeInfos[t].name
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// SQL returns the name in DDL, such as BIGINT or TIMESTAMP(9).
func (t Type) SQL() string {
	if int(t) < len(typeInfos) {
		return typeInfos[t].sql
	}
	return t.String()
}

// Layout returns how values of t lie in a Vector.
func (t Type) Layout() Layout {
	if int(t) < len(typeInfos) {
		return typeInfos[t].layout
	}
	return NoLayout
}

// IsTimestamp reports whether t is one of the four timestamps.
func (t Type) IsTimestamp() bool { return t >= TimestampSecond && t <= TimestampNanosecond }

// UnitNanos returns the length of a timestamp type's unit in nanoseconds, and
// 0 for every other type.
func (t Type) UnitNanos() int64 {
	switch t {
	case TimestampSecond:
		return 1e9
	case TimestampMillisecond:
		return 1e6
	case TimestampMicrosecond:
		return 1e3
	case TimestampNanosecond:
		return 1
	default:
		return 0
	}
}
