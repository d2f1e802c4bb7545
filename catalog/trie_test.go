package catalog

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// A trie behaves as a map, and its older versions stay what they were.
func TestTrie(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var now trie[int, int]
	model := map[int]int{}
	type version struct {
		trie  trie[int, int]
		model map[int]int
	}
	var versions []version
	for i := range 20_000 {
		key := rng.IntN(3000)
		if rng.IntN(3) == 0 {
			now = now.remove(key)
			delete(model, key)
		} else {
			now = now.set(key, i)
			model[key] = i
		}
		if i%2000 == 0 {
			versions = append(versions, version{now, maps.Clone(model)})
		}
	}
	versions = append(versions, version{now, model})
	for n, v := range versions {
		if v.trie.len() != len(v.model) || !maps.Equal(maps.Collect(v.trie.all()), v.model) {
			t.Fatalf("version %d: has %d keys, want %d", n, v.trie.len(), len(v.model))
		}
		for key := range 3000 {
			got, ok := v.trie.get(key)
			want, wantOK := v.model[key]
			if got != want || ok != wantOK {
				t.Fatalf("version %d: get(%d) = %d, %v; want %d, %v", n, key, got, ok, want, wantOK)
			}
		}
	}
}

// Keys whose hashes are equal in every digit are all kept.
func TestTrieCollisions(t *testing.T) {
	const same = 0xdeadbeefdeadbeef
	var root *node[int, string]
	for key := range 5 {
		root, _ = root.with(slot[int, string]{hash: same, key: key, value: "old"}, 0)
	}
	root, added := root.with(slot[int, string]{hash: same, key: 3, value: "new"}, 0)
	if added {
		t.Error("replacing a key counted as adding one")
	}
	root, removed := root.without(same, 1, 0)
	if !removed {
		t.Error("a colliding key was not removed")
	}
	if _, removed = root.without(same, 9, 0); removed {
		t.Error("an absent key was removed")
	}
	got := maps.Collect(trie[int, string]{root, 4}.all())
	want := map[int]string{0: "old", 2: "old", 3: "new", 4: "old"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
