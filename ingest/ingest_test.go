package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest/lineprotocol"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An engine is a storage engine that learns of tables when they are written.
type engine struct{ *storagetest.Store }

func (e engine) Write(ctx context.Context, info *table.Info, region uint32, rows *table.Rows) error {
	e.Tables.Put(info)
	return e.Store.Write(ctx, info, region, rows)
}

// A writerFunc stands in for an engine.
type writerFunc func(info *table.Info, region uint32, rows *table.Rows) error

func (f writerFunc) Write(_ context.Context, info *table.Info, region uint32, rows *table.Rows) error {
	return f(info, region, rows)
}

func openCatalog(t testing.TB, opts catalog.Options) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), objectstore.MemBucket(), "catalog/", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t testing.TB, in *Ingester, lines string) *Report {
	t.Helper()
	r, err := in.LineProtocol(t.Context(), catalog.Public, []byte(lines), lineprotocol.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustTable(t testing.TB, c *catalog.Catalog, name string) *table.Info {
	t.Helper()
	info, err := c.Table(catalog.Public, name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Lines become rows of tables that did not exist, and more columns come later.
func TestLinesToRows(t *testing.T) {
	c, store := openCatalog(t, catalog.Options{}), storagetest.New(t)
	in := New(c, engine{store}, Options{})
	r := write(t, in, "cpu,host=a usage=1.5 10\nmem,host=a free=5i 10\nbroken\ncpu,host=b usage=2 10\n")
	if r.Rows != 3 || r.Dropped != 1 || len(r.Errors) != 1 || r.Errors[0].Line != 3 {
		t.Errorf("report %+v", r)
	}
	write(t, in, "cpu,host=a idle=9i 10\ncpu,host=a,dc=x usage=7 10")
	info := mustTable(t, c, "cpu")
	if info.Merge != table.LastNonNull {
		t.Errorf("merge mode is %v", info.Merge)
	}
	got := storagetest.Read(t, store, info, storagetest.All(info)) // host, time, usage, idle, dc
	if len(got) != 3 {
		t.Errorf("rows:\n%s", strings.Join(got, "\n"))
	}
	if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "a ") && strings.Contains(s, "1.5 9") }) {
		t.Errorf("the fields of one identity were not merged:\n%s", strings.Join(got, "\n"))
	}
}

// Writers that add other tags and fields to one table at once all succeed, and
// every column is there once.
func TestConcurrentSchemaChange(t *testing.T) {
	c, store := openCatalog(t, catalog.Options{}), storagetest.New(t)
	in := New(c, engine{store}, Options{})
	const writers = 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			line := fmt.Sprintf("m,shared=x,t%d=v common=1,f%d=%d %d\nm,t%d=w g%d=true %d", i, i, i, i, i, i, i)
			r, err := in.LineProtocol(t.Context(), catalog.Public, []byte(line), lineprotocol.Nanosecond)
			if err != nil || r.Rows != 2 || r.Dropped != 0 {
				t.Errorf("writer %d: %+v, %v", i, r, err)
			}
		})
	}
	wg.Wait()
	info := mustTable(t, c, "m")
	names := map[string]int{}
	for _, col := range info.Schema.Columns {
		names[col.Name]++
	}
	if len(names) != 3+3*writers || len(info.Schema.Columns) != len(names) {
		t.Errorf("%d columns with %d names", len(info.Schema.Columns), len(names))
	}
	if rows := storagetest.Read(t, store, info, storagetest.All(info)); len(rows) != 2*writers {
		t.Errorf("%d rows", len(rows))
	}
	// Every value is under its own name.
	for i := range writers {
		f := info.Schema.Lookup(fmt.Sprintf("f%d", i)).ID
		tag := info.Schema.Lookup(fmt.Sprintf("t%d", i)).ID
		got := storagetest.Read(t, store, info, table.ScanSpec{
			Columns: []table.ColumnID{f}, Times: table.AllTime,
			Predicates: []table.Predicate{{Column: tag, Op: table.Equal, Values: []table.Value{{Type: table.String, Bytes: "v"}}}},
		})
		if diff := cmp.Diff([]string{fmt.Sprint(i)}, got); diff != "" {
			t.Errorf("f%d (-want +got):\n%s", i, diff)
		}
	}
}

