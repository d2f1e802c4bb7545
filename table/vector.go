package table

// A Bitmap holds one bit a row, least significant first, as DuckDB's validity
// masks and Arrow's do. A nil Bitmap means that every bit is set.
type Bitmap []uint64

// NewBitmap returns a Bitmap of n clear bits.
func NewBitmap(n int) Bitmap { return make(Bitmap, (n+63)/64) }

// Get reports bit i.
func (b Bitmap) Get(i int) bool { return b == nil || b[i>>6]&(1<<(i&63)) != 0 }

// Set sets bit i of a non-nil Bitmap.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Clear clears bit i of a non-nil Bitmap.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (i & 63) }

// A Dict is an immutable list of distinct byte strings: entry i is
// Data[Offsets[i]:Offsets[i+1]]. Readers may share work between vectors whose
// Dict is the same pointer.
type Dict struct {
	Offsets []uint32 // one more than entries
	Data    []byte
}

// Len returns the number of entries.
func (d *Dict) Len() int {
	if len(d.Offsets) == 0 {
		return 0
	}
	return len(d.Offsets) - 1
}

// Value returns entry i, which must not be changed.
func (d *Dict) Value(i uint32) []byte { return d.Data[d.Offsets[i]:d.Offsets[i+1]] }

// A Vector is the values of one column for a run of rows. Type.Layout says
// which of the slices holds them; the others are nil. A null row has some
// value in that slice (zero by custom), which readers ignore.
//
// Byte strings come in one of two encodings: with Dict set, row i is
// Dict.Value(Codes[i]); else it is Data[Offsets[i]:Offsets[i+1]].
type Vector struct {
	Type  Type
	Len   int
	Valid Bitmap // nil: no nulls

	Ints    []int64
	Floats  []float64
	Bools   []bool
	Codes   []uint32
	Dict    *Dict
	Offsets []uint32
	Data    []byte
}

// IsNull reports whether row i is null.
func (v *Vector) IsNull(i int) bool { return !v.Valid.Get(i) }

// Bytes returns the byte string of row i, which must not be changed.
func (v *Vector) Bytes(i int) []byte {
	if v.Dict != nil {
		return v.Dict.Value(v.Codes[i])
	}
	return v.Data[v.Offsets[i]:v.Offsets[i+1]]
}

// A Batch is a run of rows that a Partition hands out: one vector a requested
// column, in the order of ScanSpec.Columns, all of length Len. With no columns
// requested only Len has meaning.
type Batch struct {
	Len     int
	Columns []Vector
}
