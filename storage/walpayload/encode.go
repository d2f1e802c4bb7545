// Package walpayload encodes the rows of one write for the WAL and back.
// docs/format/walpayload.md describes the format.
//
// A payload is written before anybody knows what it will be merged with, so it
// says everything itself: column ids with types, series keys, times, values.
package walpayload

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/varvedb/varve/table"
)

// Version is the version of the payloads that Append writes.
const Version = 1

// How the numbers of a column lie in a payload: little-endian, in as few bytes
// as the largest takes.
const (
	width1 = 1
	width2 = 2
	width4 = 4
	width8 = 8
	// integral, or-ed to a width, says that floats are stored as integers.
	integral = 0x10
)

// How the byte strings of a column lie in a payload.
const (
	plainBytes = 1
	dictBytes  = 2
)

// Append appends the encoding of rows to dst. It allocates nothing but room in
// dst.
func Append(dst []byte, rows *table.Rows) []byte {
	dst = append(dst, Version, byte(rows.Op))
	dst = binary.AppendUvarint(dst, uint64(rows.Len()))
	dst = appendKeys(dst, &rows.Keys)
	if rows.Len() == 0 {
		return dst
	}
	dst = appendCodes(dst, rows.Series, rows.Keys.Len())
	dst = appendTimes(dst, rows.Times)
	dst = binary.AppendUvarint(dst, uint64(len(rows.Fields)))
	for i := range rows.Fields {
		dst = appendField(dst, &rows.Fields[i], rows.Len())
	}
	return dst
}

func appendKeys(dst []byte, keys *table.Keys) []byte {
	n := keys.Len()
	dst = binary.AppendUvarint(dst, uint64(n))
	for i := range n {
		dst = binary.AppendUvarint(dst, uint64(keys.Offsets[i+1]-keys.Offsets[i]))
	}
	if n > 0 {
		dst = append(dst, keys.Data[keys.Offsets[0]:keys.Offsets[n]]...)
	}
	return dst
}

// appendCodes writes indexes below limit, in as few bytes each as limit takes.
func appendCodes(dst []byte, codes []uint32, limit int) []byte {
	switch {
	case limit <= 1<<8:
		return appendNarrow(dst, codes, width1)
	case limit <= 1<<16:
		return appendNarrow(dst, codes, width2)
	default:
		return appendNarrow(dst, codes, width4)
	}
}

func appendTimes(dst []byte, times []int64) []byte {
	lo, hi := bounds(times)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(lo))
	w := unsignedWidth(uint64(hi) - uint64(lo))
	dst = append(dst, w)
	dst, out := grow(dst, len(times)*int(w))
	switch w {
	case width1:
		for i, t := range times {
			out[i] = byte(t - lo)
		}
	case width2:
		for i, t := range times {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(t-lo))
		}
	case width4:
		for i, t := range times {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(t-lo))
		}
	default:
		for i, t := range times {
			binary.LittleEndian.PutUint64(out[8*i:], uint64(t)-uint64(lo))
		}
	}
	return dst
}

func bounds(values []int64) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func unsignedWidth(v uint64) byte {
	switch {
	case v <= math.MaxUint8:
		return width1
	case v <= math.MaxUint16:
		return width2
	case v <= math.MaxUint32:
		return width4
	default:
		return width8
	}
}

func signedWidth(lo, hi int64) byte {
	switch {
	case lo >= math.MinInt8 && hi <= math.MaxInt8:
		return width1
	case lo >= math.MinInt16 && hi <= math.MaxInt16:
		return width2
	case lo >= math.MinInt32 && hi <= math.MaxInt32:
		return width4
	default:
		return width8
	}
}

func appendField(dst []byte, f *table.FieldVector, n int) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.ID))
	dst = append(dst, byte(f.Type))
	if f.Valid == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		for _, w := range f.Valid[:(n+63)/64] {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	}
	switch f.Type.Layout() {
	case table.Ints:
		return appendInts(dst, f.Ints[:n])
	case table.Floats:
		return appendFloats(dst, f.Floats[:n])
	case table.Bools:
		return appendBools(dst, f.Bools[:n])
	default:
		return appendBytes(dst, &f.Vector, n)
	}
}

func appendInts(dst []byte, values []int64) []byte {
	w := signedWidth(bounds(values))
	return appendNarrow(append(dst, w), values, w)
}

// appendFloats writes floats that are all small integers as such, for most
// counters and gauges are, and others as their bits. Negative zero is none.
func appendFloats(dst []byte, values []float64) []byte {
	lo, hi := int32(math.MaxInt32), int32(math.MinInt32)
	for _, v := range values {
		i := int32(v)
		if math.Float64bits(float64(i)) != math.Float64bits(v) {
			dst, out := grow(append(dst, width8), 8*len(values))
			copy(out, floatBytes(values))
			return dst
		}
		lo, hi = min(lo, i), max(hi, i)
	}
	w := signedWidth(int64(lo), int64(hi))
	return appendNarrow(append(dst, w|integral), values, w)
}

func appendBools(dst []byte, values []bool) []byte {
	dst, out := grow(dst, (len(values)+7)/8)
	clear(out)
	for i, v := range values {
		if v {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	return dst
}

func appendBytes(dst []byte, v *table.Vector, n int) []byte {
	if v.Dict != nil {
		dst = append(dst, dictBytes)
		dst = binary.AppendUvarint(dst, uint64(v.Dict.Len()))
		for i := range v.Dict.Len() {
			dst = binary.AppendUvarint(dst, uint64(v.Dict.Offsets[i+1]-v.Dict.Offsets[i]))
		}
		if v.Dict.Len() > 0 {
			dst = append(dst, v.Dict.Data[v.Dict.Offsets[0]:v.Dict.Offsets[v.Dict.Len()]]...)
		}
		return appendCodes(dst, v.Codes[:n], v.Dict.Len())
	}
	dst = append(dst, plainBytes)
	for i := range n {
		dst = binary.AppendUvarint(dst, uint64(v.Offsets[i+1]-v.Offsets[i]))
	}
	return append(dst, v.Data[v.Offsets[0]:v.Offsets[n]]...)
}

// appendNarrow writes numbers that are integers of width w.
func appendNarrow[T int64 | uint32 | float64](dst []byte, values []T, w byte) []byte {
	dst, out := grow(dst, len(values)*int(w))
	switch w {
	case width1:
		for i, v := range values {
			out[i] = byte(int64(v))
		}
	case width2:
		for i, v := range values {
			binary.LittleEndian.PutUint16(out[2*i:], uint16(int64(v)))
		}
	case width4:
		for i, v := range values {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(int64(v)))
		}
	default:
		for i, v := range values {
			binary.LittleEndian.PutUint64(out[8*i:], uint64(int64(v)))
		}
	}
	return dst
}

// grow returns dst with n more bytes, and these.
func grow(dst []byte, n int) (all, added []byte) {
	at := len(dst)
	if cap(dst)-at < n {
		larger := make([]byte, at, max(2*cap(dst), at+n))
		copy(larger, dst)
		dst = larger
	}
	dst = dst[:at+n]
	return dst, dst[at:]
}

// littleEndian says that numbers lie in memory as they lie in a payload.
var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// floatBytes returns the bytes of values as they are stored.
func floatBytes(values []float64) []byte {
	if len(values) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 8*len(values))
	}
	out := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(out[8*i:], math.Float64bits(v))
	}
	return out
}
