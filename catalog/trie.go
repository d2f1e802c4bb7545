package catalog

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

// A trie is an immutable map: set and remove return another one, which shares
// all but a few small nodes with the old. It is a hash array mapped trie, so
// that an edit to a catalog of many thousand tables copies some hundred bytes
// and a reader needs no lock.
//
// The zero trie is empty.
type trie[K comparable, V any] struct {
	root *node[K, V]
	size int
}

// A node holds the keys whose hashes agree up to its level. Bit b of present
// says that some key has the digit b at this level; slots has one slot for
// each bit set, in that order.
type node[K comparable, V any] struct {
	present uint32
	slots   []slot[K, V]
}

// A slot is a subtree or one key with its value.
type slot[K comparable, V any] struct {
	child *node[K, V]
	hash  uint64
	key   K
	value V
}

const (
	digitBits = 5
	// lastShift is where a hash has no digits left. A node there is a plain
	// list of keys, and present has no meaning.
	lastShift = 65
)

var trieSeed = maphash.MakeSeed()

// position returns where the digit of hash at this level is, or belongs, in
// slots, and its bit.
func (n *node[K, V]) position(hash uint64, shift uint) (int, uint32) {
	bit := uint32(1) << (hash >> shift & (1<<digitBits - 1))
	return bits.OnesCount32(n.present & (bit - 1)), bit
}

func (t trie[K, V]) len() int { return t.size }

func (t trie[K, V]) get(key K) (value V, ok bool) {
	hash := maphash.Comparable(trieSeed, key)
	n := t.root
	for shift := uint(0); n != nil && shift < lastShift; shift += digitBits {
		i, bit := n.position(hash, shift)
		if n.present&bit == 0 {
			return value, false
		}
		s := &n.slots[i]
		if s.child == nil {
			if s.key == key {
				return s.value, true
			}
			return value, false
		}
		n = s.child
	}
	if n != nil {
		for i := range n.slots {
			if n.slots[i].key == key {
				return n.slots[i].value, true
			}
		}
	}
	return value, false
}

func (t trie[K, V]) set(key K, value V) trie[K, V] {
	leaf := slot[K, V]{hash: maphash.Comparable(trieSeed, key), key: key, value: value}
	root, added := t.root.with(leaf, 0)
	if added {
		t.size++
	}
	return trie[K, V]{root, t.size}
}

func (t trie[K, V]) remove(key K) trie[K, V] {
	root, removed := t.root.without(maphash.Comparable(trieSeed, key), key, 0)
	if !removed {
		return t
	}
	return trie[K, V]{root, t.size - 1}
}

// all yields every key with its value, in no order.
func (t trie[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.each(yield) }
}

func (n *node[K, V]) each(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.slots {
		s := &n.slots[i]
		if s.child != nil {
			if !s.child.each(yield) {
				return false
			}
		} else if !yield(s.key, s.value) {
			return false
		}
	}
	return true
}

// with returns a copy of n that has the leaf, and whether its key is new.
func (n *node[K, V]) with(leaf slot[K, V], shift uint) (*node[K, V], bool) {
	if n == nil {
		n = &node[K, V]{}
	}
	if shift >= lastShift {
		i := slices.IndexFunc(n.slots, func(s slot[K, V]) bool { return s.key == leaf.key })
		if i < 0 {
			return &node[K, V]{slots: append(slices.Clip(n.slots), leaf)}, true
		}
		return n.replaced(i, leaf), false
	}
	i, bit := n.position(leaf.hash, shift)
	if n.present&bit == 0 {
		slots := make([]slot[K, V], 0, len(n.slots)+1)
		slots = append(append(append(slots, n.slots[:i]...), leaf), n.slots[i:]...)
		return &node[K, V]{n.present | bit, slots}, true
	}
	old := n.slots[i]
	if old.child == nil {
		if old.key == leaf.key {
			return n.replaced(i, leaf), false
		}
		old.child, _ = (*node[K, V])(nil).with(old, shift+digitBits)
	}
	child, added := old.child.with(leaf, shift+digitBits)
	return n.replaced(i, slot[K, V]{child: child}), added
}

// without returns a copy of n that lacks the key, and whether n had it. What
// becomes empty is nil.
func (n *node[K, V]) without(hash uint64, key K, shift uint) (*node[K, V], bool) {
	if n == nil {
		return nil, false
	}
	var i int
	var bit uint32
	if shift >= lastShift {
		i = slices.IndexFunc(n.slots, func(s slot[K, V]) bool { return s.key == key })
		if i < 0 {
			return n, false
		}
	} else if i, bit = n.position(hash, shift); n.present&bit == 0 {
		return n, false
	}
	if s := n.slots[i]; s.child != nil {
		child, removed := s.child.without(hash, key, shift+digitBits)
		if !removed {
			return n, false
		}
		if child != nil {
			return n.replaced(i, slot[K, V]{child: child}), true
		}
	} else if s.key != key {
		return n, false
	}
	if len(n.slots) == 1 {
		return nil, true
	}
	return &node[K, V]{n.present &^ bit, slices.Delete(slices.Clone(n.slots), i, i+1)}, true
}

func (n *node[K, V]) replaced(i int, s slot[K, V]) *node[K, V] {
	slots := slices.Clone(n.slots)
	slots[i] = s
	return &node[K, V]{n.present, slots}
}