// If another writer makes the same column with another type first, lines are
// converted to it or fail; nothing is written under a wrong type.
func TestLosesTheRaceForAType(t *testing.T) {
	c := openCatalog(t, catalog.Options{})
	var in *Ingester
	var written []*table.Info
	in = New(c, writerFunc(func(info *table.Info, _ uint32, rows *table.Rows) error {
		for _, f := range rows.Fields {
			if col := info.Schema.Column(f.ID); col == nil || col.Type != f.Type {
				t.Errorf("field %d is written as %v into %+v", f.ID, f.Type, col)
			}
		}
		written = append(written, info)
		return nil
	}), Options{Now: func() time.Time { return time.Unix(0, 0) }})
	// Between the first look and the change of the catalog, the rival writes.
	raced := false
	in.opts.Now = func() time.Time { return time.Unix(0, 0) }
	rival := func() {
		if raced {
			return
		}
		raced = true
		_, _, err := c.CreateTable(t.Context(), catalog.Spec{Database: catalog.Public, Name: "m", Columns: []table.Column{
			{Name: "ts", Type: table.TimestampMillisecond, Role: table.Timestamp},
			{Name: "f", Type: table.Int64, Role: table.Field, Nullable: true},
		}}, false)
		if err != nil {
			t.Error(err)
		}
	}
	in.beforeCreate = rival
	r := write(t, in, "m f=1 1000000\nm f=1.5 2000000\nm f=2,g=t 3000000")
	if r.Rows != 2 || r.Dropped != 1 || r.Errors[0].Line != 2 {
		t.Errorf("report %+v", r)
	}
	info := mustTable(t, c, "m")
	if len(written) != 1 || written[0] != info || info.Schema.TimeIndex().Name != "ts" || len(info.Schema.Columns) != 3 {
		t.Errorf("written as %+v", info.Schema)
	}
}

// New tables merge as their database says.
func TestInherited(t *testing.T) {
	f := func(options map[string]string, want table.MergeMode) {
		t.Helper()
		c := openCatalog(t, catalog.Options{})
		if err := c.CreateDatabase(t.Context(), "d", false, options); err != nil {
			t.Fatal(err)
		}
		in := New(c, writerFunc(func(*table.Info, uint32, *table.Rows) error { return nil }), Options{})
		if _, err := in.LineProtocol(t.Context(), "d", []byte("m f=1"), lineprotocol.Nanosecond); err != nil {
			t.Fatal(err)
		}
		info, err := c.Table("d", "m")
		if err != nil || info.Merge != want {
			t.Errorf("%v: %+v, %v", options, info, err)
		}
		if window := "compaction.twcs.time_window"; info.Options[window] != options[window] {
			t.Errorf("%v: %s is %q", options, window, info.Options[window])
		}
	}
	f(nil, table.LastNonNull)
	f(map[string]string{"ttl": "7d"}, table.LastNonNull)
	f(map[string]string{"merge_mode": "last_row"}, table.LastRow)
	f(map[string]string{"append_mode": "true"}, table.Append)
	f(map[string]string{"compaction.twcs.time_window": "2h"}, table.LastNonNull)
}

