package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/objectstore/objectstoretest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

func testFile(n int) *File {
	return &File{Name: fmt.Sprintf("%016x-x.parquet", n), Width: 3600, Meta: sst.Meta{Format: 1, Size: 100, Rows: int64(n + 1),
		Times: table.TimeRange{Min: -5, Max: int64(n)}, FirstKey: []byte{1, 'a', 0, 1}, LastKey: []byte{1, 0xff, 0, 1}, MinSequence: 1, MaxSequence: uint64(n + 1)}}
}

func bucket(t testing.TB) objectstore.Bucket {
	b, err := objectstore.OpenDir(objectstoretest.NewMemDisk(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, b objectstore.Bucket) *Manifest {
	t.Helper()
	m, err := Open(context.Background(), b, "r/manifest/", Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReopenFindsEveryEdit commits across two checkpoints and opens the
// manifest again after each edit.
func TestReopenFindsEveryEdit(t *testing.T) {
	b, ctx := bucket(t), context.Background()
	for n := range 2*checkpointEdits + 10 {
		m := open(t, b)
		e := &Edit{Add: []*File{testFile(n)}, FlushedSequence: uint64(n + 1), SchemaVersion: 1}
		if n == 3 {
			e.WindowNanos = 7200
		}
		if n%3 == 2 {
			e.Remove = []string{testFile(n - 1).Name}
		}
		want, err := m.Commit(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, open(t, b).Version()); diff != "" {
			t.Fatalf("after edit %d (-committed +opened):\n%s", n, diff)
		}
		if want.FlushedSequence != uint64(n+1) || n >= 3 && want.WindowNanos != 7200 {
			t.Fatalf("after edit %d: %+v", n, want)
		}
	}
}

func TestSecondWriterIsFenced(t *testing.T) {
	b, ctx := bucket(t), context.Background()
	first, second := open(t, b), open(t, b)
	if _, err := second.Commit(ctx, &Edit{Add: []*File{testFile(1)}, FlushedSequence: 2}); err != nil {
		t.Fatal(err)
	}
	before := first.Version()
	if _, err := first.Commit(ctx, &Edit{Add: []*File{testFile(2)}, FlushedSequence: 3}); !errors.Is(err, editlog.ErrFenced) {
		t.Errorf("the first writer commits after the second: %v", err)
	}
	if first.Version() != before {
		t.Error("a refused edit changed the version")
	}
}

func TestApplyRefusesWhatContradictsTheVersion(t *testing.T) {
	v, err := (&Version{}).Apply(&Edit{Add: []*File{testFile(1)}, FlushedSequence: 9})
	if err != nil {
		t.Fatal(err)
	}
	f := func(what string, e *Edit) {
		t.Helper()
		if got, err := v.Apply(e); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	f("a name twice", &Edit{Add: []*File{testFile(1)}})
	f("remove what is not there", &Edit{Remove: []string{"x"}})
	f("sequence goes back", &Edit{FlushedSequence: 8})
}

func TestNewerFormatsAreRefused(t *testing.T) {
	newer := []byte(fmt.Sprintf(`{"format":%d}`, FormatVersion+1))
	if _, err := DecodeEdit(newer); err == nil {
		t.Error("an edit of a newer format was decoded")
	}
	if _, err := DecodeVersion(newer); err == nil {
		t.Error("a checkpoint of a newer format was decoded")
	}
}

// FuzzDecode checks that hostile bytes do not panic, and that what decodes is
// encoded and decoded to the same.
func FuzzDecode(f *testing.F) {
	v, _ := (&Version{}).Apply(&Edit{Add: []*File{testFile(1), testFile(2)}, FlushedSequence: 9, WindowNanos: 3600})
	f.Add(v.Encode())
	f.Add((&Edit{Add: []*File{testFile(1)}, Remove: []string{"a"}, FlushedSequence: 4}).Encode())
	f.Add([]byte(`{"format":1,"add":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := DecodeVersion(data); err == nil {
			again, err := DecodeVersion(v.Encode())
			if diff := cmp.Diff(v.Encode(), again.Encode()); err != nil || diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
		}
		if e, err := DecodeEdit(data); err == nil {
			again, err := DecodeEdit(e.Encode())
			if diff := cmp.Diff(e.Encode(), again.Encode()); err != nil || diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
			_, _ = v.Apply(e)
		}
	})
}
