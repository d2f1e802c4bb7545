package run

import (
	"math/bits"
	"sort"

	"github.com/varvedb/varve/table"
)

// SliceBits returns bits [from, to) of b, of which only the words are shared,
// and only where from is a multiple of 64.
func SliceBits(b table.Bitmap, from, to int) table.Bitmap {
	if b == nil {
		return nil
	}
	if from&63 == 0 {
		return b[from>>6 : (to+63)>>6]
	}
	out := table.NewBitmap(to - from)
	shift := from & 63
	for i := range out {
		w := from>>6 + i
		out[i] = b[w] >> shift
		if w+1 < len(b) {
			out[i] |= b[w+1] << (64 - shift)
		}
	}
	return out
}

// NextBit returns the first bit of b from i on that is set, or n if there is
// none before it.
func NextBit(b table.Bitmap, i, n int) int {
	if b == nil || i >= n {
		return min(i, n)
	}
	w := i >> 6
	word := b[w] >> (i & 63) << (i & 63)
	for word == 0 {
		if w++; w >= len(b) {
			return n
		}
		word = b[w]
	}
	return min(n, w<<6+bits.TrailingZeros64(word))
}

// AppendBits adds bits [from, to) of src, where a nil src has every bit set, to
// dst, which holds n bits.
func AppendBits(dst table.Bitmap, n int, src table.Bitmap, from, to int) table.Bitmap {
	for from < to {
		word, take := ^uint64(0), min(64, to-from)
		if src != nil {
			take = min(take, 64-from&63)
			word = src[from>>6] >> (from & 63)
		}
		if take < 64 {
			word &= 1<<take - 1
		}
		dst = appendWord(dst, n, word, take)
		n, from = n+take, from+take
	}
	return dst
}

// appendWord adds the low count bits of word, whose others are clear.
func appendWord(dst table.Bitmap, n int, word uint64, count int) table.Bitmap {
	need := (n + count + 63) >> 6
	for len(dst) < need {
		dst = append(dst, 0)
	}
	at, shift := n>>6, n&63
	if shift == 0 {
		dst[at] = word
		return dst
	}
	dst[at] = dst[at]&(1<<shift-1) | word<<shift
	if shift+count > 64 {
		dst[at+1] = word >> (64 - shift)
	}
	return dst
}

// SliceVector returns rows [from, to) of v without copying values.
func SliceVector(v *table.Vector, from, to int) table.Vector {
	out := table.Vector{Type: v.Type, Len: to - from, Valid: SliceBits(v.Valid, from, to)}
	switch v.Type.Layout() {
	case table.Ints:
		out.Ints = v.Ints[from:to:to]
	case table.Floats:
		out.Floats = v.Floats[from:to:to]
	case table.Bools:
		out.Bools = v.Bools[from:to:to]
	case table.Bytes:
		if v.Dict != nil {
			out.Dict, out.Codes = v.Dict, v.Codes[from:to:to]
		} else {
			out.Offsets, out.Data = v.Offsets[from:to+1:to+1], v.Data
		}
	}
	return out
}

// Stretch returns the index into Keys of the stretch that holds row i.
func (b *Batch) Stretch(i int) int {
	return sort.Search(len(b.Starts), func(s int) bool { return int(b.Starts[s]) > i }) - 1
}

// StretchEnd returns the row after the last of stretch s.
func (b *Batch) StretchEnd(s int) int {
	if s+1 < len(b.Starts) {
		return int(b.Starts[s+1])
	}
	return b.Len
}

// SequenceOf returns the sequence of row i.
func (b *Batch) SequenceOf(i int) uint64 {
	if b.Sequences == nil {
		return b.Sequence
	}
	return b.Sequences[i]
}

// OpOf returns the operation of row i.
func (b *Batch) OpOf(i int) table.Op {
	if b.Ops == nil {
		return table.Put
	}
	return b.Ops[i]
}

// Slice fills out with rows [from, to) of b without copying values, using out's
// own memory for what has to be made. The identity is sliced too if b has one.
func (b *Batch) Slice(from, to int, out *Batch) {
	out.Len = to - from
	out.Columns = out.Columns[:0]
	for i := range b.Columns {
		out.Columns = append(out.Columns, SliceVector(&b.Columns[i], from, to))
	}
	out.Keys, out.Times, out.Sequences, out.Ops = nil, nil, nil, nil
	out.Starts = out.Starts[:0]
	out.Sequence = b.Sequence
	if b.Times == nil {
		return
	}
	first, last := b.Stretch(from), b.Stretch(to-1)
	out.Keys = b.Keys[first : last+1]
	for s := first; s <= last; s++ {
		out.Starts = append(out.Starts, uint32(max(int(b.Starts[s]), from)-from))
	}
	out.Times = b.Times[from:to]
	if b.Sequences != nil {
		out.Sequences = b.Sequences[from:to]
	}
	if b.Ops != nil {
		out.Ops = b.Ops[from:to]
	}
}
