package sst

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/varvedb/varve/table"
)

// Packed integers come back as they were, whatever their step and range, and
// regular ones are packed.
func TestPackInts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64().Draw(t, "base")
		step := rapid.SampledFrom([]int64{0, 1, 2, 7, 10_000_000_000, 1 << 40, math.MaxInt64}).Draw(t, "step")
		largest := rapid.SampledFrom([]int{0, 1, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1}).Draw(t, "largest")
		n := rapid.IntRange(1, 200).Draw(t, "rows")
		var valid table.Bitmap
		if rapid.Bool().Draw(t, "nulls") {
			valid = table.NewBitmap(n)
		}
		ints := make([]int64, n)
		for i := range ints {
			ints[i] = base + step*int64(rapid.IntRange(0, largest).Draw(t, "multiple"))
			if rapid.IntRange(0, 50).Draw(t, "odd") == 0 {
				ints[i]++
			}
			if valid != nil && rapid.Bool().Draw(t, "valid") {
				valid.Set(i)
			}
		}
		p := &page{vec: table.Vector{Type: table.Int64, Len: n, Valid: valid}}
		if !p.pack.packInts(ints, valid, make([]uint32, n)) {
			if slices.Max(ints) < slices.Min(ints)+math.MaxInt32 && base > math.MinInt64/2 && base < math.MaxInt64/2 {
				t.Fatalf("%d is not packed", ints)
			}
			return
		}
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		got := p.rows(new(table.Vector), from, n)
		for i := from; i < n; i++ {
			if valid.Get(i) && (got.Ints[i-from] != ints[i] || p.time(i) != ints[i]) || valid.Get(i) == got.IsNull(i-from) {
				t.Fatalf("row %d is %d, want %d", i, got.Ints[i-from], ints[i])
			}
		}
	})
}

// A page of 10,240 times of many series takes a byte a row.
func TestPackedTimes(t *testing.T) {
	ints := make([]int64, 10_240)
	for i := range ints {
		ints[i] = 1_767_225_600_000_000_000 + int64(i%157)*10_000_000_000
	}
	var p packed
	if !p.packInts(ints, nil, make([]uint32, len(ints))) || p.size() != int64(len(ints)) || p.step != 10_000_000_000 {
		t.Errorf("%d bytes with step %d", p.size(), p.step)
	}
}
