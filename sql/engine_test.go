package sql_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

// TestEngine runs testdata/engine against DuckDB and a storage engine in
// memory. A block's values are printed as JSON; "restart" restarts the engine.
func TestEngine(t *testing.T) {
	queries := openQuery(t)
	datadriven.Walk(t, "testdata/engine", func(t *testing.T, path string) {
		s := newSystem(t, queries)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "sql":
				return s.run(d.Input)
			case "restart":
				s.store.Restart(t)
				return ""
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func openQuery(t *testing.T) *query.Engine {
	queries, err := query.Open(query.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queries.Close(); err != nil {
			t.Error(err)
		}
	})
	return queries
}

// Nothing that SQL can say reaches a file, a setting, an extension or DuckDB's
// own state: every form in testdata/guard.sql is refused and changes nothing.
func TestGuard(t *testing.T) {
	s := newSystem(t, openQuery(t))
	const look = "SELECT * FROM g; SHOW TABLES; SHOW DATABASES"
	s.run("CREATE TABLE g (ts TIMESTAMP TIME INDEX, a STRING)")
	before := s.run(look)
	forms, err := os.ReadFile("testdata/guard.sql")
	if err != nil {
		t.Fatal(err)
	}
	for form := range strings.Lines(string(forms)) {
		if strings.HasPrefix(form, "--") {
			continue
		}
		if out := s.run(form); !strings.HasPrefix(out, "error") || strings.Contains(out, "root:") {
			t.Errorf("%sis not refused: %s", form, out)
		}
	}
	if after := s.run(look); after != before {
		t.Errorf("something has changed:\n%s\nbefore:\n%s", after, before)
	}
}

// A system is everything below /v1/sql.
type system struct {
	store *storagetest.Store
	*sql.Engine
}

func newSystem(t *testing.T, queries *query.Engine) *system {
	s := &system{store: storagetest.New(t)}
	c := catalog.NewMemory(catalog.Options{})
	s.Engine = sql.New(sql.Options{
		Catalog: c, Query: queries, Reader: s, Maintainer: s, Version: "1.0.0",
		Ingest: ingest.New(c, s, ingest.Options{}),
	})
	return s
}

// The engine is replaced by a restart, and learns of tables when they are used.

func (s *system) Write(ctx context.Context, info *table.Info, region uint32, rows *table.Rows) error {
	s.store.Tables.Put(info)
	return s.store.Write(ctx, info, region, rows)
}

func (s *system) Snapshot(ctx context.Context, info *table.Info) (table.Snapshot, error) {
	s.store.Tables.Put(info)
	return s.store.Snapshot(ctx, info)
}

func (s *system) Flush(ctx context.Context, info *table.Info) error { return s.store.Flush(ctx, info) }

func (s *system) Drop(ctx context.Context, id table.ID) error {
	s.store.Tables.Remove(id)
	return s.store.Drop(ctx, id)
}

func (s *system) run(text string) string {
	var out strings.Builder
	script, err := sql.Parse(text)
	if err == nil {
		session := &sql.Session{Now: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)}
		err = s.Run(context.Background(), session, script, func(r sql.Result) error {
			if r.Records == nil {
				fmt.Fprintf(&out, "%d affected\n", r.Affected)
				return nil
			}
			return printRecords(&out, r.Records)
		})
	}
	if err != nil {
		fmt.Fprintf(&out, "error %d: %v\n", fault.KindOf(err), err)
	}
	return out.String()
}

func printRecords(out *strings.Builder, r sql.Records) error {
	for i, c := range r.Columns() {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(c.Name + " " + c.Type)
	}
	out.WriteByte('\n')
	for {
		chunk, err := r.Next(context.Background())
		if err != nil || chunk == nil {
			return err
		}
		for row := range chunk.Len() {
			line := []byte("- ")
			for col := range r.Columns() {
				if col > 0 {
					line = append(line, " | "...)
				}
				line = chunk.AppendJSON(line, col, row)
			}
			out.Write(append(line, '\n'))
		}
	}
}
