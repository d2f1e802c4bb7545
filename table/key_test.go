package table_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/varvedb/varve/table"
)

// tag is one tag of a test tuple: null, or a byte string.
type tag struct {
	null  bool
	value []byte
}

func encode(tags []tag) []byte {
	var key []byte
	nulls := 0
	for _, t := range tags {
		if t.null {
			key = table.AppendKeyNull(key)
			nulls++
			continue
		}
		key = table.AppendKeyBytes(key, t.value)
		nulls = 0
	}
	return table.TrimKey(key, nulls)
}

func compareTags(a, b []tag) int {
	return slices.CompareFunc(a, b, func(x, y tag) int {
		switch {
		case x.null && y.null:
			return 0
		case x.null:
			return -1
		case y.null:
			return 1
		}
		return bytes.Compare(x.value, y.value)
	})
}

func drawTags(t *rapid.T, label string) []tag {
	one := rapid.Custom(func(t *rapid.T) tag {
		if rapid.Bool().Draw(t, "null") {
			return tag{null: true}
		}
		return tag{value: rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 4).Draw(t, "value")}
	})
	return rapid.SliceOfN(one, 3, 3).Draw(t, label)
}

func TestKeysOrderAsTheirTuples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTags(t, "a"), drawTags(t, "b")
		if got, want := bytes.Compare(encode(a), encode(b)), compareTags(a, b); got != want {
			t.Fatalf("keys of %v and %v compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestAppendedNullTagKeepsTheKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawTags(t, "a")
		if longer := append(slices.Clone(a), tag{null: true}); !bytes.Equal(encode(a), encode(longer)) {
			t.Fatalf("key of %v changed when a null tag was appended", a)
		}
	})
}

func TestKeyReaderReturnsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := drawTags(t, "tags")
		var r table.KeyReader
		r.Reset(encode(tags))
		for i, want := range tags {
			got, ok := r.Bytes()
			if ok == want.null || !bytes.Equal(got, want.value) {
				t.Fatalf("tag %d of %v reads as %q, %v", i, tags, got, ok)
			}
		}
		if r.More() || r.Err() != nil {
			t.Fatalf("key of %v has more: %v", tags, r.Err())
		}
	})
}

func TestIntKeysOrderAsTheirType(t *testing.T) {
	f := func(typ table.Type, ascending ...int64) {
		t.Helper()
		var r table.KeyReader
		var last []byte
		for _, v := range ascending {
			key := table.AppendKeyInt(nil, typ, v)
			if bytes.Compare(last, key) >= 0 {
				t.Errorf("%v key of %d does not sort after the one before", typ, v)
			}
			r.Reset(key)
			if got, ok := r.Int(typ); !ok || got != v {
				t.Errorf("%v %d reads as %d, %v", typ, v, got, ok)
			}
			last = key
		}
	}
	f(table.Int64, math.MinInt64, -1, 0, 1, math.MaxInt64)
	f(table.UInt64, 0, 1, math.MaxInt64, math.MinInt64, -1) // as bits
	f(table.Boolean, 0, 1)
}

func TestFloatKeysOrderAsNumbers(t *testing.T) {
	var r table.KeyReader
	var last []byte
	for _, v := range []float64{math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.Inf(1), math.NaN()} {
		key := table.AppendKeyFloat(nil, v)
		if bytes.Compare(last, key) >= 0 {
			t.Errorf("key of %v does not sort after the one before", v)
		}
		r.Reset(key)
		if got, ok := r.Float(); !ok || (got != v && !(math.IsNaN(got) && math.IsNaN(v))) {
			t.Errorf("%v reads as %v, %v", v, got, ok)
		}
		last = key
	}
	if !bytes.Equal(table.AppendKeyFloat(nil, math.Copysign(0, -1)), table.AppendKeyFloat(nil, 0)) {
		t.Error("negative zero is a series of its own")
	}
}

func FuzzKeyReader(f *testing.F) {
	f.Add(encode([]tag{{value: []byte("a\x00b")}, {null: true}, {value: nil}}))
	f.Add([]byte{1, 0})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, key []byte) {
		var r table.KeyReader
		r.Reset(key)
		for r.More() {
			r.Bytes()
		}
		r.Reset(key)
		for r.More() {
			r.Int(table.Int64)
		}
	})
}
