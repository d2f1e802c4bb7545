package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, b objectstore.Bucket, opts Options) *Catalog {
	t.Helper()
	c, err := Open(t.Context(), b, "catalog/", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tag(name string) table.Column {
	return table.Column{Name: name, Type: table.String, Role: table.Tag, Nullable: true}
}

func field(name string, typ table.Type) table.Column {
	return table.Column{Name: name, Type: typ, Role: table.Field, Nullable: true}
}

func timeIndex(name string) table.Column {
	return table.Column{Name: name, Type: table.TimestampMillisecond, Role: table.Timestamp}
}

func cpuSpec(name string) Spec {
	return Spec{Database: Public, Name: name, Columns: []table.Column{tag("host"), timeIndex("ts"), field("usage", table.Float64)}}
}

// describe prints everything that a catalog holds.
func describe(v *View) string {
	var s strings.Builder
	for _, db := range v.Databases() {
		fmt.Fprintf(&s, "database %s %v\n", db.Name, db.Options)
		tables, err := v.Tables(db.Name)
		if err != nil {
			panic(err)
		}
		for _, info := range tables {
			fmt.Fprintf(&s, "  %d %s %s regions=%d %v v%d next=%d\n",
				info.ID, info.Name, info.Merge, info.Regions, info.Options, info.Schema.Version, info.Schema.NextID)
			for _, c := range info.Schema.Columns {
				fmt.Fprintf(&s, "    %d %s %s %s\n", c.ID, c.Name, c.Type.SQL(), c.Role)
			}
			fmt.Fprintf(&s, "    key %v\n", info.Schema.Key)
		}
	}
	fmt.Fprintf(&s, "next id %d\n", v.nextID)
	return s.String()
}

// Everything that was done is there again after a restart, with and without
// checkpoints.
func TestReopen(t *testing.T) {
	for _, every := range []int{1, 3, 1000} {
		ctx, b := t.Context(), objectstore.MemBucket()
		c := open(t, b, Options{CheckpointEdits: every})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(describe(c.View()), describe(open(t, b, Options{}).View())); diff != "" {
				t.Fatalf("checkpoint every %d: after a restart (-before +after):\n%s", every, diff)
			}
		}
		must(c.CreateDatabase(ctx, "app", false, map[string]string{"ttl": "7d"}))
		info, created, err := c.CreateTable(ctx, cpuSpec("cpu"), false)
		must(err)
		if !created || info.ID != 1 {
			t.Fatalf("created %v with id %d", created, info.ID)
		}
		spec := cpuSpec("mem")
		spec.Database, spec.Merge, spec.Regions = "app", table.LastNonNull, 4
		spec.Options = map[string]string{"ttl": "1d"}
		_, _, err = c.CreateTable(ctx, spec, false)
		must(err)
		_, err = c.AddColumns(ctx, info.ID, []table.Column{tag("region"), field("idle", table.Int64)})
		must(err)
		must(c.Update(ctx, func(txn *Txn) error {
			for i := range 5 {
				if _, _, err := txn.CreateTable(cpuSpec(fmt.Sprintf("t%d", i)), false); err != nil {
					return err
				}
			}
			_, err := txn.DropTable(Public, "t3")
			return err
		}))
		_, err = c.DropTable(ctx, Public, "t1")
		must(err)
		dropped, err := c.DropDatabase(ctx, "app")
		must(err)
		if len(dropped) != 1 || dropped[0].Name != "mem" {
			t.Fatalf("dropping a database returned %v", dropped)
		}
		last, _, err := c.CreateTable(ctx, cpuSpec("t1"), false)
		must(err)
		if last.ID != 8 {
			t.Errorf("a new table got id %d, which was used before", last.ID)
		}
	}
}

// An Update that waits for another gives up at the end of its context.
func TestUpdateGivesUpWaiting(t *testing.T) {
	c := NewMemory(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Update(t.Context(), func(*Txn) error {
		waiting := make(chan error)
		go func() { waiting <- c.Update(ctx, func(*Txn) error { return nil }) }()
		cancel()
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("the one that waits: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CreateDatabase(t.Context(), "after", false, nil); err != nil {
		t.Errorf("after one gave up: %v", err)
	}
}

// A failed Update leaves nothing behind, and a failed call inside of one
// leaves the rest of it standing.
func TestUpdateFails(t *testing.T) {
	c := open(t, objectstore.MemBucket(), Options{})
	before := describe(c.View())
	boom := errors.New("boom")
	err := c.Update(t.Context(), func(txn *Txn) error {
		if _, _, err := txn.CreateTable(cpuSpec("cpu"), false); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || describe(c.View()) != before {
		t.Errorf("Update returned %v and left:\n%s", err, describe(c.View()))
	}
	err = c.Update(t.Context(), func(txn *Txn) error {
		info, _, err := txn.CreateTable(cpuSpec("cpu"), false)
		if err != nil {
			return err
		}
		if _, err := txn.AddColumns(info.ID, []table.Column{tag("a"), field("usage", table.String)}); err == nil {
			t.Error("a column changed its type")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Table(Public, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if info.Schema.Lookup("a") != nil {
		t.Error("a failed AddColumns left a column behind")
	}
}

// An unquoted name means the exact match, else the only one that differs by
// case, else it is ambiguous.
func TestResolve(t *testing.T) {
	c := NewMemory(Options{})
	for _, name := range []string{"cpu", "Mem", "disk", "Disk", "ÄRGER"} {
		if _, _, err := c.CreateTable(t.Context(), cpuSpec(name), false); err != nil {
			t.Fatal(err)
		}
	}
	f := func(name, want string, kind fault.Kind) {
		t.Helper()
		info, err := c.Resolve(Public, name)
		switch {
		case err != nil && (want != "" || fault.KindOf(err) != kind):
			t.Errorf("Resolve(%q): %v", name, err)
		case err == nil && info.Name != want:
			t.Errorf("Resolve(%q) = %q, want %q", name, info.Name, want)
		}
	}
	f("cpu", "cpu", 0)
	f("CPU", "cpu", 0)
	f("mem", "Mem", 0)
	f("disk", "disk", 0)
	f("Disk", "Disk", 0)
	f("DISK", "", fault.Plan)
	f("ärger", "", fault.TableNotFound) // only ASCII letters have no case
	f("none", "", fault.TableNotFound)
	if _, err := c.Resolve("nowhere", "cpu"); fault.KindOf(err) != fault.DatabaseMissing {
		t.Errorf("in a missing database: %v", err)
	}
	if _, err := c.Table(Public, "CPU"); fault.KindOf(err) != fault.TableNotFound {
		t.Errorf("Table took another case: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	c := NewMemory(Options{MaxTables: 3, MaxColumns: 4, MaxDatabases: 2})
	ctx := t.Context()
	create := func(change func(*Spec)) error {
		spec := cpuSpec("new")
		change(&spec)
		_, _, err := c.CreateTable(ctx, spec, false)
		return err
	}
	f := func(what string, err error, want fault.Kind) {
		t.Helper()
		if err == nil || fault.KindOf(err) != want {
			t.Errorf("%s: error %v of kind %d, want kind %d", what, err, fault.KindOf(err), want)
		}
	}
	if err := create(func(s *Spec) { s.Name = "cpu" }); err != nil {
		t.Fatal(err)
	}
	info, err := c.Table(Public, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	add := func(columns ...table.Column) error {
		_, err := c.AddColumns(ctx, info.ID, columns)
		return err
	}
	_, dropPublic := c.DropDatabase(ctx, Public)
	_, dropMissing := c.DropDatabase(ctx, "x")
	f("drop public", dropPublic, fault.Invalid)
	f("drop missing database", dropMissing, fault.DatabaseMissing)
	f("create public", c.CreateDatabase(ctx, Public, false, nil), fault.DatabaseExists)
	f("reserved database", c.CreateDatabase(ctx, "Information_Schema", false, nil), fault.Invalid)
	f("database with slash", c.CreateDatabase(ctx, "a/b", false, nil), fault.Invalid)
	f("same table", create(func(s *Spec) { s.Name = "cpu" }), fault.TableExists)
	f("missing database", create(func(s *Spec) { s.Database = "x" }), fault.DatabaseMissing)
	f("empty name", create(func(s *Spec) { s.Name = "" }), fault.Invalid)
	f("long name", create(func(s *Spec) { s.Name = strings.Repeat("x", 513) }), fault.Invalid)
	f("NUL name", create(func(s *Spec) { s.Name = "a\x00b" }), fault.Invalid)
	f("bad UTF-8", create(func(s *Spec) { s.Name = "\xff" }), fault.Invalid)
	f("no time index", create(func(s *Spec) { s.Columns = s.Columns[:1] }), fault.Plan)
	f("two time indexes", create(func(s *Spec) { s.Columns = append(s.Columns, timeIndex("t2")) }), fault.Plan)
	f("double column", create(func(s *Spec) { s.Columns = append(s.Columns, tag("host")) }), fault.ColumnExists)
	f("reserved column", create(func(s *Spec) { s.Columns = append(s.Columns, tag("__Sequence")) }), fault.Invalid)
	f("too many columns", create(func(s *Spec) { s.Columns = append(s.Columns, tag("a"), tag("b")) }), fault.Invalid)
	f("key without a tag", create(func(s *Spec) { s.Key = []string{} }), fault.Plan)
	f("key of a field", create(func(s *Spec) { s.Key = []string{"usage"} }), fault.Plan)
	f("changed type", add(field("usage", table.Int64)), fault.ColumnExists)
	f("changed role", add(tag("usage")), fault.ColumnExists)
	f("another time index", add(timeIndex("t2")), fault.Plan)
	f("over the limit", add(tag("a"), tag("b")), fault.Invalid)
	if err := add(field("usage", table.Float64), tag("host")); err != nil {
		t.Errorf("columns that exist: %v", err)
	}
	if now, _ := c.TableByID(info.ID); now.Schema.Version != 1 {
		t.Errorf("adding what exists made version %d", now.Schema.Version)
	}
	for _, name := range []string{"t2", "t3"} {
		if err := create(func(s *Spec) { s.Name = name }); err != nil {
			t.Fatal(err)
		}
	}
	f("too many tables", create(func(s *Spec) { s.Name = "t4" }), fault.Invalid)
	if err := c.CreateDatabase(ctx, "d2", true, nil); err != nil {
		t.Fatal(err)
	}
	f("too many databases", c.CreateDatabase(ctx, "d3", false, nil), fault.Invalid)
}

// Widen adds what it can and says what it cannot.
func TestWiden(t *testing.T) {
	c := NewMemory(Options{MaxColumns: 5})
	info, _, err := c.CreateTable(t.Context(), cpuSpec("cpu"), false)
	if err != nil {
		t.Fatal(err)
	}
	var refused []Refusal
	err = c.Update(t.Context(), func(txn *Txn) (err error) {
		_, refused, err = txn.Widen(info.ID, []table.Column{
			field("usage", table.String), // exists as DOUBLE: left alone
			field("", table.String), tag("a"), field("__op_type", table.Int64), tag("b"), tag("c"), tag("a"),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range refused {
		names = append(names, r.Column)
	}
	if diff := cmp.Diff([]string{"", "__op_type", "c"}, names); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	now, _ := c.TableByID(info.ID)
	if now.Schema.Version != 2 || len(now.Schema.Columns) != 5 || len(now.Schema.Key) != 3 || now.Schema.Lookup("usage").Type != table.Float64 {
		t.Errorf("schema is %+v", now.Schema)
	}
	if len(info.Schema.Columns) != 3 {
		t.Error("a published schema was changed")
	}
}

// Writers that create and widen one table at once end with one table that has
// every column once, while readers look on.
func TestConcurrentWriters(t *testing.T) {
	ctx := t.Context()
	b := objectstore.MemBucket()
	c := open(t, b, Options{CheckpointEdits: 7})
	const writers = 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			info, _, err := c.CreateTable(ctx, cpuSpec("cpu"), true)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = c.AddColumns(ctx, info.ID, []table.Column{tag("shared"), field(fmt.Sprintf("f%d", i), table.Float64)})
			if err != nil {
				t.Error(err)
			}
			if now, ok := c.TableByID(info.ID); !ok || now.Schema.Lookup("shared") == nil {
				t.Error("a writer does not see its own columns")
			}
		})
	}
	wg.Wait()
	info, err := c.Table(Public, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(info.Schema.Columns); n != 3+1+writers || len(info.Schema.Key) != 2 {
		t.Errorf("%d columns, key %v", n, info.Schema.Key)
	}
	if diff := cmp.Diff(describe(c.View()), describe(open(t, b, Options{}).View())); diff != "" {
		t.Error(diff)
	}
}

// A second writer of the same log cannot go on from an old state.
func TestFenced(t *testing.T) {
	b := objectstore.MemBucket()
	first, second := open(t, b, Options{}), open(t, b, Options{})
	if _, _, err := second.CreateTable(t.Context(), cpuSpec("cpu"), false); err != nil {
		t.Fatal(err)
	}
	before := describe(first.View())
	if _, _, err := first.CreateTable(t.Context(), cpuSpec("mem"), false); err == nil || !fault.Retryable(err) {
		t.Errorf("an outdated writer got %v", err)
	}
	if describe(first.View()) != before {
		t.Error("a refused edit is visible")
	}
}

// No flipped byte of any object in the log makes Open panic or return another
// catalog.
func TestDamage(t *testing.T) {
	ctx, b := t.Context(), objectstore.MemBucket()
	c := open(t, b, Options{CheckpointEdits: 2})
	for _, name := range []string{"cpu", "mem", "disk"} {
		if _, _, err := c.CreateTable(ctx, cpuSpec(name), false); err != nil {
			t.Fatal(err)
		}
	}
	want := describe(c.View())
	objects, err := b.List(ctx, "catalog/")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		data, err := b.Read(ctx, o.Key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] ^= 0x20
			put(t, b, o.Key, data)
			opened, err := Open(ctx, b, "catalog/", Options{Logger: slog.New(slog.DiscardHandler)})
			data[i] ^= 0x20
			if err == nil && describe(opened.View()) != want {
				t.Fatalf("%s with byte %d changed opens as another catalog:\n%s", o.Key, i, describe(opened.View()))
			}
			if err != nil && !strings.Contains(err.Error(), "catalog/") {
				t.Fatalf("%s with byte %d changed: the error names no key: %v", o.Key, i, err)
			}
		}
		put(t, b, o.Key, data)
	}
}

func put(t *testing.T, b objectstore.Bucket, key string, data []byte) {
	t.Helper()
	if err := objectstore.Put(t.Context(), b, key, data, false); err != nil {
		t.Fatal(err)
	}
}

func FuzzReplay(f *testing.F) {
	c := NewMemory(Options{})
	txn := &Txn{View: c.View(), limits: c.opts}
	_ = txn.CreateDatabase("d", false, map[string]string{"ttl": "1d"})
	_, _, _ = txn.CreateTable(cpuSpec("cpu"), false)
	_, _, _ = txn.CreateTable(cpuSpec("mem"), false)
	_, _ = txn.DropTable(Public, "cpu")
	_, _ = txn.DropDatabase("d")
	edit, err := encodeEdit(txn.ops)
	if err != nil {
		f.Fatal(err)
	}
	state, err := encodeCheckpoint(txn.View)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(edit)
	f.Add(state)
	f.Add([]byte(`{"version":2,"ops":[]}`))
	f.Add([]byte(`{"version":1,"ops":[{"drop_table":7}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, decode := range []func() (*View, error){
			func() (*View, error) { return decodeEdit(data, emptyView()) },
			func() (*View, error) { return decodeCheckpoint(data) },
		} {
			v, err := decode()
			if err != nil {
				continue
			}
			again, err := encodeCheckpoint(v)
			if err != nil {
				t.Fatal(err)
			}
			v2, err := decodeCheckpoint(again)
			if err != nil {
				t.Fatalf("what was decoded cannot be written and read again: %v\n%s", err, again)
			}
			if diff := cmp.Diff(describe(v), describe(v2)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// Creating many tables costs the same for each.
func BenchmarkCreateTables(b *testing.B) {
	for _, n := range []int{100, 5000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			c := NewMemory(Options{MaxTables: 1 << 30})
			make := func(i int) {
				if _, _, err := c.CreateTable(context.Background(), cpuSpec(fmt.Sprintf("table_%d", i)), false); err != nil {
					b.Fatal(err)
				}
			}
			for i := range n {
				make(i)
			}
			i := n
			for b.Loop() {
				make(i)
				i++
			}
		})
	}
}

func BenchmarkTable(b *testing.B) {
	c := NewMemory(Options{})
	for i := range 5000 {
		if _, _, err := c.CreateTable(b.Context(), cpuSpec(fmt.Sprintf("table_%d", i)), false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Table(Public, "table_4321"); err != nil {
			b.Fatal(err)
		}
	}
}
