package sql

import (
	"math/rand/v2"
	"testing"

	"github.com/varvedb/varve/table"
)

// Nulls are where they were put, whether values come one by one or as
// vectors, and whether the first null is early or late.
func TestColumnNulls(t *testing.T) {
	column := &table.Column{Name: "n", Type: table.Int64, Nullable: true}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := &columnBuilder{Column: column, Vector: table.Vector{Type: table.Int64}}
		var want []int64 // -1: null
		rare := 1 + r.IntN(100)
		next := func() int64 {
			if r.IntN(rare) == 0 {
				return -1
			}
			return int64(len(want))
		}
		for len(want) < 300 {
			if r.IntN(3) > 0 {
				n := next()
				want = append(want, n)
				if n < 0 {
					c.appendNull()
				} else if err := c.append(value{kind: intKind, num: n}, &converter{}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			v := &table.Vector{Type: table.Int64, Len: 1 + r.IntN(70)}
			v.Valid = table.NewBitmap(v.Len)
			nulls := 0
			for i := range v.Len {
				n := next()
				want = append(want, n)
				if v.Ints = append(v.Ints, n); n < 0 {
					nulls++
				} else {
					v.Valid.Set(i)
				}
			}
			if nulls == 0 {
				v.Valid = nil
			}
			if err := c.appendVector(v, v.Len); err != nil {
				t.Fatal(err)
			}
		}
		if c.Len != len(want) || len(c.Ints) != len(want) {
			t.Fatalf("seed %d: %d values, %d numbers, want %d", seed, c.Len, len(c.Ints), len(want))
		}
		for i, n := range want {
			if c.IsNull(i) != (n < 0) || n >= 0 && c.Ints[i] != n {
				t.Fatalf("seed %d: value %d is %d, null %v; want %d", seed, i, c.Ints[i], c.IsNull(i), n)
			}
		}
	}
}
