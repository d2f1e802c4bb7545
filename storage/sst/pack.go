package sst

import (
	"math"
	"math/bits"
	"sort"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// How decoded pages lie in memory: what is dictionary-coded stays so, with codes
// as narrow as they can be, and integers are multiples of a step above a base
// where those are narrow. That is a quarter or an eighth of the values, so that
// more of a table fits the cache and less memory is read for it. A scan expands
// what it hands out into a buffer of its own, which stays in the processor's
// cache. Floats without a dictionary are kept as they are, and views of them
// handed out.

// packed is the values of a page in narrow form: one of the three slices has
// one code for each row.
type packed struct {
	small []uint8
	mid   []uint16
	wide  []uint32

	numbers    *dictionary // of numbers; nil: strings, or base + step*code
	base, step int64
}

func (p *packed) set() bool { return p.small != nil || p.mid != nil || p.wide != nil }

func (p *packed) size() int64 { return int64(len(p.small) + 2*len(p.mid) + 4*len(p.wide)) }

// packCodes keeps codes, all at most largest.
func (p *packed) packCodes(codes []uint32, largest uint32) {
	switch {
	case largest <= math.MaxUint8:
		p.small = make([]uint8, len(codes))
		for i, c := range codes {
			p.small[i] = uint8(c)
		}
	case largest <= math.MaxUint16:
		p.mid = make([]uint16, len(codes))
		for i, c := range codes {
			p.mid[i] = uint16(c)
		}
	default:
		p.wide = append([]uint32(nil), codes...)
	}
}

// packInts keeps ints as multiples, if there is a form that takes at most half
// of them. Nulls are any value.
func (p *packed) packInts(ints []int64, valid table.Bitmap, codes []uint32) bool {
	lo, hi, any := int64(0), int64(0), false
	for i, v := range ints {
		if valid != nil && !valid.Get(i) {
			continue
		}
		if !any {
			lo, hi, any = v, v, true
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	step := uint64(0)
	for i := 0; i < len(ints) && i < sampleSteps; i++ {
		if valid.Get(i) {
			step = gcd(step, uint64(ints[i])-uint64(lo))
		}
	}
	for range maxSteps {
		step = max(step, 1)
		if (uint64(hi)-uint64(lo))/step > math.MaxUint32 {
			return false
		}
		odd := stepDivider(step)
		bad := odd.divide(codes, ints, lo, valid)
		if bad < 0 {
			p.base, p.step = lo, int64(step)
			p.packCodes(codes, uint32((uint64(hi)-uint64(lo))/step))
			return true
		}
		step = gcd(step, uint64(ints[bad])-uint64(lo))
	}
	return false
}

const (
	sampleSteps = 64 // values from which a step is guessed
	maxSteps    = 8  // how often the guess is corrected
)

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// A divider divides by a step exactly, or tells that it does not go: by a
// shift, and a multiplication with the inverse of the odd part modulo 2^64,
// whose result is small only if there is no remainder.
type divider struct {
	shift   int
	inverse uint64
	largest uint64 // quotient
}

func stepDivider(step uint64) divider {
	shift := bits.TrailingZeros64(step)
	odd := step >> shift
	inverse := odd // correct in the low 3 bits; each round doubles them
	for range 5 {
		inverse *= 2 - odd*inverse
	}
	return divider{shift: shift, inverse: inverse, largest: math.MaxUint64 / odd}
}

// divide writes (v-lo)/step of each value to codes, and returns the first value
// that has a remainder, or -1. Nulls get 0.
func (d *divider) divide(codes []uint32, ints []int64, lo int64, valid table.Bitmap) int {
	codes = codes[:len(ints)]
	for i, v := range ints {
		if valid != nil && !valid.Get(i) {
			codes[i] = 0
			continue
		}
		diff := uint64(v) - uint64(lo)
		q := (diff >> d.shift) * d.inverse
		if q > d.largest || diff>>d.shift<<d.shift != diff {
			return i
		}
		codes[i] = uint32(q)
	}
	return -1
}

// rows returns rows [from, to) of the page: a view of it, or values in buf's
// memory.
func (p *page) rows(buf *table.Vector, from, to int) table.Vector {
	if !p.pack.set() {
		return run.SliceVector(&p.vec, from, to)
	}
	v := table.Vector{Type: p.vec.Type, Len: to - from, Valid: run.SliceBits(p.vec.Valid, from, to), Dict: p.vec.Dict}
	switch k := &p.pack; {
	case k.numbers != nil && k.numbers.floats != nil:
		buf.Floats = grow(&buf.Floats, v.Len)
		v.Floats = buf.Floats
		lookUp(v.Floats, k, from, to, k.numbers.floats)
	case k.numbers != nil:
		buf.Ints = grow(&buf.Ints, v.Len)
		v.Ints = buf.Ints
		lookUp(v.Ints, k, from, to, k.numbers.ints)
	case v.Dict != nil:
		buf.Codes = grow(&buf.Codes, v.Len)
		v.Codes = buf.Codes
		k.codes(v.Codes, from, to)
	default:
		buf.Ints = grow(&buf.Ints, v.Len)
		v.Ints = buf.Ints
		k.multiples(v.Ints, from, to)
	}
	return v
}

// lookUp writes the values of codes [from, to) of a dictionary.
func lookUp[T any](out []T, p *packed, from, to int, values []T) {
	out = out[:to-from]
	switch {
	case p.small != nil && cap(values) >= 256:
		all := (*[256]T)(values[:256]) // no code is out of range
		src := p.small[from:to][:len(out)]
		for ; len(src) >= 4; src, out = src[4:], out[4:] {
			out[0], out[1], out[2], out[3] = all[src[0]], all[src[1]], all[src[2]], all[src[3]]
		}
		for i, c := range src {
			out[i] = all[c]
		}
	case p.small != nil:
		for i, c := range p.small[from:to] {
			out[i] = values[c]
		}
	case p.mid != nil:
		for i, c := range p.mid[from:to] {
			out[i] = values[c]
		}
	default:
		for i, c := range p.wide[from:to] {
			out[i] = values[c]
		}
	}
}

func (p *packed) codes(out []uint32, from, to int) {
	switch {
	case p.small != nil:
		for i, c := range p.small[from:to] {
			out[i] = uint32(c)
		}
	case p.mid != nil:
		for i, c := range p.mid[from:to] {
			out[i] = uint32(c)
		}
	default:
		copy(out, p.wide[from:to])
	}
}

func (p *packed) multiples(out []int64, from, to int) {
	base, step := p.base, p.step
	switch {
	case p.small != nil:
		for i, c := range p.small[from:to] {
			out[i] = base + step*int64(c)
		}
	case p.mid != nil:
		for i, c := range p.mid[from:to] {
			out[i] = base + step*int64(c)
		}
	default:
		for i, c := range p.wide[from:to] {
			out[i] = base + step*int64(c)
		}
	}
}

// time returns the value of row i of a page of the time index.
func (p *page) time(i int) int64 {
	k, code := &p.pack, 0
	switch {
	case k.small != nil:
		code = int(k.small[i])
	case k.mid != nil:
		code = int(k.mid[i])
	case k.wide != nil:
		code = int(k.wide[i])
	default:
		return p.vec.Ints[i]
	}
	if k.numbers != nil {
		return k.numbers.ints[code]
	}
	return k.base + k.step*int64(code)
}

// within returns the rows from from to to, whose times ascend, that are in
// times; base is the row group's row at which the page begins.
func (p *page) within(times table.TimeRange, from, to, base int) span {
	lo := from + sort.Search(to-from, func(i int) bool { return p.time(from+i) >= times.Min })
	hi := lo + sort.Search(to-lo, func(i int) bool { return p.time(lo+i) > times.Max })
	return span{base + lo, base + hi}
}
