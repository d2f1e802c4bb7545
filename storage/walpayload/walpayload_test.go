package walpayload

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/table"
)

// sample makes rows of every layout and encoding.
func sample(rng *rand.Rand, n, series int) *table.Rows {
	rows := &table.Rows{Op: table.Op(rng.IntN(2))}
	for i := range series {
		key := table.AppendKeyInt(nil, table.Int64, int64(i))
		rows.Keys.Append(key, table.HashKey(key))
	}
	spread := []int64{1, 200, 60_000, 1 << 31, math.MaxInt64}[rng.IntN(5)]
	for range n {
		rows.Series = append(rows.Series, uint32(rng.IntN(series)))
		rows.Times = append(rows.Times, rng.Int64N(spread)-rng.Int64N(2)*spread)
	}
	valid := table.NewBitmap(n)
	for i := range n {
		if rng.IntN(3) > 0 {
			valid.Set(i)
		}
	}
	ints, floats, raw, bools := make([]int64, n), make([]float64, n), make([]float64, n), make([]bool, n)
	codes, offsets, data := make([]uint32, n), []uint32{0}, []byte{}
	for i := range n {
		ints[i] = rng.Int64N(spread) - spread/2
		floats[i] = float64(rng.IntN(int(min(spread, math.MaxInt32))))
		raw[i] = []float64{rng.Float64(), math.Copysign(0, -1), math.NaN(), math.Inf(1)}[rng.IntN(4)]
		bools[i] = rng.IntN(2) == 0
		codes[i] = uint32(rng.IntN(2))
		data = append(data, bytes.Repeat([]byte{'x'}, rng.IntN(4))...)
		offsets = append(offsets, uint32(len(data)))
	}
	dict := &table.Dict{Offsets: []uint32{0, 1, 3}, Data: []byte("abb")}
	for i, v := range []table.Vector{
		{Type: table.Int64, Ints: ints}, {Type: table.Float64, Floats: floats, Valid: valid}, {Type: table.Float64, Floats: raw},
		{Type: table.Boolean, Bools: bools}, {Type: table.String, Codes: codes, Dict: dict}, {Type: table.Binary, Offsets: offsets, Data: data},
	} {
		v.Len = n
		rows.Fields = append(rows.Fields, table.FieldVector{ID: table.ColumnID(i + 1), Vector: v})
	}
	return rows
}

var sameBits = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

func TestDecodeGivesBackWhatWasAppended(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		rows := sample(rng, 1+rng.IntN(100), 1+rng.IntN(400))
		got, err := Decode(Append(nil, rows))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(rows, got, sameBits); diff != "" {
			t.Fatalf("seed %d: decoded rows differ (-appended +decoded):\n%s", seed, diff)
		}
	}
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	payload := Append(nil, sample(rand.New(rand.NewPCG(1, 1)), 70, 3))
	for n := range payload {
		if _, err := Decode(payload[:n:n]); err == nil {
			t.Errorf("a payload cut from %d to %d bytes was decoded", len(payload), n)
		}
	}
}

// FuzzDecode checks that what decodes at all is encoded and decoded to the
// same rows, and that nothing panics.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(Append(nil, sample(rand.New(rand.NewPCG(seed, 0)), 20, 3)))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		rows, err := Decode(payload)
		if err != nil {
			return
		}
		again, err := Decode(Append(nil, rows))
		if err != nil {
			t.Fatalf("decoded rows do not survive: %v", err)
		}
		if diff := cmp.Diff(rows, again, sameBits); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name  string
		value func(*rand.Rand) float64
	}{
		{"integers", func(r *rand.Rand) float64 { return float64(r.IntN(100)) }},
		{"floats", (*rand.Rand).Float64},
	} {
		b.Run(c.name, func(b *testing.B) {
			rows := tsbs(c.value)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = Append(buf[:0], rows)
			}
			b.SetBytes(int64(len(buf)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows.Len()), "ns/row")
		})
	}
}

// tsbs makes a batch of 3,000 rows with 10 doubles.
func tsbs(value func(*rand.Rand) float64) *table.Rows {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := &table.Rows{}
	for i := range 3000 {
		key := table.AppendKeyBytes(nil, bytes.Repeat([]byte{'a' + byte(i%26)}, 150))
		key = table.AppendKeyInt(key, table.Int64, int64(i))
		rows.Series = append(rows.Series, rows.Keys.Append(key, table.HashKey(key)))
		rows.Times = append(rows.Times, 1_700_000_000_000_000_000)
	}
	for f := range 10 {
		v := table.Vector{Type: table.Float64, Len: 3000}
		for range 3000 {
			v.Floats = append(v.Floats, value(rng))
		}
		rows.Fields = append(rows.Fields, table.FieldVector{ID: table.ColumnID(f + 20), Vector: v})
	}
	return rows
}
