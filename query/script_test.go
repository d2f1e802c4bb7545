package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEngine opens an engine that is closed with the test.
func newEngine(t testing.TB, opts Options) *Engine {
	t.Helper()
	opts.TempDir = t.TempDir()
	if opts.Threads == 0 {
		opts.Threads = 2
	}
	e, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var testNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// read runs a statement and returns its columns and rows, as a script shows
// them.
func read(e *Engine, req Request) (string, error) {
	ctx := context.Background()
	r, err := e.Query(ctx, req)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b strings.Builder
	for i, c := range r.Columns() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", c.Name, c.Type)
	}
	b.WriteString("\n")
	for {
		c, err := r.Next(ctx)
		if err != nil {
			return "", err
		}
		if c == nil {
			return b.String(), nil
		}
		for row := range c.Len() {
			var line []byte
			for col := range r.Columns() {
				if col > 0 {
					line = append(line, ' ')
				}
				line = c.AppendJSON(line, col, row)
			}
			b.Write(append(line, '\n'))
		}
	}
}

// TestScripts runs testdata/*.txt. The commands are
//
//	table db=… name=…   defines a table, see querytest.Parse
//	query [zone=…]      runs a statement and prints its rows or its error
//	scan                prints what a statement's scans are asked for
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		e := newEngine(t, Options{})
		db := &querytest.DB{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			req := Request{SQL: d.Input, Database: "public", Now: testNow, Tables: db, Reader: db}
			switch d.Cmd {
			case "table":
				var database, name = "public", ""
				d.MaybeScanArgs(t, "db", &database)
				d.ScanArgs(t, "name", &name)
				db.Add(querytest.Parse(database, name, d.Input))
				return ""
			case "query":
				if d.HasArg("zone") {
					var zone string
					d.ScanArgs(t, "zone", &zone)
					var err error
					if req.TimeZone, err = time.LoadLocation(zone); err != nil {
						t.Fatal(err)
					}
				}
				out, err := read(e, req)
				return out + errorText(err)
			case "scan":
				req.SQL = "EXPLAIN " + req.SQL
				out, err := read(e, req)
				var lines []string
				for _, line := range strings.Split(out, "\n") {
					if strings.HasPrefix(line, `"scan of`) {
						lines = append(lines, line)
					}
				}
				return strings.Join(lines, "\n") + errorText(err)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
		if n, p := db.Snapshots.Load(), db.Parts.Load(); n != 0 || p != 0 {
			t.Errorf("%d snapshots and %d partitions are left open", n, p)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("error %d: %v", fault.KindOf(err), err)
}
