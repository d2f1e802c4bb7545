package sst

import (
	"encoding/binary"
	"math"
)

// A numberDict numbers the distinct values among up to maxNumbers numbers, by
// their bits, in the order of first use.
type numberDict struct {
	values []uint64
	slots  []uint32 // code+1 by hash, open addressing
	codes  []uint32
}

const (
	// maxNumbers is 14 bits a code: up to there, codes and the dictionary they
	// index stay in the CPU's caches while a page is decoded.
	maxNumbers = 1 << 14
	// sampleRows are looked at before a dictionary is tried on all.
	sampleRows = 4096
)

// build numbers n values and reports whether a dictionary pays: there are few
// enough of them, and each is used four times on average.
func (d *numberDict) build(n int, bits func(i int) uint64) bool {
	step := max(1, n/sampleRows)
	d.reset()
	for i := 0; i < n; i += step {
		d.add(bits(i))
	}
	if len(d.values) > max(1, len(d.codes)/2) {
		return false
	}
	d.reset()
	limit := min(maxNumbers, max(1, n/4))
	for i := range n {
		d.add(bits(i))
		if len(d.values) > limit {
			return false
		}
	}
	return true
}

func (d *numberDict) reset() {
	if d.slots == nil {
		d.slots = make([]uint32, 4*maxNumbers)
	}
	clear(d.slots)
	d.values, d.codes = d.values[:0], d.codes[:0]
}

func (d *numberDict) add(v uint64) {
	const shift = 64 - 16 // of 4*maxNumbers slots
	for i := v * 0x9e3779b97f4a7c15 >> shift; ; i = (i + 1) & (4*maxNumbers - 1) {
		c := d.slots[i]
		if c == 0 {
			d.values = append(d.values, v)
			c = uint32(len(d.values))
			d.slots[i] = c
			d.codes = append(d.codes, c-1)
			return
		}
		if d.values[c-1] == v {
			d.codes = append(d.codes, c-1)
			return
		}
	}
}

// appendFloats appends values in PLAIN encoding.
func appendFloats(dst []byte, values []float64, single bool) []byte {
	for _, v := range values {
		if single {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
	}
	return dst
}

// appendSplit appends values in BYTE_STREAM_SPLIT encoding: first the lowest
// byte of each, then the next.
func appendSplit(dst []byte, values []float64, single bool) []byte {
	n, width := len(values), 8
	if single {
		width = 4
	}
	at := len(dst)
	dst = append(dst, make([]byte, n*width)...)
	out := dst[at:]
	for i, v := range values {
		u := math.Float64bits(v)
		if single {
			u = uint64(math.Float32bits(float32(v)))
		}
		for b := range width {
			out[b*n+i] = byte(u >> (8 * b))
		}
	}
	return dst
}

// decodeFloats reads PLAIN values into out.
func decodeFloats(out []float64, src []byte, single bool) bool {
	if single {
		if len(src) != 4*len(out) {
			return false
		}
		for i := range out {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
		return true
	}
	if len(src) != 8*len(out) {
		return false
	}
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
	}
	return true
}

// decodeSplit reads BYTE_STREAM_SPLIT values into out.
func decodeSplit(out []float64, src []byte, single bool) bool {
	n := len(out)
	if single {
		if len(src) != 4*n {
			return false
		}
		for i := range out {
			u := uint32(src[i]) | uint32(src[n+i])<<8 | uint32(src[2*n+i])<<16 | uint32(src[3*n+i])<<24
			out[i] = float64(math.Float32frombits(u))
		}
		return true
	}
	if len(src) != 8*n {
		return false
	}
	b0, b1, b2, b3 := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
	b4, b5, b6, b7 := src[4*n:][:n], src[5*n:][:n], src[6*n:][:n], src[7*n:][:n]
	for i := range out {
		u := uint64(b0[i]) | uint64(b1[i])<<8 | uint64(b2[i])<<16 | uint64(b3[i])<<24 |
			uint64(b4[i])<<32 | uint64(b5[i])<<40 | uint64(b6[i])<<48 | uint64(b7[i])<<56
		out[i] = math.Float64frombits(u)
	}
	return true
}
