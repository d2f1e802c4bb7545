package objectstoretest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/varvedb/varve/objectstore"
)

func TestMemDisk(t *testing.T) {
	TestDisk(t, func(t *testing.T) (objectstore.Disk, string) {
		d := NewMemDisk()
		return d, ""
	})
}

func TestFaultsPassThrough(t *testing.T) {
	TestDisk(t, func(t *testing.T) (objectstore.Disk, string) {
		return NewFaults(nil).Disk(NewMemDisk()), ""
	})
	TestBucket(t, func(t *testing.T) objectstore.Bucket {
		return NewFaults(nil).Bucket(objectstore.MemBucket())
	})
}

// A crash keeps what was synced and nothing else.
func TestCrash(t *testing.T) {
	d := NewMemDisk()
	must(t, d.MkdirAll("dir"), d.SyncDir("/"))
	create(t, d, "dir/synced", "12")
	must(t, d.SyncDir("dir"))
	create(t, d, "dir/nameless", "3")
	f, err := d.Create("dir/half")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("ab")); err != nil {
		t.Fatal(err)
	}
	must(t, f.Sync(), d.SyncDir("dir"))
	if _, err := f.Write([]byte("cd")); err != nil {
		t.Fatal(err)
	}
	must(t, d.Rename("dir/synced", "dir/renamed"), d.MkdirAll("other"))
	if _, err := d.Lock("dir/LOCK"); err != nil {
		t.Fatal(err)
	}

	after := d.Crash()
	if _, err := d.Stat("dir"); !errors.Is(err, ErrCrashed) {
		t.Fatal("the crashed disk works:", err)
	}
	if _, err := f.Write(nil); !errors.Is(err, ErrCrashed) {
		t.Fatal("a file of the crashed disk works:", err)
	}
	wantFile(t, after, "dir/synced", "12")
	wantFile(t, after, "dir/nameless", "3") // its name was synced later
	wantFile(t, after, "dir/half", "ab")
	if entries, err := after.ReadDir("/"); err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if _, err := after.Lock("dir/LOCK"); err != nil {
		t.Fatal("the lock outlives the machine:", err)
	}
}

// A torn crash keeps at least what was synced, at most what was written, and
// over many seeds everything between.
func TestCrashTorn(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		d := NewMemDisk()
		f, err := d.Create("f")
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte("ab"))
		must(t, err, f.Sync(), d.SyncDir("/"))
		_, err = f.Write([]byte("cd"))
		must(t, err, d.Rename("f", "g"), d.Remove("g"))
		after := d.CrashTorn(seed)
		entries, err := after.ReadDir("/")
		must(t, err)
		state := fmt.Sprint(entries)
		if len(entries) > 0 {
			p := make([]byte, 9)
			r, err := after.Open(entries[0].Name())
			must(t, err)
			n, _ := r.ReadAt(p, 0)
			state = entries[0].Name() + string(p[:n])
		}
		seen[state] = true
	}
	for _, want := range []string{"[]", "fab", "gab", "fabc", "gabcd", "gab\x00\x00"} {
		if !seen[want] {
			t.Errorf("%q never survives", want)
		}
		delete(seen, want)
	}
	for got := range seen {
		if len(got) < 3 || got[1:3] != "ab" {
			t.Errorf("%q survives", got)
		}
	}
}

func TestFaultActions(t *testing.T) {
	f := func(action Action, wantErr error, want string) {
		t.Helper()
		mem := NewMemDisk()
		faults := NewFaults(At(2, action))
		file, err := faults.Disk(mem).Create("f")
		must(t, err)
		if _, err := file.Write([]byte("1234")); !errors.Is(err, wantErr) {
			t.Fatalf("%v: %v, want %v", action, err, wantErr)
		}
		_, err = file.Write([]byte("5"))
		if stopped := errors.Is(err, ErrCrashed); stopped != faults.Stopped() || faults.Ops() != 3 {
			t.Fatalf("%v: then %v after %d operations", action, err, faults.Ops())
		}
		wantFile(t, mem, "f", want)
	}
	f(Pass, nil, "12345")
	f(Stop, ErrCrashed, "")
	f(Fail, ErrInjected, "5")
	f(After, ErrInjected, "12345")
	f(Tear, ErrInjected, "125")
	f(Full, syscall.ENOSPC, "125")
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
