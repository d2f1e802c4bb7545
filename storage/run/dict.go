package run

import (
	"bytes"
	"hash/maphash"

	"github.com/varvedb/varve/table"
)

var dictSeed = maphash.MakeSeed()

// A dictGrower is a dictionary that only grows. Entries have codes from 0.
type dictGrower struct {
	offsets []uint32
	data    []byte
	slots   []uint32 // code+1 by hash, open addressing; a power of two
	hashes  []uint64

	remaps map[*table.Dict][]uint32 // code+1 here by code there; 0: not met yet
	last   *table.Dict              // the Dict of remap
	remap  []uint32
}

// maxRemaps bounds the source Dicts that are remembered.
const maxRemaps = 64

func (d *dictGrower) len() int {
	return len(d.hashes)
}

func (d *dictGrower) bytes() int { return len(d.data) + 4*len(d.offsets) }

func (d *dictGrower) value(code uint32) []byte {
	return d.data[d.offsets[code]:d.offsets[code+1]]
}

// snapshot returns the entries so far, of which there is at least one.
func (d *dictGrower) snapshot() *table.Dict {
	if d.len() == 0 {
		d.code(nil)
	}
	n := len(d.offsets)
	return &table.Dict{Offsets: d.offsets[:n:n], Data: d.data[:len(d.data):len(d.data)]}
}

// appendCodes appends the codes of rows [from, to) of src, which has a Dict.
// Nulls get the code 0.
func (d *dictGrower) appendCodes(codes []uint32, src *table.Vector, from, to int) []uint32 {
	remap := d.remapOf(src.Dict)
	for i := from; i < to; i++ {
		if src.IsNull(i) {
			codes = append(codes, 0)
			continue
		}
		c := src.Codes[i]
		if remap[c] == 0 {
			remap[c] = d.code(src.Dict.Value(c)) + 1
		}
		codes = append(codes, remap[c]-1)
	}
	if d.len() == 0 {
		d.code(nil) // so that the code of a null is one
	}
	return codes
}

func (d *dictGrower) remapOf(dict *table.Dict) []uint32 {
	if d.last == dict {
		return d.remap
	}
	remap := d.remaps[dict]
	if remap == nil {
		if d.remaps == nil || len(d.remaps) >= maxRemaps {
			d.remaps = make(map[*table.Dict][]uint32)
		}
		remap = make([]uint32, dict.Len())
		d.remaps[dict] = remap
	}
	d.last, d.remap = dict, remap
	return remap
}

// code returns the code of value, adding it if it is new.
func (d *dictGrower) code(value []byte) uint32 {
	if 2*len(d.hashes) >= len(d.slots) {
		d.rehash()
	}
	h := maphash.Bytes(dictSeed, value)
	mask := uint64(len(d.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		c := d.slots[i]
		if c == 0 {
			d.slots[i] = uint32(len(d.hashes)) + 1
			break
		}
		if d.hashes[c-1] == h && bytes.Equal(d.value(c-1), value) {
			return c - 1
		}
	}
	if len(d.offsets) == 0 {
		d.offsets = append(d.offsets, 0)
	}
	d.data = append(d.data, value...)
	d.offsets = append(d.offsets, uint32(len(d.data)))
	d.hashes = append(d.hashes, h)
	return uint32(len(d.hashes) - 1)
}

func (d *dictGrower) rehash() {
	d.slots = make([]uint32, max(64, 2*len(d.slots)))
	mask := uint64(len(d.slots) - 1)
	for c, h := range d.hashes {
		i := h & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = uint32(c) + 1
	}
}
