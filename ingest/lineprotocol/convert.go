package lineprotocol

import (
	"math"
	"strconv"
	"unsafe"

	"github.com/varvedb/varve/table"
)

// put appends v to c as the value of row, or says why it would not be the same
// value there. The declared type of a column wins over the form in the line.
//
// A float may be rounded to a FLOAT column: it was decimal in the line and has
// been rounded to binary in any case.
func (c *column) put(row int, v *value) (problem string) {
	switch c.typ {
	case table.Float64:
		f, problem := v.asFloat()
		if problem == "" {
			c.putFloat(row, f)
		}
		return problem
	case table.Float32:
		f, problem := v.asFloat()
		if problem != "" {
			return problem
		}
		narrow := float64(float32(f))
		if math.IsInf(narrow, 0) || v.kind != kindFloat && narrow != f {
			return "is not exact as a FLOAT"
		}
		c.putFloat(row, narrow)
	case table.Boolean:
		if v.kind != kindBool {
			return wrongKind
		}
		c.putBool(row, v.bool)
	case table.String, table.Binary:
		if v.kind != kindString {
			return wrongKind
		}
		c.putBytes(row, v.text)
	default:
		n, problem := v.asInt(c.typ)
		if problem == "" {
			c.putInt(row, n)
		}
		return problem
	}
	return ""
}

const (
	wrongKind  = "does not fit the type"
	outOfRange = "is out of range"
	notWhole   = "is no whole number"
	notExact   = "is not exact as a float"
)

func (v *value) asFloat() (f float64, problem string) {
	switch v.kind {
	case kindFloat:
		return v.float, ""
	case kindInt:
		f = float64(v.int)
		if f >= 1<<63 || int64(f) != v.int { // MaxInt64 rounds up to 1<<63
			return 0, notExact
		}
		return f, ""
	case kindUint:
		f = float64(v.uint)
		if f >= 1<<64 || uint64(f) != v.uint {
			return 0, notExact
		}
		return f, ""
	default:
		return 0, wrongKind
	}
}

// asInt returns the integer of type t; one of UInt64 is its bits. A TIMESTAMP
// takes the number of its units, a DATE the number of days.
func (v *value) asInt(t table.Type) (n int64, problem string) {
	if t == table.UInt64 {
		return v.asUint64()
	}
	switch v.kind {
	case kindInt:
		n = v.int
	case kindUint:
		if v.uint > math.MaxInt64 {
			return 0, outOfRange
		}
		n = int64(v.uint)
	case kindFloat:
		switch {
		case v.float != math.Trunc(v.float):
			return 0, notWhole
		case v.float < -(1<<63) || v.float >= 1<<63:
			return 0, outOfRange
		}
		n = int64(v.float)
	default:
		return 0, wrongKind
	}
	if !t.Holds(n) {
		return 0, outOfRange
	}
	return n, ""
}

func (v *value) asUint64() (bits int64, problem string) {
	switch v.kind {
	case kindUint:
		return int64(v.uint), ""
	case kindInt:
		if v.int < 0 {
			return 0, outOfRange
		}
		return v.int, ""
	case kindFloat:
		switch {
		case v.float != math.Trunc(v.float):
			return 0, notWhole
		case v.float < 0 || v.float >= 1<<64:
			return 0, outOfRange
		}
		return int64(uint64(v.float)), ""
	default:
		return 0, wrongKind
	}
}

// appendTag appends the text of a tag to a series key as a value of type t.
// Tags are strings in the protocol; a table declared by hand may have others.
func appendTag(key []byte, t table.Type, text []byte) (_ []byte, problem string) {
	s := unsafe.String(unsafe.SliceData(text), len(text)) // strconv keeps none of it
	switch t {
	case table.String, table.Binary:
		return table.AppendKeyBytes(key, text), ""
	case table.Float32, table.Float64:
		bits := 64
		if t == table.Float32 {
			bits = 32
		}
		if !decimal(text) {
			return key, wrongKind
		}
		f, err := strconv.ParseFloat(s, bits)
		if err != nil {
			return key, outOfRange
		}
		return table.AppendKeyFloat(key, f), ""
	case table.Boolean:
		switch s {
		case "true", "TRUE", "True", "t", "T":
			return table.AppendKeyInt(key, t, 1), ""
		case "false", "FALSE", "False", "f", "F":
			return table.AppendKeyInt(key, t, 0), ""
		}
		return key, wrongKind
	case table.UInt64:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return key, wrongKind
		}
		return table.AppendKeyInt(key, t, int64(n)), ""
	default:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return key, wrongKind
		}
		if !t.Holds(n) {
			return key, outOfRange
		}
		return table.AppendKeyInt(key, t, n), ""
	}
}
