package sql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/table"
)

// What a text may hold is bounded, and the error says by what.
func TestLimits(t *testing.T) {
	h := newHarness(t)
	h.run("CREATE TABLE t (ts TIMESTAMP TIME INDEX, n INT, s STRING DEFAULT '" + strings.Repeat("x", 1000) + "')")
	h.opts.InsertBytes = 1 << 20
	f := func(name, text, want string) {
		t.Helper()
		kind, out := "error 13: ", h.run(text)
		if !strings.HasPrefix(out, kind) || !strings.Contains(out, want) {
			t.Errorf("%s: %.200s", name, out)
		}
	}
	f("statements", strings.Repeat("USE public;", maxStatements+1), "may have 100000 statements")
	f("tables", "DROP TABLE t"+strings.Repeat(", t", maxList), "a list may have 16384 members")
	f("columns", "INSERT INTO t (ts"+strings.Repeat(", n", maxList)+") VALUES (1)", "a list may have 16384 members")
	f("options", "CREATE DATABASE d WITH (ttl='1d'"+strings.Repeat(", ttl='1d'", maxList)+")", "a list may have 16384 members")
	f("query", "SELECT "+strings.Repeat("1+", maxQueryBytes/2)+"1", "the text of a query may have 4194304 bytes")
	f("expressions", "INSERT INTO t (ts, n) VALUES (1, 1)"+strings.Repeat(", (1, 1+1)", maxCells+1), "65536 expressions")
	f("rows", "INSERT INTO t (ts) VALUES (1)"+strings.Repeat(", (1)", 2000), "may take 1048576 bytes")
}

// closing notes that Records were closed.
type closing struct {
	*listing
	closed int
}

func (c *closing) Close() { c.closed++ }

func TestRunClosesRecords(t *testing.T) {
	h := newHarness(t)
	records := &closing{listing: newListing("a")}
	h.Engine.run = func(context.Context, query.Request) (Records, error) { return records, nil }
	script, err := Parse("SELECT 1; SELECT 2")
	if err != nil {
		t.Fatal(err)
	}
	gone := fault.Wrap(fault.Cancelled, errors.New("the client is gone"))
	calls := 0
	err = h.Run(context.Background(), &h.session, script, func(Result) error { calls++; return gone })
	if !errors.Is(err, gone) || fault.KindOf(err) != fault.Cancelled || calls != 1 || records.closed != 1 {
		t.Errorf("%v after %d results, %d closed", err, calls, records.closed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.Run(ctx, &h.session, script, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a script without a client ran: %v", err)
	}
}

// A crowded is an Ingester that has room for so many bytes.
type crowded struct {
	*harness
	room, held, written int64
}

func (c *crowded) Admit(_ context.Context, n int64) (func(), error) {
	if c.held+n > c.room {
		return nil, fault.Errorf(fault.Unavailable, "no room")
	}
	c.held += n
	return func() { c.held -= n }, nil
}

func (c *crowded) Rows(_ context.Context, _ *table.Info, rows *table.Rows) error {
	c.written += int64(rows.Len())
	return nil
}

// An INSERT is admitted as its rows grow, and gives everything back.
func TestInsertIsAdmittedAsItGrows(t *testing.T) {
	f := func(room int64, last string, want fault.Kind, written int64) {
		t.Helper()
		h := newHarness(t)
		c := &crowded{harness: h, room: room}
		h.Engine = New(Options{Catalog: catalog.NewMemory(catalog.Options{}), Ingest: c, Maintainer: h})
		run := func(text string) error {
			script, err := Parse(text)
			if err != nil {
				return err
			}
			return h.Run(t.Context(), &h.session, script, func(Result) error { return nil })
		}
		if err := run("CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, s STRING)"); err != nil {
			t.Fatal(err)
		}
		row := "(1, '" + strings.Repeat("x", 4000) + "'), "
		err := run("INSERT INTO t VALUES " + strings.Repeat(row, 2048) + last)
		if err != nil && fault.KindOf(err) != want || err == nil && written == 0 || c.held != 0 || c.written != written {
			t.Errorf("room for %d: %v, %d held, %d rows written", room, err, c.held, c.written)
		}
	}
	f(64<<20, "(1, 'y')", 0, 2049)
	f(1<<20, "(1, 'y')", fault.Unavailable, 0)
	f(1<<20, "('no time', 'y')", fault.Unavailable, 0) // before that is read
}
