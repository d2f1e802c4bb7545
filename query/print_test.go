package query

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/varvedb/varve/query/querytest"
)

// printedForms are statements that are frequent enough to be printed here.
var printedForms = []string{
	"SELECT 1",
	"SELECT * FROM cpu",
	"SELECT count(*), count(DISTINCT host), sum(usage), -5 AS n, usage % 2 + 1 FROM cpu AS c",
	`SELECT date_trunc('minute', ts) AS minute, max(usage) FROM cpu WHERE host = 'host_7'
		AND ts >= '2026-01-01 00:10:00' AND ts < '2026-01-01 01:10:00' GROUP BY 1 ORDER BY 1`,
	`SELECT date_bin(INTERVAL '1 minute', ts) AS m, avg(usage) FROM cpu WHERE host IN ('a', 'it''s', '日本')
		GROUP BY m HAVING avg(usage) > 5 ORDER BY m DESC NULLS LAST LIMIT 5 OFFSET 2`,
	`SELECT "host", "select"."usage" FROM cpu AS "select" WHERE NOT (usage IS NULL OR host IS NOT NULL) AND
		usage BETWEEN 1 AND 90 AND host NOT IN ('x', 'y') AND host LIKE 'a%' AND host NOT LIKE 'b"%' AND usage <> 3`,
	"SELECT host, usage::BIGINT, CAST(ts AS TIMESTAMP) FROM cpu WHERE ts > now() - INTERVAL '1 hour' ORDER BY ts, host",
	"SELECT max(range) FROM range(10) AS r WHERE range < 2147483647",
}

// otherForms are statements near those that the printer knows: whatever it
// prints of them must be right.
var otherForms = []string{
	"SELECT struct_pack(a := 1, b := 'x')",
	"SELECT sum(usage) FILTER (usage > 1), list(usage ORDER BY ts) FROM cpu",
	"SELECT main.abs(-1), \"+\"(1, 2), -(usage), - -5, TRY_CAST('x' AS INTEGER) FROM cpu",
	"SELECT host, count(*) FROM cpu GROUP BY ROLLUP (host)",
	"SELECT host, usage, count(*) FROM cpu GROUP BY GROUPING SETS ((usage, host))",
	"SELECT host, count(*) FROM cpu GROUP BY ALL ORDER BY ALL",
	"SELECT DISTINCT host FROM cpu", "SELECT DISTINCT ON (host) host, ts FROM cpu",
	"SELECT host FROM cpu LIMIT 10%", "SELECT host FROM cpu USING SAMPLE 1", "SELECT host FROM cpu OFFSET 1",
	"SELECT c.* FROM cpu AS c", "SELECT * EXCLUDE (host) FROM cpu", "SELECT COLUMNS('u.*') FROM cpu", "SELECT count(cpu.*) FROM cpu",
	"SELECT a FROM cpu AS c(a, b, d)", "SELECT usage = ANY (SELECT 1) FROM cpu", "SELECT usage IN (SELECT 1) FROM cpu",
	"SELECT usage NOT BETWEEN 1 AND 2, usage IS DISTINCT FROM 1, host ^@ 'a', host SIMILAR TO 'a' FROM cpu",
	"SELECT usage::DECIMAL(10, 2), usage::VARCHAR::JSON, [1]::INTEGER[], NULL, true, 1.5, 10000000000, 2147483648 FROM cpu",
	"SELECT first(usage IGNORE NULLS), count(*) OVER (), CASE WHEN true THEN 1 END, host COLLATE NOCASE FROM cpu",
	"SELECT n FROM range(3) WITH ORDINALITY AS r(n, o)", "FROM cpu", "SELECT usage FROM cpu QUALIFY row_number() OVER () = 1",
	"SELECT (1 = 1) = true, (1 AND 2) AND (3 OR (4 OR 5)), 1 + (2 + 3), (1 - 2) - 3, 'a' || ('b' || 'c'), 1 IN (1), NOT NOT true",
}

// TestPrint holds the printer to DuckDB's: what both print of a rewritten tree
// must parse to the same.
func TestPrint(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{}
	db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time usage:Float64\na 1 1"))
	st, err := e.begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer st.close(false)
	f := func(sql string, must bool) {
		t.Helper()
		tree, err := st.parse(sql)
		if err != nil {
			return // not for the printer
		}
		r := &rewriter{req: Request{SQL: sql, Database: "public", TimeZone: time.UTC, Now: time.Unix(1767225600, 0), Tables: db, Reader: db}, engine: e}
		r.query(child(list(tree, "statements")[0].(node), "node"), nil, nil)
		ours, ok := printTree(tree)
		if must && (!ok || r.err != nil) {
			t.Errorf("%s is not printed: %v", sql, r.err)
		}
		if !ok || r.err != nil {
			return
		}
		theirs, err := st.printByDuckDB(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := canonical(t, st, ours), canonical(t, st, theirs); got != want {
			t.Errorf("%s\nours:   %s\nDuckDB: %s\n got %s\nwant %s", sql, ours, theirs, got, want)
		}
	}
	for _, sql := range printedForms {
		f(sql, true)
	}
	for _, forms := range [][]string{oddForms, otherForms, reachingStatements} {
		for _, sql := range forms {
			f(sql, false)
		}
	}
}

// canonical returns the tree of a text without the locations in it.
func canonical(t *testing.T, st *statement, sql string) string {
	t.Helper()
	tree, err := st.parse(sql)
	if err != nil {
		t.Errorf("%s: %v", sql, err)
		return ""
	}
	dropLocations(tree)
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func dropLocations(v any) {
	switch v := v.(type) {
	case node:
		delete(v, "query_location")
		for _, c := range v {
			dropLocations(c)
		}
	case []any:
		for _, c := range v {
			dropLocations(c)
		}
	}
}
