package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/varvedb/varve/table"
)

// discard takes rows and forgets them.
type discard struct{ rows int }

func (d *discard) Admit(context.Context, int64) (func(), error) { return func() {}, nil }

func (d *discard) Rows(_ context.Context, _ *table.Info, rows *table.Rows) error {
	d.rows += rows.Len()
	return nil
}

// BenchmarkInsertValues parses 10,000 rows of literals of six columns.
func BenchmarkInsertValues(b *testing.B) {
	h := newHarness(b)
	h.run("CREATE TABLE cpu (host STRING, dc STRING, ts TIMESTAMP TIME INDEX, usage DOUBLE, n BIGINT, note STRING, PRIMARY KEY (host, dc))")
	d := &discard{}
	h.opts.Ingest = d
	var text strings.Builder
	text.WriteString("INSERT INTO cpu VALUES ")
	for i := range 10_000 {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "('host-%d', 'eu', %d, %d.5, %d, 'a short note')", i%100, 1767323045000+i, i, i)
	}
	b.ReportAllocs()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		script, err := Parse(text.String())
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Run(context.Background(), &h.session, script, func(Result) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	if d.rows == 0 {
		b.Fatal("no rows")
	}
}
