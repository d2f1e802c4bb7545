package editlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
)

// workload appends and checkpoints, opening anew after each error if reopen
// says so, and returns the words that must be there and those that may follow
// them.
func workload(ctx context.Context, b objectstore.Bucket, reopen bool) (must, may []string) {
	var u *user
	for i := range 14 {
		var err error
		if u == nil {
			if u, err = open(ctx, b, quiet); err != nil {
				u = nil
				continue
			}
			must, may = u.words, nil
		}
		word := fmt.Sprint("w", i)
		if i%4 == 3 {
			err = u.checkpoint(ctx)
		} else if err = u.add(ctx, word); err != nil && may == nil {
			may = []string{word}
		}
		if err == nil {
			must, may = slices.Clone(u.words), nil
		} else if reopen {
			u = nil
		}
	}
	return must, may
}

func checkWords(t *testing.T, what string, b objectstore.Bucket, must, may []string) {
	t.Helper()
	u, err := open(t.Context(), b, quiet)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(u.words, must) && !slices.Equal(u.words, append(slices.Clone(must), may...)) {
		t.Fatalf("%s: the log holds %q, want %q, then maybe %q", what, u.words, must, may)
	}
	if err := u.add(t.Context(), "z"); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := u.checkpoint(t.Context()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func dir(t *testing.T, d objectstore.Disk) objectstore.Bucket {
	t.Helper()
	b, err := objectstore.OpenDir(d, "root")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCrashSweep(t *testing.T) {
	for n := 1; ; n++ {
		for seed := range uint64(3) {
			d := objectstoretest.NewMemDisk()
			faults := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
			var must, may []string
			if b, err := objectstore.OpenDir(faults.Disk(d), "root"); err == nil {
				must, may = workload(t.Context(), b, false)
			}
			after := d.CrashTorn(seed)
			if seed == 0 {
				after = d.Crash()
			}
			checkWords(t, fmt.Sprintf("stop at %d, seed %d", n, seed), dir(t, after), must, may)
			if !faults.Stopped() {
				return
			}
		}
	}
}

func TestFailSweep(t *testing.T) {
	for _, reopen := range []bool{false, true} {
		for _, action := range []objectstoretest.Action{objectstoretest.Fail, objectstoretest.After, objectstoretest.Tear, objectstoretest.Full} {
			for n := 1; ; n++ {
				d := objectstoretest.NewMemDisk()
				faults := objectstoretest.NewFaults(objectstoretest.At(n, action))
				b, err := objectstore.OpenDir(faults.Disk(d), "root")
				if err != nil {
					continue
				}
				must, may := workload(t.Context(), b, reopen)
				checkWords(t, fmt.Sprintf("%v at %d, reopen %v", action, n, reopen), dir(t, d.Crash()), must, may)
				if faults.Ops() < n {
					break
				}
			}
		}
	}
}

// Several writers, which open, write and checkpoint in between each other's
// operations, with requests that fail before or after they happen: every
// acknowledged word stays, once, in order.
func TestRivals(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := rivals{t: t, seed: seed, r: r, raw: objectstore.MemBucket(), tried: map[string]bool{}}
		m.faults = objectstoretest.NewFaults(m.hook)
		for range 60 {
			m.step(0, m.faults.Bucket(m.raw))
		}
		m.check()
	}
}

type rivals struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	raw    objectstore.Bucket
	faults *objectstoretest.Faults
	users  [4]*user
	acked  []string
	tried  map[string]bool
	nested bool
}

// hook lets another writer make a step before an operation of the first one,
// and makes operations fail.
func (m *rivals) hook(objectstoretest.Op) objectstoretest.Action {
	if m.r.IntN(6) == 0 && !m.nested {
		m.nested = true
		m.step(1+m.r.IntN(3), m.raw)
		m.nested = false
	}
	switch m.r.IntN(12) {
	case 0:
		return objectstoretest.Fail
	case 1:
		return objectstoretest.After
	default:
		return objectstoretest.Pass
	}
}

func (m *rivals) step(i int, b objectstore.Bucket) {
	ctx := m.t.Context()
	u := m.users[i]
	if u == nil || m.r.IntN(12) == 0 {
		u, err := open(ctx, b, quiet)
		if err == nil {
			m.users[i] = u
		} else if i > 0 {
			m.t.Fatalf("seed %d: %v", m.seed, err)
		}
		return
	}
	var err error
	if m.r.IntN(4) == 0 {
		err = u.checkpoint(ctx)
	} else {
		word := fmt.Sprint("w", len(m.tried))
		m.tried[word] = true
		if err = u.add(ctx, word); err == nil {
			m.acked = append(m.acked, word)
		}
	}
	if errors.Is(err, ErrFenced) {
		m.users[i] = nil
	}
}

func (m *rivals) check() {
	u, err := open(m.t.Context(), m.raw, quiet)
	if err != nil {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	acked := m.acked
	seen := map[string]bool{}
	for _, w := range u.words {
		if seen[w] || !m.tried[w] {
			m.t.Fatalf("seed %d: %s is there twice or was never sent: %q", m.seed, w, u.words)
		}
		seen[w] = true
		if len(acked) > 0 && acked[0] == w {
			acked = acked[1:]
		}
	}
	if len(acked) > 0 {
		m.t.Fatalf("seed %d: %q is lost or out of order: %q, acknowledged %q", m.seed, acked, u.words, m.acked)
	}
}
