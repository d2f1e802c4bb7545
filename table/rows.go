package table

import "hash/maphash"

// keySeed makes key hashes of this process; they are never stored.
var keySeed = maphash.MakeSeed()

// HashKey returns the hash of a series key within this process.
func HashKey(key []byte) uint64 { return maphash.Bytes(keySeed, key) }

// Keys is a list of distinct series keys with their hashes: key i is
// Data[Offsets[i]:Offsets[i+1]], its hash Hashes[i].
type Keys struct {
	Offsets []uint32 // one more than keys; starts with 0
	Data    []byte
	Hashes  []uint64
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.Hashes) }

// Key returns key i, which must not be changed.
func (k *Keys) Key(i int) []byte { return k.Data[k.Offsets[i]:k.Offsets[i+1]] }

// Append adds a key, which the caller knows to be new, and returns its index.
func (k *Keys) Append(key []byte, hash uint64) uint32 {
	if len(k.Offsets) == 0 {
		k.Offsets = append(k.Offsets, 0)
	}
	k.Data = append(k.Data, key...)
	k.Offsets = append(k.Offsets, uint32(len(k.Data)))
	k.Hashes = append(k.Hashes, hash)
	return uint32(len(k.Hashes) - 1)
}

// Reset empties k and keeps its memory.
func (k *Keys) Reset() {
	k.Offsets, k.Data, k.Hashes = k.Offsets[:0], k.Data[:0], k.Hashes[:0]
}

// An Op is what a row does to its identity. The numbers are part of the file
// formats.
type Op uint8

// The operations.
const (
	Put    Op = 0
	Delete Op = 1
)

// A FieldVector is the values of one field in Rows.
type FieldVector struct {
	ID ColumnID
	Vector
}

// Rows is what is written to one region: for each row its series, its time and
// its fields. Tags travel as series keys, because a decoder finds a known
// series by the raw bytes of its tags and never takes them apart again.
//
// Later rows win over earlier ones of the same identity. A field of the schema
// that is not in Fields is null. The writer owns Rows until Write returns, and
// Write keeps no reference into it.
type Rows struct {
	Op     Op
	Keys   Keys
	Series []uint32 // row → index into Keys
	Times  []int64  // in the unit of the table's time index
	Fields []FieldVector
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Times) }
