package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/table"
)

// TestScripts runs testdata: each "sql" block is one call of Run, and what is
// behind the line is what came out of it. The storage engine and DuckDB are
// not there: an INSERT prints the rows that it would write, a query the text
// that DuckDB would get.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		h := newHarness(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "sql" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			h.session = Session{Now: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)}
			if d.HasArg("db") {
				d.ScanArgs(t, "db", &h.session.Database)
			}
			return h.run(d.Input)
		})
	})
}

// A harness is an Engine over a catalog in memory that notes what it is asked
// to write.
type harness struct {
	*Engine
	session Session
	out     strings.Builder
}

func newHarness(t testing.TB) *harness {
	h := &harness{}
	h.Engine = New(Options{Catalog: catalog.NewMemory(catalog.Options{}), Ingest: h, Maintainer: h, Version: "1.0.0"})
	h.Engine.run = func(_ context.Context, req query.Request) (Records, error) {
		fmt.Fprintf(&h.out, "query in %s, %s: %s\n", req.Database, req.TimeZone, req.SQL)
		return newListing(), nil
	}
	return h
}

func (h *harness) run(text string) string {
	h.out.Reset()
	script, err := Parse(text)
	if err == nil {
		err = h.Run(context.Background(), &h.session, script, func(r Result) error {
			if r.Records == nil {
				fmt.Fprintf(&h.out, "%d affected\n", r.Affected)
				return nil
			}
			h.print(r.Records)
			return nil
		})
	}
	if err != nil {
		fmt.Fprintf(&h.out, "error %d: %v\n", fault.KindOf(err), err)
	}
	return h.out.String()
}

func (h *harness) print(r Records) {
	for {
		chunk, err := r.Next(context.Background())
		if err != nil || chunk == nil {
			return
		}
		for row := range chunk.Len() {
			for col := range r.Columns() {
				if col > 0 {
					h.out.WriteString(" | ")
				}
				h.out.Write(chunk.AppendText(nil, col, row))
			}
			h.out.WriteByte('\n')
		}
	}
}

func (h *harness) Admit(context.Context, int64) (func(), error) { return func() {}, nil }

// Rows prints the rows as the engine would get them: key, time, fields.
func (h *harness) Rows(_ context.Context, info *table.Info, rows *table.Rows) error {
	for row := range rows.Len() {
		fmt.Fprintf(&h.out, "%s %x @%d", info.Name, rows.Keys.Key(int(rows.Series[row])), rows.Times[row])
		for i := range rows.Fields {
			f := &rows.Fields[i]
			fmt.Fprintf(&h.out, " %s=%s", info.Schema.Column(f.ID).Name, fieldText(f, row))
		}
		h.out.WriteByte('\n')
	}
	return nil
}

func fieldText(f *table.FieldVector, row int) string {
	switch {
	case f.IsNull(row):
		return "null"
	case f.Type == table.UInt64:
		return fmt.Sprint(uint64(f.Ints[row]))
	case f.Ints != nil:
		return fmt.Sprint(f.Ints[row])
	case f.Floats != nil:
		return fmt.Sprint(f.Floats[row])
	case f.Bools != nil:
		return fmt.Sprint(f.Bools[row])
	}
	return fmt.Sprintf("%q", f.Bytes(row))
}

func (h *harness) Flush(_ context.Context, info *table.Info) error {
	fmt.Fprintf(&h.out, "flush %s.%s\n", info.Database, info.Name)
	return nil
}

func (h *harness) Drop(_ context.Context, id table.ID) error {
	fmt.Fprintf(&h.out, "drop data of table %d\n", id)
	return nil
}
