package storage_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// A script writes, flushes and reads one table.
type script struct {
	t     *testing.T
	store *storagetest.Store
	info  *table.Info
}

func newScript(t *testing.T, mode table.MergeMode) *script {
	s := &script{t: t, store: storagetest.New(t)}
	s.info = storagetest.Table(1, "m", mode, "h String tag", "ts TimestampMillisecond time", "a Int64", "b Int64")
	s.store.Tables.Put(s.info)
	return s
}

func (s *script) write(op table.Op, rows ...[]any) {
	s.t.Helper()
	if err := s.store.Write(context.Background(), s.info, 0, storagetest.Rows(s.info, op, rows...)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) put(values ...any) { s.t.Helper(); s.write(table.Put, values) }

func (s *script) delete(h string, ts int) {
	s.t.Helper()
	s.write(table.Delete, []any{h, ts, nil, nil})
}

func (s *script) flush() {
	s.t.Helper()
	if err := s.store.Flush(context.Background(), s.info); err != nil {
		s.t.Fatal(err)
	}
}

// want reads with predicates, each a column id, which must be equal to a
// number, and checks the rows that a reader keeps.
func (s *script) want(where map[table.ColumnID]int64, want ...string) {
	s.t.Helper()
	spec := storagetest.All(s.info)
	for id, v := range where {
		spec.Predicates = append(spec.Predicates, table.Predicate{Column: id, Op: table.Equal, Values: []table.Value{{Type: table.Int64, Int: v}}})
	}
	got := storagetest.Read(s.t, s.store, s.info, spec)
	got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(want, line) && len(where) > 0 && !passes(line, where) })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("where %v (-want +got):\n%s", where, diff)
	}
}

// passes applies what the scan was given as a hint, as its reader does.
func passes(line string, where map[table.ColumnID]int64) bool {
	words := strings.Fields(line)
	for id, v := range where {
		if atoi(words[id-1]) != int(v) || words[id-1] == "null" {
			return false
		}
	}
	return true
}

// everywhere runs check with the rows in memory, in a file, and after a crash.
func (s *script) everywhere(check func()) {
	s.t.Helper()
	check()
	s.store.Crash(s.t)
	check()
	s.flush()
	check()
	s.store.Restart(s.t)
	check()
}

func TestFieldPredicatesSeeMergedRows(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		s := newScript(t, table.LastRow)
		s.put("h", 0, 1, nil)
		s.flush()
		s.delete("h", 0)
		s.everywhere(func() { s.want(map[table.ColumnID]int64{3: 1}) })
	})
	t.Run("completed", func(t *testing.T) {
		s := newScript(t, table.LastNonNull)
		s.put("h", 0, 1, nil)
		s.flush()
		s.put("h", 0, nil, 5)
		s.everywhere(func() {
			s.want(map[table.ColumnID]int64{4: 5}, "h 0 1 5")
			s.want(map[table.ColumnID]int64{3: 1}, "h 0 1 5")
		})
	})
	t.Run("overwritten", func(t *testing.T) {
		s := newScript(t, table.LastRow)
		s.put("h", 0, 1, 1)
		s.flush()
		s.put("h", 0, 2, 2)
		s.everywhere(func() {
			s.want(map[table.ColumnID]int64{3: 1})
			s.want(map[table.ColumnID]int64{3: 2}, "h 0 2 2")
		})
	})
}

func TestDeleteBetweenPutsForgetsOldFields(t *testing.T) {
	for _, flushes := range []string{"", "1", "2", "12", "123"} {
		t.Run("flush after "+flushes, func(t *testing.T) {
			s := newScript(t, table.LastNonNull)
			s.put("h", 0, 1, 2)
			if strings.Contains(flushes, "1") {
				s.flush()
			}
			s.delete("h", 0)
			if strings.Contains(flushes, "2") {
				s.flush()
			}
			s.put("h", 0, 3, nil)
			if strings.Contains(flushes, "3") {
				s.flush()
			}
			s.everywhere(func() { s.want(nil, "h 0 3 null") })
		})
	}
}

func TestAppendModeCountsAgree(t *testing.T) {
	s := newScript(t, table.Append)
	s.put("h", 0, 1, 1)
	s.put("h", 0, 1, 1)
	s.put("g", 0, 1, 1)
	s.flush()
	s.put("h", 0, 1, 1)
	s.flush()
	s.put("h", 0, 1, 1)
	byTag := table.Predicate{Column: 1, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "h"}}}
	f := func(want int, columns []table.ColumnID, predicates ...table.Predicate) {
		t.Helper()
		snap, err := s.store.Snapshot(context.Background(), s.info)
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		got := len(storagetest.Scan(t, snap, table.ScanSpec{Columns: columns, Times: table.AllTime, Predicates: predicates}))
		if got != want {
			t.Errorf("columns %v with %v: %d rows, want %d", columns, predicates, got, want)
		}
	}
	f(5, nil)
	f(5, []table.ColumnID{2})
	f(5, []table.ColumnID{1, 2, 3, 4})
	f(4, nil, byTag)
	f(4, []table.ColumnID{2}, byTag)
	err := s.store.Write(context.Background(), s.info, 0, storagetest.Rows(s.info, table.Delete, []any{"h", 0, nil, nil}))
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a delete in an append table: %v, want %v", err, fault.Unsupported)
	}
}

// TestLimitReadsOnlyTheNewestFiles checks that a limit leaves out what lies
// behind enough rows, and never a row that belongs to the answer.
func TestLimitReadsOnlyTheNewestFiles(t *testing.T) {
	s := newScript(t, table.LastRow)
	for file := range 4 {
		for i := range 3 {
			s.put("h", file*1000+i, file, i)
		}
		s.flush()
	}
	f := func(order table.Order, limit int, first string, pruned int64) {
		t.Helper()
		spec := storagetest.All(s.info)
		spec.Order, spec.Limit, spec.Stats = order, limit, new(table.ScanStats)
		got := storagetest.Read(t, s.store, s.info, spec)
		if !slices.Contains(got, first) || len(got) < limit || spec.Stats.FilesPruned.Load() != pruned {
			t.Errorf("order %d limit %d: %d rows %v, %d files pruned, want %d", order, limit, len(got), got, spec.Stats.FilesPruned.Load(), pruned)
		}
	}
	f(table.TimeDescending, 1, "h 3002 3 2", 3)
	f(table.TimeDescending, 3, "h 3000 3 0", 3)
	f(table.TimeDescending, 4, "h 2002 2 2", 2)
	f(table.TimeAscending, 2, "h 1 0 1", 3)
	s.put("h", 500, 9, 9) // overlaps nothing, lies between
	f(table.TimeAscending, 4, "h 500 9 9", 3)
}

func TestDropFreesEverything(t *testing.T) {
	s := newScript(t, table.LastRow)
	s.put("h", 0, 1, 1)
	s.flush()
	s.put("h", 1, 1, 1)
	ctx := context.Background()
	snap, err := s.store.Snapshot(ctx, s.info)
	if err != nil {
		t.Fatal(err)
	}
	s.store.Tables.Remove(s.info.ID)
	if err := s.store.Drop(ctx, s.info.ID); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Scan(t, snap, storagetest.All(s.info)); len(got) != 2 {
		t.Errorf("a snapshot from before the drop reads %v", got)
	}
	snap.Close()
	s.store.Engine().AwaitDeletes()
	if left := s.store.Keys(t); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	s.store.Crash(t)
	s.info = storagetest.Table(2, "m", table.LastRow, "h String tag", "ts TimestampMillisecond time", "a Int64", "b Int64")
	s.store.Tables.Put(s.info)
	s.want(nil)
}
