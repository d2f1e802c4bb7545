package query

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/varvedb/varve/query/duckdb"
)

// appendJSON writes one value by the rules of the page on the dialect:
// timestamps and dates as integers in their own unit, NaN and infinities as
// null, decimals as strings, bytes as lists of numbers.
func appendJSON(dst []byte, v *duckdb.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	switch v.Type.ID {
	case duckdb.Boolean:
		return strconv.AppendBool(dst, duckdb.At[bool](v, i))
	case duckdb.TinyInt:
		return strconv.AppendInt(dst, int64(duckdb.At[int8](v, i)), 10)
	case duckdb.SmallInt:
		return strconv.AppendInt(dst, int64(duckdb.At[int16](v, i)), 10)
	case duckdb.Integer, duckdb.Date:
		return strconv.AppendInt(dst, int64(duckdb.At[int32](v, i)), 10)
	case duckdb.UTinyInt:
		return strconv.AppendUint(dst, uint64(duckdb.At[uint8](v, i)), 10)
	case duckdb.USmallInt:
		return strconv.AppendUint(dst, uint64(duckdb.At[uint16](v, i)), 10)
	case duckdb.UInteger:
		return strconv.AppendUint(dst, uint64(duckdb.At[uint32](v, i)), 10)
	case duckdb.UBigInt:
		return strconv.AppendUint(dst, duckdb.At[uint64](v, i), 10)
	case duckdb.HugeInt, duckdb.UHugeInt:
		return appendHuge(dst, duckdb.At[duckdb.HugeValue](v, i), v.Type.ID == duckdb.HugeInt)
	case duckdb.Float:
		return appendFloat(dst, float64(duckdb.At[float32](v, i)), 32)
	case duckdb.Double:
		return appendFloat(dst, duckdb.At[float64](v, i), 64)
	case duckdb.Varchar:
		return appendText(dst, v, i)
	case duckdb.Blob:
		return appendBytes(dst, v.Bytes(i))
	case duckdb.Decimal:
		return appendDecimal(dst, v, i)
	case duckdb.Interval:
		return appendInterval(dst, duckdb.At[duckdb.IntervalValue](v, i))
	case duckdb.UUID:
		return appendUUID(dst, duckdb.At[duckdb.HugeValue](v, i))
	case duckdb.Enum:
		return appendJSONString(dst, []byte(v.Type.Values[smallUint(v, v.Type.Physical, i)]))
	case duckdb.List, duckdb.Map, duckdb.Array, duckdb.Struct:
		return appendNested(dst, v, i, appendJSON)
	}
	return strconv.AppendInt(dst, duckdb.At[int64](v, i), 10) // times and timestamps, BIGINT
}

// appendText writes a string, or the JSON that one holds.
func appendText(dst []byte, v *duckdb.Vector, i int) []byte {
	b := v.Bytes(i)
	if v.Type.Alias == "JSON" && json.Valid(b) {
		return append(dst, b...)
	}
	return appendJSONString(dst, b)
}

// A rendering appends one value, as appendJSON does.
type rendering func(dst []byte, v *duckdb.Vector, i int) []byte

// appendNested writes a list or object, with its values as inner writes them.
func appendNested(dst []byte, v *duckdb.Vector, i int, inner rendering) []byte {
	switch v.Type.ID {
	case duckdb.Array:
		return appendList(dst, &v.Children[0], i*v.Type.Size, v.Type.Size, inner)
	case duckdb.List:
		e := duckdb.At[duckdb.Entry](v, i)
		return appendList(dst, &v.Children[0], int(e.Offset), int(e.Length), inner)
	case duckdb.Map:
		return appendMap(dst, v, duckdb.At[duckdb.Entry](v, i), inner)
	}
	dst = append(dst, '{')
	for k := range v.Children {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, []byte(v.Type.Names[k])), ':')
		dst = inner(dst, &v.Children[k], i)
	}
	return append(dst, '}')
}

func appendList(dst []byte, child *duckdb.Vector, from, n int, inner rendering) []byte {
	dst = append(dst, '[')
	for k := range n {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = inner(dst, child, from+k)
	}
	return append(dst, ']')
}

// appendMap writes a map as an object whose keys are the text of its keys.
func appendMap(dst []byte, v *duckdb.Vector, e duckdb.Entry, inner rendering) []byte {
	entries := &v.Children[0]
	dst = append(dst, '{')
	for k := int(e.Offset); k < int(e.Offset+e.Length); k++ {
		if k > int(e.Offset) {
			dst = append(dst, ',')
		}
		key := appendJSON(nil, &entries.Children[0], k)
		if key[0] != '"' {
			key = appendJSONString(nil, key)
		}
		dst = append(append(dst, key...), ':')
		dst = inner(dst, &entries.Children[1], k)
	}
	return append(dst, '}')
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, bits)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...) // so that a reader sees a float
}

