package objectstoretest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/varvedb/varve/objectstore"
)

// TestDisk checks what objectstore.Disk promises. open returns a disk and the
// path of an empty directory on it.
func TestDisk(t *testing.T, open func(t *testing.T) (objectstore.Disk, string)) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, objectstore.Disk, string)
	}{
		{"files", diskFiles},
		{"names", diskNames},
		{"directories", diskDirs},
		{"an open file outlives its name", diskUnlinked},
		{"lock", diskLock},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, root := open(t)
			test.run(t, d, root)
		})
	}
}

func create(t *testing.T, d objectstore.Disk, name, data string) {
	t.Helper()
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte(data)); err != nil || n != len(data) {
		t.Fatal(n, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, d objectstore.Disk, name, want string) {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || string(got) != want {
		t.Fatalf("%s: %q, %v; want %q", name, got, err, want)
	}
}

func diskFiles(t *testing.T, d objectstore.Disk, root string) {
	f, err := d.Create(root + "/f")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"hello ", "wide ", "world"} {
		if _, err := f.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]byte, 4)
	if _, err := f.ReadAt(p, 6); err != nil || string(p) != "wide" {
		t.Fatalf("read at 6: %q, %v", p, err)
	}
	if n, err := f.ReadAt(p, 14); n != 2 || err != io.EOF {
		t.Fatal("read over the end:", n, err)
	}
	if err := f.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if size, err := f.Size(); size != 10 || err != nil {
		t.Fatal("size:", size, err)
	}
	if err := errors.Join(f.Sync(), f.Close(), d.SyncDir(root)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "close twice", f.Close(), fs.ErrClosed)
	wantFile(t, d, root+"/f", "hello wide")
	_, err = d.Create(root + "/f")
	wantErr(t, "create a taken name", err, fs.ErrExist)
	r, err := d.Open(root + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Write([]byte("x")); err == nil {
		t.Fatal("a file opened for reading can be written")
	}
	_, err = d.Open(root + "/absent")
	wantErr(t, "open an absent file", err, fs.ErrNotExist)
}

func diskNames(t *testing.T, d objectstore.Disk, root string) {
	create(t, d, root+"/a", "a")
	create(t, d, root+"/b", "b")
	wantErr(t, "link to a taken name", d.Link(root+"/a", root+"/b"), fs.ErrExist)
	wantErr(t, "link an absent file", d.Link(root+"/no", root+"/c"), fs.ErrNotExist)
	wantErr(t, "rename an absent file", d.Rename(root+"/no", root+"/c"), fs.ErrNotExist)
	wantErr(t, "remove an absent file", d.Remove(root+"/no"), fs.ErrNotExist)
	if err := errors.Join(d.Link(root+"/a", root+"/c"), d.Rename(root+"/a", root+"/b")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, d, root+"/b", "a")
	wantFile(t, d, root+"/c", "a")
	if err := d.Remove(root + "/b"); err != nil {
		t.Fatal(err)
	}
	wantFile(t, d, root+"/c", "a")
	_, err := d.Stat(root + "/a")
	wantErr(t, "stat a renamed file", err, fs.ErrNotExist)
}

func diskDirs(t *testing.T, d objectstore.Disk, root string) {
	for range 2 {
		if err := d.MkdirAll(root + "/x/y"); err != nil {
			t.Fatal(err)
		}
	}
	create(t, d, root+"/x/f", "12345")
	entries, err := d.ReadDir(root + "/x")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprint(e.Name(), " ", e.IsDir()))
	}
	if want := "[f false y true]"; fmt.Sprint(got) != want {
		t.Fatalf("read dir: %v, want %s", got, want)
	}
	if info, err := entries[0].Info(); err != nil || info.Size() != 5 || info.ModTime().IsZero() {
		t.Fatal("info:", info, err)
	}
	if info, err := d.Stat(root + "/x/f"); err != nil || info.Size() != 5 || info.IsDir() || info.Name() != "f" {
		t.Fatal("stat:", info, err)
	}
	if d.Remove(root+"/x") == nil {
		t.Fatal("a directory that is not empty can be removed")
	}
	if err := errors.Join(d.Remove(root+"/x/y"), d.Remove(root+"/x/f"), d.Remove(root+"/x")); err != nil {
		t.Fatal(err)
	}
	_, err = d.ReadDir(root + "/x")
	wantErr(t, "read an absent directory", err, fs.ErrNotExist)
	wantErr(t, "sync an absent directory", d.SyncDir(root+"/x"), fs.ErrNotExist)
	_, err = d.Create(root + "/x/f")
	wantErr(t, "create in an absent directory", err, fs.ErrNotExist)
}

func diskUnlinked(t *testing.T, d objectstore.Disk, root string) {
	create(t, d, root+"/f", "old")
	f, err := d.Open(root + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := d.Remove(root + "/f"); err != nil {
		t.Fatal(err)
	}
	create(t, d, root+"/f", "new")
	p := make([]byte, 3)
	if _, err := f.ReadAt(p, 0); err != nil || string(p) != "old" {
		t.Fatalf("read: %q, %v", p, err)
	}
}

func diskLock(t *testing.T, d objectstore.Disk, root string) {
	for range 2 { // the file stays and can be locked again
		l, err := d.Lock(root + "/LOCK")
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Lock(root + "/LOCK")
		wantErr(t, "lock twice", err, objectstore.ErrLocked)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
