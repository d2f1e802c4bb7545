package memtable

import (
	"bytes"
	"sync/atomic"
)

// A seriesTable finds series by key. Only the writer uses the slots; readers
// see the blocks.
type seriesTable struct {
	slots  []slot // open addressing, a power of two, at most ¾ full
	blocks []*seriesBlock
	count  uint32
	arena  []byte // where the next key is copied; a full one is left to its keys
}

type slot struct {
	hash uint32
	id   uint32 // series + 1; 0: free
}

type seriesBlock []series

type series struct {
	key        []byte
	min, max   atomic.Int64  // of the rows' times; a reader may see those of rows behind its snapshot
	last       atomic.Uint32 // the newest row + 1
	disordered atomic.Bool   // a row was not newer than all before
	mixed      atomic.Bool   // there is a tombstone, or perhaps a repeat
}

func (t *seriesTable) at(id uint32) *series {
	k, off := locate(id)
	return &(*t.blocks[k])[off]
}

// find returns the series with the given key, which it adds if it is new, and
// the bytes allocated.
func (t *seriesTable) find(key []byte, hash uint64) (id uint32, grown int64) {
	if uint64(t.count+1)*4 > uint64(len(t.slots))*3 {
		grown = t.growSlots()
	}
	h := uint32(hash >> 32)
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.id == 0 {
			id = t.count
			*s = slot{hash: h, id: id + 1}
			grown += t.add(key)
			return id, grown
		}
		if s.hash == h && bytes.Equal(t.at(s.id-1).key, key) {
			return s.id - 1, grown
		}
	}
}

func (t *seriesTable) growSlots() int64 {
	old := t.slots
	t.slots = make([]slot, max(16, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
	return int64(len(t.slots)-len(old)) * 8
}

const (
	seriesBytes   = 56 // of a series in its block
	firstKeyBytes = 256
	maxKeyBytes   = 64 << 10
)

func (t *seriesTable) add(key []byte) (grown int64) {
	k, off := locate(t.count)
	if int(k) == len(t.blocks) {
		block := make(seriesBlock, chunkSize(int(k)))
		t.blocks = append(t.blocks, &block)
		grown += int64(len(block)) * seriesBytes
	}
	if len(t.arena)+len(key) > cap(t.arena) {
		size := max(min(2*cap(t.arena), maxKeyBytes), firstKeyBytes, len(key))
		t.arena = make([]byte, 0, size)
		grown += int64(size)
	}
	at := len(t.arena)
	t.arena = append(t.arena, key...)
	(*t.blocks[k])[off].key = t.arena[at:len(t.arena):len(t.arena)]
	t.count++
	return grown
}

// at returns a series of the snapshot's table.
func (s *Snapshot) at(id uint32) *series {
	k, off := locate(id)
	return &(*s.blocks[k])[off]
}