func TestNoCreate(t *testing.T) {
	c := openCatalog(t, catalog.Options{})
	in := New(c, writerFunc(func(*table.Info, uint32, *table.Rows) error { return nil }), Options{NoCreate: true})
	_, _, err := c.CreateTable(t.Context(), catalog.Spec{Database: catalog.Public, Name: "m", Columns: []table.Column{
		{Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
		{Name: "f", Type: table.Float64, Role: table.Field, Nullable: true},
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	r := write(t, in, "m f=1 1\nm f=1,g=2 2\nm,t=x f=1 3\nother f=1 4")
	if r.Rows != 1 || r.Dropped != 3 {
		t.Errorf("report %+v", r)
	}
	if tables, _ := c.Tables(catalog.Public); len(tables) != 1 {
		t.Errorf("%d tables", len(tables))
	}
}

// Limits of the catalog fail the lines over them, and only those.
func TestCatalogLimits(t *testing.T) {
	c := openCatalog(t, catalog.Options{MaxTables: 2, MaxColumns: 3})
	in := New(c, writerFunc(func(*table.Info, uint32, *table.Rows) error { return nil }), Options{})
	r := write(t, in, "a f=1 1\na g=1 2\na h=1 3\nb f=1 4\nc f=1 5\n"+strings.Repeat("x", 600)+" f=1 6")
	if r.Rows != 3 || r.Dropped != 3 {
		t.Errorf("report %+v", r)
	}
	var lines []int
	for _, e := range r.Errors {
		lines = append(lines, e.Line)
	}
	if diff := cmp.Diff([]int{3, 5, 6}, lines); diff != "" {
		t.Errorf("bad lines (-want +got):\n%s\n%+v", diff, r.Errors)
	}
}

// What passes must look so, and what does not must not.
func TestFailingWriter(t *testing.T) {
	f := func(fail map[string]error, wantErr fault.Kind, wantRows, wantDropped int) {
		t.Helper()
		c := openCatalog(t, catalog.Options{})
		in := New(c, writerFunc(func(info *table.Info, _ uint32, _ *table.Rows) error { return fail[info.Name] }), Options{})
		r, err := in.LineProtocol(t.Context(), catalog.Public, []byte("a f=1 1\nb f=1 1\nb f=1 2\nc f=1 1"), lineprotocol.Nanosecond)
		if err != nil {
			if wantRows >= 0 || fault.KindOf(err) != wantErr || !fault.Retryable(err) {
				t.Errorf("%v: error %v", fail, err)
			}
			return
		}
		if r.Rows != wantRows || r.Dropped != wantDropped {
			t.Errorf("%v: report %+v", fail, r)
		}
	}
	full := fault.Errorf(fault.Unavailable, "disk full")
	bad := fault.Errorf(fault.Invalid, "can never be written")
	f(nil, 0, 4, 0)
	f(map[string]error{"b": bad}, 0, 2, 2)
	f(map[string]error{"b": full}, fault.Unavailable, -1, 0)
	f(map[string]error{"a": bad, "b": full}, fault.Unavailable, -1, 0)
	f(map[string]error{"c": errors.New("unknown trouble")}, fault.Internal, -1, 0)
	f(map[string]error{"c": fault.Errorf(fault.TableNotFound, "dropped")}, fault.Unavailable, -1, 0)
}

// Over the budget a request waits; one that waits too long is told to try
// again, and one whose client goes away stops.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := New(catalog.NewMemory(catalog.Options{}), nil, Options{InFlightBytes: 100, AdmitWait: time.Minute})
		release, err := in.Admit(t.Context(), 1000) // alone, even if over the budget
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := in.Admit(t.Context(), 1); fault.KindOf(err) != fault.Unavailable || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := in.Admit(gone, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that is gone: %v", err)
		}
		time.AfterFunc(time.Second, release)
		if release, err = in.Admit(t.Context(), 60); err != nil {
			t.Errorf("after room was made: %v", err)
		}
		release()
	})
}

// A request whose rows would take much more memory than its lines is written
// in several steps, to the same effect.
func TestSparseRows(t *testing.T) {
	const lines = 500
	var body strings.Builder
	for i := range lines {
		fmt.Fprintf(&body, "m,h=%d f%d=%d %d\n", i%3, i%100, i, i)
		if i%50 == 0 {
			body.WriteString("bad\n")
		}
	}
	c, rows, writes := openCatalog(t, catalog.Options{}), 0, 0
	in := New(c, writerFunc(func(_ *table.Info, _ uint32, r *table.Rows) error {
		if cells := r.Len() * len(r.Fields); cells > 1000+100 { // and the row that makes it full
			t.Errorf("%d rows with %d fields", r.Len(), len(r.Fields))
		}
		rows += r.Len()
		writes++
		return nil
	}), Options{LineProtocol: lineprotocol.Options{MaxCells: 1000}})
	r := write(t, in, body.String())
	if rows != lines || r.Rows != lines || r.Dropped != 10 || len(r.Errors) != 10 || writes < lines*lines/1000/100 {
		t.Errorf("%d rows in %d writes, report %+v", rows, writes, r)
	}
	if last := r.Errors[9].Line; last != 451+10 {
		t.Errorf("the last bad line is %d", last)
	}
	if n := len(mustTable(t, c, "m").Schema.Columns); n != 102 {
		t.Errorf("%d columns", n)
	}
}

func TestMissingDatabase(t *testing.T) {
	in := New(catalog.NewMemory(catalog.Options{}), nil, Options{})
	_, err := in.LineProtocol(t.Context(), "x", []byte("m f=1"), lineprotocol.Nanosecond)
	if fault.KindOf(err) != fault.DatabaseMissing || err.Error() != `database not found: "x"` {
		t.Errorf("got %v", err)
	}
}

// Rows of a table with several regions go each to the region of its series,
// and nothing of them changes.
func TestRegions(t *testing.T) {
	c, store := openCatalog(t, catalog.Options{}), storagetest.New(t)
	_, _, err := c.CreateTable(t.Context(), catalog.Spec{Database: catalog.Public, Name: "m", Regions: 3, Columns: []table.Column{
		{Name: "host", Type: table.String, Role: table.Tag, Nullable: true},
		{Name: "ts", Type: table.TimestampNanosecond, Role: table.Timestamp},
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	regions := map[uint32]int{}
	in := New(c, writerFunc(func(info *table.Info, region uint32, rows *table.Rows) error {
		mu.Lock()
		defer mu.Unlock()
		regions[region] += rows.Len()
		for i := range rows.Keys.Len() {
			if RegionOf(rows.Keys.Key(i), info.Regions) != region {
				t.Errorf("a series is in region %d", region)
			}
		}
		return engine{store}.Write(t.Context(), info, region, rows)
	}), Options{})
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintf(&lines, "m,host=h%d f=%d.5,i=%di,s=\"s%d\"", i%20, i, i, i)
		if i%3 == 0 {
			lines.WriteString(",b=true")
		}
		fmt.Fprintf(&lines, " %d\n", i)
	}
	write(t, in, lines.String())
	if len(regions) != 3 {
		t.Errorf("rows by region: %v", regions)
	}
	info := mustTable(t, c, "m")
	got := storagetest.Read(t, store, info, storagetest.All(info))
	single := mustTable(t, c, "m")
	want := make([]string, 0, 60)
	for i := range 60 {
		row := []any{fmt.Sprintf("h%d", i%20), i, float64(i) + .5, i, fmt.Sprintf("s%d", i), nil}
		if i%3 == 0 {
			row[5] = true
		}
		want = append(want, describeRow(t, single, row))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// describeRow returns the values of a row as storagetest prints them.
func describeRow(t *testing.T, info *table.Info, row []any) string {
	t.Helper()
	store := storagetest.New(t)
	one := *info
	one.Regions = 1
	store.Tables.Put(&one)
	if err := store.Write(t.Context(), &one, 0, storagetest.Rows(&one, table.Put, row)); err != nil {
		t.Fatal(err)
	}
	return strings.Join(storagetest.Read(t, store, &one, storagetest.All(&one)), "\n")
}

// The region of a key is part of what is on disk.
func TestRegionOfIsStable(t *testing.T) {
	var got []uint32
	for _, key := range []string{"", "a", "host", "\x01a\x00\x01"} {
		got = append(got, RegionOf([]byte(key), 16))
	}
	if diff := cmp.Diff([]uint32{2, 15, 2, 7}, got); diff != "" {
		t.Error(diff)
	}
}