func appendBytes(dst, b []byte) []byte {
	dst = append(dst, '[')
	for k, c := range b {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(c), 10)
	}
	return append(dst, ']')
}

func bigInt(h duckdb.HugeValue, signed bool) *big.Int {
	high := new(big.Int)
	if signed {
		high.SetInt64(h.Upper)
	} else {
		high.SetUint64(uint64(h.Upper))
	}
	return high.Lsh(high, 64).Add(high, new(big.Int).SetUint64(h.Lower))
}

func appendHuge(dst []byte, h duckdb.HugeValue, signed bool) []byte {
	if signed && h.Upper == int64(h.Lower)>>63 {
		return strconv.AppendInt(dst, int64(h.Lower), 10)
	}
	return bigInt(h, signed).Append(dst, 10)
}

func appendDecimal(dst []byte, v *duckdb.Vector, i int) []byte {
	var digits []byte
	switch v.Type.Physical {
	case duckdb.SmallInt:
		digits = strconv.AppendInt(nil, int64(duckdb.At[int16](v, i)), 10)
	case duckdb.Integer:
		digits = strconv.AppendInt(nil, int64(duckdb.At[int32](v, i)), 10)
	case duckdb.BigInt:
		digits = strconv.AppendInt(nil, duckdb.At[int64](v, i), 10)
	default:
		digits = appendHuge(nil, duckdb.At[duckdb.HugeValue](v, i), true)
	}
	dst = append(dst, '"')
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	for len(digits) <= v.Type.Scale {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - v.Type.Scale
	dst = append(dst, digits[:point]...)
	if v.Type.Scale > 0 {
		dst = append(append(dst, '.'), digits[point:]...)
	}
	return append(dst, '"')
}

// appendInterval writes an interval as PostgreSQL does: 1 mon 2 days 03:04:05.
func appendInterval(dst []byte, v duckdb.IntervalValue) []byte {
	dst = append(dst, '"')
	start := len(dst)
	amount := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = append(append(strconv.AppendInt(dst, n, 10), ' '), unit...)
		if n != 1 && n != -1 {
			dst = append(dst, 's')
		}
	}
	amount(int64(v.Months/12), "year")
	amount(int64(v.Months%12), "mon")
	amount(int64(v.Days), "day")
	if v.Micros != 0 || len(dst) == start {
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = appendClock(dst, v.Micros)
	}
	return append(dst, '"')
}

func appendClock(dst []byte, micros int64) []byte {
	u := uint64(micros)
	if micros < 0 {
		dst, u = append(dst, '-'), -u
	}
	two := func(n uint64) {
		if n < 10 {
			dst = append(dst, '0')
		}
		dst = strconv.AppendUint(dst, n, 10)
	}
	two(u / 3600e6)
	dst = append(dst, ':')
	two(u / 60e6 % 60)
	dst = append(dst, ':')
	two(u / 1e6 % 60)
	if rest := u % 1e6; rest != 0 {
		text := strconv.FormatUint(1e6+rest, 10)[1:]
		for text[len(text)-1] == '0' {
			text = text[:len(text)-1]
		}
		dst = append(append(dst, '.'), text...)
	}
	return dst
}

// appendUUID writes a UUID, of which DuckDB flips the highest bit to sort it.
func appendUUID(dst []byte, h duckdb.HugeValue) []byte {
	const hex = "0123456789abcdef"
	high := uint64(h.Upper) ^ 1<<63
	dst = append(dst, '"')
	for k := range 32 {
		if k == 8 || k == 12 || k == 16 || k == 20 {
			dst = append(dst, '-')
		}
		word := high
		if k >= 16 {
			word = h.Lower
		}
		dst = append(dst, hex[word>>(60-4*(k%16))&15])
	}
	return append(dst, '"')
}

func smallUint(v *duckdb.Vector, physical duckdb.TypeID, i int) int {
	switch physical {
	case duckdb.UTinyInt:
		return int(duckdb.At[uint8](v, i))
	case duckdb.USmallInt:
		return int(duckdb.At[uint16](v, i))
	default:
		return int(duckdb.At[uint32](v, i))
	}
}

// AppendJSONString appends s as a JSON string. Bytes that are not UTF-8 become
// the replacement character.
func AppendJSONString(dst []byte, s string) []byte {
	return appendJSONString(dst, unsafe.Slice(unsafe.StringData(s), len(s)))
}

// appendJSONString writes a JSON string; bytes that are not UTF-8 become the
// replacement character.
func appendJSONString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
