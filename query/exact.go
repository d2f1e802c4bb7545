package query

import (
	"math"

	"github.com/varvedb/varve/query/duckdb"
)

// AppendExactJSON appends the value as AppendJSON does, but for the numbers
// that readers of JSON lose, which are strings: integers beyond ±2^53, "NaN",
// "Infinity" and "-Infinity".
func (c *Chunk) AppendExactJSON(dst []byte, col, row int) []byte {
	if c.texts != nil {
		return c.AppendJSON(dst, col, row)
	}
	return appendExact(dst, &c.c.Vectors[col], row)
}

// maxExact is the largest integer up to which every one is a float64.
const maxExact = 1 << 53

func appendExact(dst []byte, v *duckdb.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	large := false
	switch v.Type.ID {
	case duckdb.Float:
		return appendExactFloat(dst, float64(duckdb.At[float32](v, i)), 32)
	case duckdb.Double:
		return appendExactFloat(dst, duckdb.At[float64](v, i), 64)
	case duckdb.List, duckdb.Map, duckdb.Array, duckdb.Struct:
		return appendNested(dst, v, i, appendExact)
	case duckdb.UBigInt:
		large = duckdb.At[uint64](v, i) > maxExact
	case duckdb.HugeInt, duckdb.UHugeInt:
		h := duckdb.At[duckdb.HugeValue](v, i)
		n := int64(h.Lower)
		large = h.Upper != n>>63 || n > maxExact || n < -maxExact
	case duckdb.BigInt, duckdb.TimestampS, duckdb.TimestampMS, duckdb.Timestamp, duckdb.TimestampNS, duckdb.TimestampTZ:
		n := duckdb.At[int64](v, i)
		large = n > maxExact || n < -maxExact
	}
	if !large {
		return appendJSON(dst, v, i)
	}
	return append(appendJSON(append(dst, '"'), v, i), '"')
}

func appendExactFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 0):
		dst = append(dst, '"')
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, `Infinity"`...)
	}
	return appendFloat(dst, f, bits)
}
