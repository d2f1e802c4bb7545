package editlog

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
)

var quiet = Options{Logger: slog.New(slog.DiscardHandler)}

// A user keeps a list of words in a log, as a manifest keeps files.
type user struct {
	log   *Log
	words []string
}

func open(ctx context.Context, b objectstore.Bucket, opts Options) (*user, error) {
	log, state, err := Open(ctx, b, "log/", opts)
	if err != nil {
		return nil, err
	}
	u := &user{log: log, words: strings.Fields(string(state.Checkpoint))}
	for _, e := range state.Edits {
		u.words = append(u.words, string(e))
	}
	return u, nil
}

func (u *user) add(ctx context.Context, word string) error {
	err := u.log.Append(ctx, []byte(word))
	if err == nil {
		u.words = append(u.words, word)
	}
	return err
}

func (u *user) checkpoint(ctx context.Context) error {
	return u.log.Checkpoint(ctx, []byte(strings.Join(u.words, " ")))
}

func mustOpen(t *testing.T, b objectstore.Bucket) *user {
	t.Helper()
	u, err := open(t.Context(), b, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) mustAdd(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if err := u.add(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
}

func (u *user) mustCheckpoint(t *testing.T) {
	t.Helper()
	if err := u.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantWords(t *testing.T, b objectstore.Bucket, want string) {
	t.Helper()
	if got := strings.Join(mustOpen(t, b).words, " "); got != want {
		t.Fatalf("the log holds %q, want %q", got, want)
	}
}

func keys(t *testing.T, b objectstore.Bucket) string {
	t.Helper()
	list, err := b.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, o := range list {
		s = append(s, strings.TrimLeft(strings.TrimPrefix(o.Key, "log/"), "0"))
	}
	return strings.Join(s, " ")
}

func TestLog(t *testing.T) {
	b := objectstore.MemBucket()
	u := mustOpen(t, b)
	if v, n := u.log.Version(), u.log.SinceCheckpoint(); v != 0 || n != 0 {
		t.Fatal(v, n)
	}
	u.mustAdd(t, "a", "b")
	wantWords(t, b, "a b")
	u = mustOpen(t, b)
	u.mustAdd(t, "c")
	if v, n := u.log.Version(), u.log.SinceCheckpoint(); v != 3 || n != 3 {
		t.Fatal(v, n)
	}
	u.mustCheckpoint(t)
	if v, n := u.log.Version(), u.log.SinceCheckpoint(); v != 4 || n != 0 {
		t.Fatal(v, n)
	}
	wantWords(t, b, "a b c")
	u.mustAdd(t, "d")
	u.mustCheckpoint(t)
	u.mustAdd(t, "e")
	wantWords(t, b, "a b c d e")
	if got := keys(t, b); got != "6 7 current" {
		t.Fatal("objects:", got)
	}
}

func TestOpenLists(t *testing.T) {
	f := func(edits, checkpoints int, damage func(objectstore.Bucket), want bool) {
		t.Helper()
		b := objectstore.MemBucket()
		u := mustOpen(t, b)
		for range checkpoints {
			u.mustAdd(t, "a")
			u.mustCheckpoint(t)
		}
		for range edits {
			u.mustAdd(t, "b")
		}
		if damage != nil {
			damage(b)
		}
		listed := false
		faults := objectstoretest.NewFaults(func(op objectstoretest.Op) objectstoretest.Action {
			listed = listed || op.Name == "list"
			return objectstoretest.Pass
		})
		wantWords(t, faults.Bucket(b), strings.Join(u.words, " "))
		if listed != want {
			t.Fatalf("listed: %v", listed)
		}
	}
	f(0, 0, nil, true) // a new log
	f(1, 0, nil, false)
	f(0, 1, nil, false)
	f(3, 2, nil, false)
	f(2, 2, func(b objectstore.Bucket) { _ = b.Delete(t.Context(), HintKey("log/")) }, true)
	f(2, 2, func(b objectstore.Bucket) {
		_ = objectstore.Put(t.Context(), b, HintKey("log/"), []byte("junk"), false)
	}, true)
	f(2, 2, func(b objectstore.Bucket) { // names a number that is gone
		data, _ := EncodeObject(Object{Kind: Hint, Number: 2})
		_ = objectstore.Put(t.Context(), b, HintKey("log/"), data, false)
	}, true)
}

// Whoever writes second is fenced, however long it slept and whatever was
// deleted meanwhile.
func TestFencing(t *testing.T) {
	f := func(name string, between func(sleeper, other *user)) {
		t.Run(name, func(t *testing.T) {
			b := objectstore.MemBucket()
			u := mustOpen(t, b)
			u.mustAdd(t, "a", "b")
			sleeper, other := u, mustOpen(t, b)
			between(sleeper, other)
			for range 2 {
				if err := sleeper.add(t.Context(), "never"); !errors.Is(err, ErrFenced) {
					t.Fatal("append:", err)
				}
				if err := sleeper.checkpoint(t.Context()); !errors.Is(err, ErrFenced) {
					t.Fatal("checkpoint:", err)
				}
			}
			other.mustAdd(t, "last")
			wantWords(t, b, strings.Join(other.words, " "))
		})
	}
	f("after an edit", func(_, other *user) { other.mustAdd(t, "c") })
	f("after a checkpoint", func(_, other *user) { other.mustAdd(t, "c"); other.mustCheckpoint(t) })
	f("after checkpoints", func(_, other *user) {
		for range 3 {
			other.mustAdd(t, "c", "d")
			other.mustCheckpoint(t)
		}
	})
	f("after checkpoints, with one of its own", func(sleeper, other *user) {
		sleeper.mustCheckpoint(t)
		*other = *mustOpen(t, sleeper.log.bucket)
		for range 3 {
			other.mustAdd(t, "c", "d")
			other.mustCheckpoint(t)
		}
	})
}

// A hint that a slow writer put back, to a number that another writer has
// created again after its deletion, does not lead to that writer's object.
func TestLateHint(t *testing.T) {
	b := objectstore.MemBucket()
	u := mustOpen(t, b)
	u.mustAdd(t, "a")
	u.mustCheckpoint(t)
	late, err := b.Read(t.Context(), HintKey("log/"))
	if err != nil {
		t.Fatal(err)
	}
	u.mustAdd(t, "b")
	u.mustCheckpoint(t)
	bogus, err := EncodeObject(Object{Kind: Checkpoint, Number: 2, Writer: WriterID{1}, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range map[string][]byte{HintKey("log/"): late, Key("log/", 2): bogus} {
		if err := objectstore.Put(t.Context(), b, key, data, false); err != nil {
			t.Fatal(err)
		}
	}
	wantWords(t, b, "a b")
}

func TestNewLogFencing(t *testing.T) {
	b := objectstore.MemBucket()
	sleeper, other := mustOpen(t, b), mustOpen(t, b)
	other.mustAdd(t, "a")
	other.mustCheckpoint(t)
	if err := sleeper.add(t.Context(), "never"); !errors.Is(err, ErrFenced) {
		t.Fatal(err)
	}
	wantWords(t, b, "a")
}

// An edit that was reported as failed but had happened is not part of the
// state once another one is committed.
func TestDoubt(t *testing.T) {
	b := objectstore.MemBucket()
	faults := objectstoretest.NewFaults(nil)
	u := mustOpen(t, faults.Bucket(b))
	u.mustAdd(t, "a")
	for round := range 4 {
		faults.SetHook(func(op objectstoretest.Op) objectstoretest.Action {
			if op.Name == "commit" {
				return objectstoretest.After
			}
			return objectstoretest.Pass
		})
		for range 2 {
			if err := u.add(t.Context(), "x"); !errors.Is(err, objectstoretest.ErrInjected) {
				t.Fatal(err)
			}
		}
		if round >= 2 { // in the first rounds only edits are in doubt
			if err := u.checkpoint(t.Context()); !errors.Is(err, objectstoretest.ErrInjected) {
				t.Fatal(err)
			}
		}
		faults.SetHook(nil)
		u.mustAdd(t, "b")
		wantWords(t, b, strings.Join(u.words, " "))
	}
	u.mustCheckpoint(t)
	u.mustAdd(t, "c")
	wantWords(t, b, "a b b b b c")
}

// Any flipped byte and any cut of any object is either an error that names
// the object's key or, for the hint, harmless. Salvage goes on.
func TestDamage(t *testing.T) {
	build := func() (objectstore.Bucket, *user) {
		b := objectstore.MemBucket()
		u := mustOpen(t, b)
		u.mustAdd(t, "a")
		u.mustCheckpoint(t)
		u.mustAdd(t, "b", "c")
		return b, u
	}
	b, _ := build()
	list, err := b.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	check := func(key string, data []byte) {
		t.Helper()
		b, u := build()
		if err := objectstore.Put(t.Context(), b, key, data, false); err != nil {
			t.Fatal(err)
		}
		got, err := open(t.Context(), b, quiet)
		if key == HintKey("log/") {
			if err != nil || !slices.Equal(got.words, u.words) {
				t.Fatalf("%v, %v", got, err)
			}
			return
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), key) {
			t.Fatalf("%s: %v", key, err)
		}
		var told []string
		_, _, err = Open(t.Context(), b, "log/", Options{Logger: quiet.Logger, Salvage: func(key string, err error) {
			told = append(told, key)
		}})
		if err != nil || !slices.Contains(told, key) {
			t.Fatalf("salvage: told %q, %v; want %s", told, err, key)
		}
	}
	for _, o := range list {
		data, err := b.Read(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] ^= 0x20
			check(o.Key, data)
			data[i] ^= 0x20
			check(o.Key, data[:i])
		}
	}
}

func TestSalvageGap(t *testing.T) {
	b := objectstore.MemBucket()
	u := mustOpen(t, b)
	u.mustAdd(t, "a", "b", "c", "d")
	if err := b.Delete(t.Context(), Key("log/", 2)); err != nil {
		t.Fatal(err)
	}
	var told []string
	log, state, err := Open(t.Context(), b, "log/", Options{Salvage: func(key string, err error) { told = append(told, key) }})
	if err != nil || !slices.Equal(told, []string{Key("log/", 2)}) || len(state.Edits) != 3 {
		t.Fatal(told, state, err)
	}
	if err := log.Append(t.Context(), nil); err == nil {
		t.Fatal("a log opened for salvage can be written")
	}
}

func TestNewerVersion(t *testing.T) {
	data, err := EncodeObject(Object{Kind: Edit, Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	data[4] = version + 1
	reseal(data)
	if _, err := DecodeObject(data); err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 2") {
		t.Fatal(err)
	}
}

func TestWaitingForTurn(t *testing.T) {
	u := mustOpen(t, objectstore.MemBucket())
	<-u.log.turn
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.add(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	u.log.turn <- struct{}{}
}

func FuzzDecodeObject(f *testing.F) {
	for _, o := range []Object{{Kind: Edit, Number: 1}, {Kind: Checkpoint, Number: 7, Oldest: 3, Voids: 2, Attempt: 9, Payload: []byte("state")}} {
		data, err := EncodeObject(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 2 { // as it is, and with checksums that fit
			if o, err := DecodeObject(data); err == nil {
				again, err := EncodeObject(o)
				if err != nil || !reflect.DeepEqual(again, data) {
					t.Fatalf("%x encodes as %x, %v", data, again, err)
				}
			}
			if data = slices.Clone(data); len(data) >= headerSize {
				reseal(data)
			}
		}
	})
}

// A log of which one object is gone is damaged, wherever the hole is: nothing
// behind it may be left out silently. Only the last object leaves no trace.
func TestHole(t *testing.T) {
	for _, words := range [][]string{{"a", "b", "c", "d"}, {"a", "b", "", "c", "d", "e"}} { // "": a checkpoint
		for n := uint64(1); n < uint64(len(words)); n++ {
			b := objectstore.MemBucket()
			u := mustOpen(t, b)
			for _, w := range words {
				if w != "" {
					u.mustAdd(t, w)
				} else if err := u.checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Delete(t.Context(), Key("log/", n)); err != nil {
				t.Fatal(err)
			}
			got, err := open(t.Context(), b, quiet)
			if err == nil && slices.Equal(got.words, u.words) {
				continue // it lay before the checkpoint
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("object %d of %d is gone: got %v, %v", n, len(words), got, err)
			}
		}
	}
}
