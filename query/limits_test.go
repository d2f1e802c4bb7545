package query

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
)

// TestSpill runs a statement that needs more than the memory limit: it goes
// through the temporary directory, up to the space it may take there.
func TestSpill(t *testing.T) {
	sql := "SELECT max(i) FROM (SELECT i, lag(i) OVER (ORDER BY hash(i)) AS before FROM range(4000000) AS r(i)) WHERE before > i"
	e := newEngine(t, Options{MemoryLimit: 64 << 20})
	if _, err := read(e, Request{SQL: sql}); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
	e = newEngine(t, Options{MemoryLimit: 64 << 20, TempLimit: 1 << 20})
	_, err := read(e, Request{SQL: sql})
	if fault.KindOf(err) != fault.Exhausted || strings.Contains(err.Error(), "SET ") {
		t.Errorf("within 1 MiB of space: %v (kind %d)", err, fault.KindOf(err))
	}
}

// TestNesting expects an answer soon to statements that DuckDB's binder would
// take minutes for, in which no interrupt reaches it.
func TestNesting(t *testing.T) {
	e := newEngine(t, Options{})
	f := func(open, middle, closing string, deepest int) {
		t.Helper()
		for _, n := range []int{deepest, deepest + 1, 3000} {
			sql := "SELECT " + strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
			begun := time.Now()
			_, err := read(e, Request{SQL: sql})
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("%d of %s took %s", n, open, d)
			}
			if n == deepest && err != nil {
				t.Errorf("%d of %s: %v", n, open, err)
			}
			if k := fault.KindOf(err); n > deepest && k != fault.TooLarge && k != fault.Syntax && k != fault.Invalid {
				t.Errorf("%d of %s: %v (kind %d)", n, open, err, k)
			}
		}
	}
	f("(SELECT ", "1", ")", 12)
	f("EXISTS (SELECT 1 WHERE ", "true", ")", 12)
	f("1 IN (SELECT ", "1", ")", 12)
	f("abs(", "1", ")", 255)
	f("", "'a'", "||'b'", 255)
	f("[", "1", "]", 255)
	f("CASE WHEN true THEN ", "1", " END", 254)
	f("* FROM (SELECT ", "1", ")", 63)
	g := func(sql string) {
		t.Helper()
		if _, err := read(e, Request{SQL: sql}); fault.KindOf(err) != fault.TooLarge {
			t.Errorf("%.40s: %v (kind %d)", sql, err, fault.KindOf(err))
		}
	}
	g("SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 5000))
	g("SELECT 1 WHERE 1 IN (1" + strings.Repeat(",1", maxExpressions) + ")")
	g("SELECT 1 WHERE 1=1" + strings.Repeat(" AND 1=1", maxExpressions/2))
	deep := "repeat('[', 100000) || repeat(']', 100000)"
	g("SELECT json_merge_patch(" + deep + ", '1')")
	g("SELECT json_contains(" + deep + ", '1')")
	g("SELECT json_contains('1', " + deep + ")")
	g("SELECT count(*) FROM json_tree('" + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + "')")
	g("SELECT count(*) FROM (SELECT " + deep + " AS j) AS t, json_tree(j)")
	g("SELECT from_json('[]', '" + strings.Repeat("[", 1000) + "\"INT\"" + strings.Repeat("]", 1000) + "')")
	for _, sql := range []string{"SELECT count(*) FROM json_tree('[1]')", "SELECT j.value FROM (SELECT '[1]' AS s) AS t, json_each(s) AS j", "SELECT from_json('[1]', '[\"INT\"]')"} {
		if _, err := read(e, Request{SQL: sql}); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestSpillIsOutOfReach expects that settings which let DuckDB spill let no
// statement of its own read or write there or anywhere else.
func TestSpillIsOutOfReach(t *testing.T) {
	e := newEngine(t, Options{})
	st, err := e.begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(false)
	for _, sql := range []string{
		"SET GLOBAL enable_external_access = true", "COPY (SELECT 1) TO '/tmp/varve-x.csv'",
		"SELECT * FROM read_text('/etc/passwd')", "SET GLOBAL temp_directory = '/tmp'",
	} {
		if err := st.conn.Exec(sql); err == nil || strings.Contains(err.Error(), "Parser") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
