package sst

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/varvedb/varve/table"
)

// physical returns the Parquet type in which values of t are stored.
func physical(t table.Type) format.Type {
	switch t {
	case table.Boolean:
		return format.Boolean
	case table.Int8, table.Int16, table.Int32, table.UInt8, table.UInt16, table.UInt32, table.Date:
		return format.Int32
	case table.Float32:
		return format.Float
	case table.Float64:
		return format.Double
	case table.String, table.Binary:
		return format.ByteArray
	default: // the 64-bit integers and the timestamps
		return format.Int64
	}
}

// schemaElement returns the Parquet declaration of a column.
func schemaElement(name string, id table.ColumnID, t table.Type, required bool) format.SchemaElement {
	e := format.SchemaElement{
		Type:           thrift.New(physical(t)),
		RepetitionType: thrift.New(format.Optional),
		Name:           name,
		FieldID:        int32(id),
	}
	if required {
		e.RepetitionType.Set(format.Required)
	}
	integer := func(bits int8, signed bool, old deprecated.ConvertedType) {
		e.LogicalType.Value = &format.IntType{BitWidth: bits, IsSigned: signed}
		e.ConvertedType.Set(old)
	}
	// There is no timestamp in seconds: such a column is a plain INT64, which
	// holds every value exactly. Timestamps are local (not adjusted to UTC),
	// which has no converted type.
	timestamp := func(u format.TimeUnitValue) {
		e.LogicalType.Value = &format.TimestampType{Unit: format.TimeUnit{Value: u}}
	}
	switch t {
	case table.Int8:
		integer(8, true, deprecated.Int8)
	case table.Int16:
		integer(16, true, deprecated.Int16)
	case table.Int32:
		integer(32, true, deprecated.Int32)
	case table.UInt8:
		integer(8, false, deprecated.Uint8)
	case table.UInt16:
		integer(16, false, deprecated.Uint16)
	case table.UInt32:
		integer(32, false, deprecated.Uint32)
	case table.Int64:
		integer(64, true, deprecated.Int64)
	case table.UInt64:
		integer(64, false, deprecated.Uint64)
	case table.String:
		e.LogicalType.Value = &format.StringType{}
		e.ConvertedType.Set(deprecated.UTF8)
	case table.Date:
		e.LogicalType.Value = &format.DateType{}
		e.ConvertedType.Set(deprecated.Date)
	case table.TimestampMillisecond:
		timestamp(&format.MilliSeconds{})
	case table.TimestampMicrosecond:
		timestamp(&format.MicroSeconds{})
	case table.TimestampNanosecond:
		timestamp(&format.NanoSeconds{})
	}
	return e
}

// appendPlain appends a value in PLAIN encoding, for statistics without the
// length of a byte string.
func appendPlain(dst []byte, t table.Type, v table.Value) []byte {
	switch physical(t) {
	case format.Boolean:
		return append(dst, byte(v.Int))
	case format.Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.Int))
	case format.Float:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v.Float)))
	case format.Double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float))
	case format.ByteArray:
		return append(dst, v.Bytes...)
	default:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Int))
	}
}

// parsePlain reads what appendPlain wrote.
func parsePlain(t table.Type, b []byte) (v table.Value, ok bool) {
	v.Type = t
	switch p := physical(t); {
	case p == format.ByteArray:
		v.Bytes = string(b)
	case p == format.Boolean && len(b) == 1:
		v.Int = int64(b[0])
	case p == format.Int32 && len(b) == 4:
		v.Int = widen(t, binary.LittleEndian.Uint32(b))
	case p == format.Float && len(b) == 4:
		v.Float = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case p == format.Double && len(b) == 8:
		v.Float = math.Float64frombits(binary.LittleEndian.Uint64(b))
	case p == format.Int64 && len(b) == 8:
		v.Int = int64(binary.LittleEndian.Uint64(b))
	default:
		return v, false
	}
	return v, true
}

// widen returns the value of type t that an INT32 holds.
func widen(t table.Type, u uint32) int64 {
	if t == table.UInt8 || t == table.UInt16 || t == table.UInt32 {
		return int64(u)
	}
	return int64(int32(u))
}

// compareValues orders two values of type t.
func compareValues(t table.Type, a, b *table.Value) int {
	switch t.Layout() {
	case table.Floats:
		return table.CompareFloats(a.Float, b.Float)
	case table.Bytes:
		return compare(a.Bytes, b.Bytes)
	}
	if t == table.UInt64 {
		return compare(uint64(a.Int), uint64(b.Int))
	}
	return compare(a.Int, b.Int)
}

func compare[T int64 | uint64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
