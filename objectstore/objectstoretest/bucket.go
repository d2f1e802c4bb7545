package objectstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/varvedb/varve/objectstore"
)

// TestBucket checks what objectstore.Bucket promises. open returns an empty
// bucket, which the suite closes.
func TestBucket(t *testing.T, open func(t *testing.T) objectstore.Bucket) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, objectstore.Bucket)
	}{
		{"reads what was written", bucketReads},
		{"read range", bucketReadRange},
		{"absent objects", bucketAbsent},
		{"an uncommitted object does not exist", bucketUncommitted},
		{"overwrite", bucketOverwrite},
		{"list", bucketList},
		{"one of many writers creates an absent object", bucketRace},
		{"an ended context", bucketContext},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := open(t)
			test.run(t, b)
			if err := b.Close(); err != nil {
				t.Error("close:", err)
			}
		})
	}
}

func put(t *testing.T, b objectstore.Bucket, key, data string) {
	t.Helper()
	if err := objectstore.Put(t.Context(), b, key, []byte(data), false); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t *testing.T, b objectstore.Bucket, key, want string) {
	t.Helper()
	if got, err := b.Read(t.Context(), key); err != nil || string(got) != want {
		t.Fatalf("read %s: %q, %v; want %q", key, got, err, want)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v; want %v", what, err, want)
	}
}

func bucketReads(t *testing.T, b objectstore.Bucket) {
	big := bytes.Repeat([]byte("varve"), 300_000)
	w, err := b.Create(t.Context(), "deep/er/big", true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for part := big; len(part) > 0; part = part[min(len(part), 99_999):] {
		if n, err := w.Write(part[:min(len(part), 99_999)]); err != nil || n != min(len(part), 99_999) {
			t.Fatal("write:", n, err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // does nothing
	wantRead(t, b, "deep/er/big", string(big))
	put(t, b, "empty", "")
	wantRead(t, b, "empty", "")
	o, err := b.Stat(t.Context(), "deep/er/big")
	if err != nil || o.Key != "deep/er/big" || o.Size != int64(len(big)) || o.Modified.IsZero() {
		t.Fatalf("stat: %+v, %v", o, err)
	}
	if err := w.Commit(); err == nil {
		t.Fatal("a second commit succeeds")
	}
}

func bucketReadRange(t *testing.T, b objectstore.Bucket) {
	put(t, b, "k", "0123456789")
	f := func(offset int64, n int, want string, wantE error) {
		t.Helper()
		p := make([]byte, n)
		err := b.ReadRange(t.Context(), "k", offset, p)
		if !errors.Is(err, wantE) || err == nil && string(p) != want {
			t.Fatalf("%d bytes at %d: %q, %v", n, offset, p, err)
		}
	}
	f(0, 10, "0123456789", nil)
	f(3, 4, "3456", nil)
	f(9, 1, "9", nil)
	f(2, 0, "", nil)
	f(9, 2, "", io.ErrUnexpectedEOF)
	f(10, 1, "", io.ErrUnexpectedEOF)
	f(99, 1, "", io.ErrUnexpectedEOF)
}

func bucketAbsent(t *testing.T, b objectstore.Bucket) {
	ctx := t.Context()
	put(t, b, "dir/object", "x")
	for _, key := range []string{"no", "no/where", "dir", "dir/object/below"} {
		_, err := b.Read(ctx, key)
		wantErr(t, "read "+key, err, objectstore.ErrNotFound)
		wantErr(t, "read range "+key, b.ReadRange(ctx, key, 0, make([]byte, 1)), objectstore.ErrNotFound)
		_, err = b.Stat(ctx, key)
		wantErr(t, "stat "+key, err, objectstore.ErrNotFound)
		if err := b.Delete(ctx, key); err != nil {
			t.Fatal("delete an absent object:", err)
		}
	}
	wantRead(t, b, "dir/object", "x")
	for range 2 {
		if err := b.Delete(ctx, "dir/object"); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "read range of a deleted object", b.ReadRange(ctx, "dir/object", 0, make([]byte, 1)), objectstore.ErrNotFound)
	}
}

func bucketUncommitted(t *testing.T, b objectstore.Bucket) {
	w, err := b.Create(t.Context(), "d/k", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		_, err := b.Read(t.Context(), "d/k")
		wantErr(t, "read", err, objectstore.ErrNotFound)
		if list, err := b.List(t.Context(), ""); err != nil || len(list) > 0 {
			t.Fatal("list:", list, err)
		}
	}
	check()
	w.Abort()
	w.Abort()
	check()
	if err := w.Commit(); err == nil {
		t.Fatal("a commit after Abort succeeds")
	}
	check()
}

func bucketOverwrite(t *testing.T, b objectstore.Bucket) {
	p := make([]byte, 3)
	for _, data := range []string{"one", "two"} {
		put(t, b, "k", data)
		wantRead(t, b, "k", data)
		if err := b.ReadRange(t.Context(), "k", 0, p); err != nil || string(p) != data {
			t.Fatalf("read range: %q, %v; want %q", p, err, data)
		}
	}
	err := objectstore.Put(t.Context(), b, "k", []byte("three"), true)
	wantErr(t, "create a taken key", err, objectstore.ErrExists)
	wantRead(t, b, "k", "two")
}

func bucketList(t *testing.T, b objectstore.Bucket) {
	// In the order of bytes, '.' is before '/', so "a.b" is before "a/b".
	keys := []string{"a.b", "a/b", "a/b.c", "a/b0/x", "a/c/d", "a0", "b"}
	for i := len(keys) - 1; i >= 0; i-- {
		put(t, b, keys[i], keys[i])
	}
	f := func(prefix string, want ...string) {
		t.Helper()
		list, err := b.List(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range list {
			got = append(got, o.Key)
			if o.Size != int64(len(o.Key)) || o.Modified.IsZero() {
				t.Fatalf("list: %+v", o)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("list %q: %q, want %q", prefix, got, want)
		}
	}
	f("", keys...)
	f("a", keys[:6]...)
	f("a/", keys[1:5]...)
	f("a/b", keys[1:4]...)
	f("a/b0/x", "a/b0/x")
	f("a/b0/xy")
	f("c")
}

func bucketRace(t *testing.T, b objectstore.Bucket) {
	for round := range 20 {
		key := fmt.Sprintf("race/%d", round)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				errs[i] = objectstore.Put(t.Context(), b, key, []byte{byte('0' + i)}, true)
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case !errors.Is(err, objectstore.ErrExists):
				t.Fatalf("writer %d: %v; writer %d won before", i, err, winner)
			}
		}
		if winner < 0 {
			t.Fatal("nobody won")
		}
		wantRead(t, b, key, string(rune('0'+winner)))
	}
}

func bucketContext(t *testing.T, b objectstore.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := b.Create(ctx, "k", true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantErr(t, "commit", w.Commit(), context.Canceled)
	_, err = b.Stat(t.Context(), "k")
	wantErr(t, "stat", err, objectstore.ErrNotFound)
}
