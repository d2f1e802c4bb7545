package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/objectstoretest"
)

func TestOSDisk(t *testing.T) {
	objectstoretest.TestDisk(t, func(t *testing.T) (objectstore.Disk, string) {
		return objectstore.OSDisk(), filepath.ToSlash(t.TempDir())
	})
}

func TestMemBucket(t *testing.T) {
	objectstoretest.TestBucket(t, func(*testing.T) objectstore.Bucket { return objectstore.MemBucket() })
}

func openDir(t *testing.T, d objectstore.Disk, root string) objectstore.Bucket {
	t.Helper()
	b, err := objectstore.OpenDir(d, root)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDirBucket(t *testing.T) {
	objectstoretest.TestBucket(t, func(t *testing.T) objectstore.Bucket {
		return openDir(t, objectstore.OSDisk(), filepath.ToSlash(t.TempDir())+"/new/root")
	})
	objectstoretest.TestBucket(t, func(t *testing.T) objectstore.Bucket {
		return openDir(t, objectstoretest.NewMemDisk(), "root")
	})
	objectstoretest.TestBucket(t, func(t *testing.T) objectstore.Bucket {
		b, err := objectstore.OpenDirBlob(objectstoretest.NewMemDisk(), "root")
		if err != nil {
			t.Fatal(err)
		}
		return objectstore.FromBlob(b)
	})
}

func TestDirKeys(t *testing.T) {
	b := openDir(t, objectstoretest.NewMemDisk(), "root")
	for _, key := range []string{"", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/.", "a/.tmp-1", "a\x00b", string(bytes.Repeat([]byte("x"), 256))} {
		if err := objectstore.Put(t.Context(), b, key, nil, false); err == nil {
			t.Errorf("key %q can be written", key)
		}
		if err := b.ReadRange(t.Context(), key, 0, nil); err == nil {
			t.Errorf("key %q can be read", key)
		}
	}
}

// What a killed process left half-written is gone after the next open, and
// objects stay.
func TestDirCleans(t *testing.T) {
	d := objectstoretest.NewMemDisk()
	b := openDir(t, d, "root")
	for _, key := range []string{"a/b/keep", "a/c/half"} {
		w, err := b.Create(t.Context(), key, true)
		if err != nil {
			t.Fatal(err)
		}
		if key == "a/b/keep" {
			err = w.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	view, err := objectstore.ViewDir(d, "root")
	if err != nil {
		t.Fatal(err)
	}
	if err := objectstore.Put(t.Context(), view, "x", nil, false); err == nil {
		t.Fatal("a view can be written")
	}
	if _, err := d.Stat("root/a/c"); err != nil {
		t.Fatal("a view cleans:", err)
	}
	openDir(t, d, "root")
	if _, err := d.Stat("root/a/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("an empty directory is left:", err)
	}
	if entries, err := d.ReadDir("root/a/b"); err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
}

func TestBlobPages(t *testing.T) {
	b, err := objectstore.OpenDirBlob(objectstoretest.NewMemDisk(), "root")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range 10 {
		if err := b.WriteAll(t.Context(), fmt.Sprintf("d%d/%d", i/4, i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	f := func(opts *blob.ListOptions, size int, want string) {
		t.Helper()
		var got []string
		for token := blob.FirstPageToken; token != nil; {
			page, next, err := b.ListPage(t.Context(), token, size, opts)
			if err != nil || len(page) > size {
				t.Fatal(len(page), err)
			}
			for _, o := range page {
				got = append(got, o.Key)
			}
			token = next
		}
		if fmt.Sprint(got) != want {
			t.Fatalf("got %v, want %s", got, want)
		}
	}
	f(nil, 3, "[d0/0 d0/1 d0/2 d0/3 d1/4 d1/5 d1/6 d1/7 d2/8 d2/9]")
	f(&blob.ListOptions{Prefix: "d1/"}, 1, "[d1/4 d1/5 d1/6 d1/7]")
	f(&blob.ListOptions{Delimiter: "/"}, 2, "[d0/ d1/ d2/]")
	if err := b.Copy(t.Context(), "copy", "d0/0", nil); err != nil {
		t.Fatal(err)
	}
	err = b.WriteAll(t.Context(), "k", nil, &blob.WriterOptions{Metadata: map[string]string{"a": "b"}})
	if gcerrors.Code(err) != gcerrors.Unimplemented {
		t.Fatal("metadata is dropped silently:", err)
	}
}

// Stop after every operation of a run of writes and deletes: what was
// acknowledged is there after the crash, whole, and so is nothing that was not
// sent.
func TestDirCrashSweep(t *testing.T) {
	for n := 1; ; n++ {
		for seed := range uint64(4) {
			d := objectstoretest.NewMemDisk()
			faults := objectstoretest.NewFaults(objectstoretest.At(n, objectstoretest.Stop))
			acked := dirWorkload(t.Context(), faults.Disk(d))
			after := d.CrashTorn(seed)
			if seed == 0 {
				after = d.Crash()
			}
			checkDir(t, fmt.Sprintf("stop at %d, seed %d", n, seed), openDir(t, after, "data/root"), acked)
			if !faults.Stopped() {
				return
			}
		}
	}
}

// Fail every operation in every way: errors are reported, acknowledged writes
// are there, and the bucket heals.
func TestDirFailSweep(t *testing.T) {
	for _, action := range []objectstoretest.Action{objectstoretest.Fail, objectstoretest.After, objectstoretest.Tear, objectstoretest.Full} {
		for n := 1; ; n++ {
			d := objectstoretest.NewMemDisk()
			faults := objectstoretest.NewFaults(objectstoretest.At(n, action))
			acked := dirWorkload(t.Context(), faults.Disk(d))
			faults.SetHook(nil)
			checkDir(t, fmt.Sprintf("%v at %d", action, n), openDir(t, d.Crash(), "data/root"), acked)
			if faults.Ops() < n {
				break
			}
		}
	}
}

// dirWorkload returns for each key what may be there: the values since the
// last acknowledged one, which is the first. "" is no object.
func dirWorkload(ctx context.Context, d objectstore.Disk) map[string][]string {
	may := map[string][]string{}
	b, err := objectstore.OpenDir(d, "data/root")
	if err != nil {
		return may
	}
	step := func(key, value string, err error) {
		if may[key] == nil {
			may[key] = []string{""}
		}
		if err == nil {
			may[key] = []string{value}
		} else if !errors.Is(err, objectstore.ErrExists) {
			may[key] = append(may[key], value)
		}
	}
	put := func(key, value string, ifAbsent bool) {
		step(key, value, objectstore.Put(ctx, b, key, []byte(value), ifAbsent))
	}
	put("a/b/c", "one", true)
	put("a/b/d", "two", false)
	put("a/b/d", "three", false)
	put("a/b/c", "never", true)
	put("a/e", "four", true)
	step("a/b/c", "", b.Delete(ctx, "a/b/c"))
	put("a/b/c", "five", true)
	return may
}

func checkDir(t *testing.T, what string, b objectstore.Bucket, may map[string][]string) {
	t.Helper()
	for key, values := range may {
		data, err := b.Read(context.Background(), key)
		if err != nil && !errors.Is(err, objectstore.ErrNotFound) {
			t.Fatalf("%s: %v", what, err)
		}
		ok := false
		for _, v := range values {
			ok = ok || v == string(data)
		}
		if !ok {
			t.Fatalf("%s: %s is %q, want one of %q", what, key, data, values)
		}
	}
	list, err := b.List(context.Background(), "")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, o := range list {
		if may[o.Key] == nil {
			t.Fatalf("%s: object %s was not sent", what, o.Key)
		}
	}
}

func BenchmarkReadRange(b *testing.B) {
	const page = 50 << 10
	run := func(name string, bucket objectstore.Bucket) {
		b.Run(name, func(b *testing.B) {
			data := bytes.Repeat([]byte("0123456789"), 1<<20)
			if err := objectstore.Put(b.Context(), bucket, "k", data, false); err != nil {
				b.Fatal(err)
			}
			p := make([]byte, page)
			b.SetBytes(page)
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				if err := bucket.ReadRange(b.Context(), "k", i*page%int64(len(data)-page), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	direct, err := objectstore.OpenDir(objectstore.OSDisk(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	through, err := objectstore.OpenDirBlob(objectstore.OSDisk(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	run("direct", direct)
	run("gocloud", objectstore.FromBlob(through))
}
