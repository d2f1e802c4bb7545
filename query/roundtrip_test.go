package query

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/querytest"
)

// oddForms are statements whose text after the round trip must mean what it
// meant before.
var oddForms = []string{
	"SELECT 1e3, -1e3, 1.5e-7, 1e300, .5, 5., 0x1F, 1_000, -0.0, 1e0::FLOAT",
	"SELECT typeof(1e3), typeof(1.5), typeof(-1e3), typeof(10000000000), typeof(NULL), typeof(1e3 / 2)",
	"SELECT 'it''s', E'a\\nb', $$dollar$$, $tag$x$tag$",
	"SELECT \"quoted name\", x.\"se\"\"lect\" FROM (SELECT 1 AS \"quoted name\", 2 AS \"se\"\"lect\") AS x",
	"SELECT -(-5), - -5, 2 ^ 3, 2 ** 3, 7 % 3, 7 // 2, 1 << 4, 5 & 3, 5 | 3, ~5, NOT true",
	"SELECT 1 BETWEEN 0 AND 2, 1 NOT BETWEEN 0 AND 2, 1 IN (1, 2), 1 NOT IN (1, 2), NULL IS NULL, 1 IS DISTINCT FROM NULL",
	"SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A%', 'a%c' LIKE 'a\\%c' ESCAPE '\\', 'abc' SIMILAR TO 'a.c', 'abc' GLOB 'a*', 'abc' ~ 'a.c', 'abc' !~ 'x'",
	"SELECT CASE 1 WHEN 1 THEN 'a' ELSE 'b' END, CASE WHEN true THEN 1 END, COALESCE(NULL, 1), NULLIF(1, 1), IF(true, 1, 2)",
	"SELECT [1, 2, 3][2], [1, 2, 3][1:2], 'abc'[1], {'a': {'b': 5}}.a.b, MAP {'k': 1}['k'], (1, 'x'), ROW(1, 2)",
	"SELECT [x * 2 FOR x IN [1, 2, 3] IF x > 1], list_transform([1, 2], x -> x + 1), list_reduce([1, 2, 3], (a, b) -> a + b)",
	"SELECT list_filter([1, 2, 3], lambda x: x > 1), list_sort([3, 1], 'DESC')",
	"SELECT CAST('5' AS INT), TRY_CAST('x' AS INT), '5'::INT, 5::DECIMAL(10, 2), '[1, 2]'::INT[], '{\"a\": 1}'::JSON -> 'a', [1, 2]::INT[2]",
	"SELECT EXTRACT(year FROM DATE '2026-03-01'), date_part('month', DATE '2026-03-01'), DATE '2026-03-01' + 1, DATE '2026-03-01' - DATE '2026-02-01'",
	"SELECT TIME '01:02:03', INTERVAL 1 DAY, INTERVAL '1' HOUR, INTERVAL (1 + 1) MINUTE, INTERVAL '1 day' * 1.5",
	"SELECT TIMESTAMP '2026-01-01 00:00:00' AT TIME ZONE 'Asia/Shanghai', TIMESTAMPTZ '2026-01-01 00:00:00+00' AT TIME ZONE 'UTC'",
	"SELECT substring('hello' FROM 2 FOR 3), position('l' IN 'hello'), trim(BOTH 'x' FROM 'xax')",
	"SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(n, s) ORDER BY n DESC NULLS FIRST LIMIT 1 OFFSET 1",
	"SELECT n, s FROM (VALUES (1, 'a'), (2, NULL)) AS v(n, s) ORDER BY s NULLS LAST",
	"SELECT count(*), count(DISTINCT n), sum(n) FILTER (n > 1), string_agg(n::VARCHAR, '-' ORDER BY n DESC) FROM range(4) AS r(n)",
	"SELECT n, sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM range(4) AS r(n) ORDER BY n",
	"SELECT n, sum(n) OVER w, rank() OVER w FROM range(3) AS r(n) WINDOW w AS (PARTITION BY n % 2 ORDER BY n) ORDER BY n",
	"SELECT first_value(n) OVER (ORDER BY n), lag(n, 1, -1) OVER (ORDER BY n), nth_value(n, 2 IGNORE NULLS) OVER (ORDER BY n) FROM range(3) AS r(n) ORDER BY n",
	"SELECT a, b, count(*) FROM (VALUES (1, 2), (1, 3)) AS v(a, b) GROUP BY ROLLUP (a, b) ORDER BY ALL",
	"SELECT a, b, count(*), GROUPING(a) FROM (VALUES (1, 2), (1, 3)) AS v(a, b) GROUP BY GROUPING SETS ((a), (b), ()) ORDER BY ALL",
	"SELECT DISTINCT ON (n % 2) n FROM range(4) AS r(n) ORDER BY n % 2, n",
	"SELECT n FROM range(5) AS r(n) EXCEPT SELECT n FROM range(3) AS s(n) ORDER BY n",
	"SELECT n FROM range(3) AS r(n) INTERSECT ALL SELECT n FROM range(2) AS s(n) ORDER BY n",
	"SELECT 1 AS a, 2 AS b UNION ALL BY NAME SELECT 3 AS b, 4 AS a",
	"(SELECT 1 AS n LIMIT 1) UNION ALL (SELECT 2 LIMIT 1) ORDER BY n DESC",
	"WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION SELECT b, a + b FROM f WHERE b < 20) SELECT list(a ORDER BY a) FROM f",
	"WITH a AS NOT MATERIALIZED (SELECT 1 AS x), b(y) AS (SELECT x + 1 FROM a) SELECT * FROM a, b",
	"SELECT * FROM range(3) AS a(x) LEFT JOIN range(2) AS b(x) USING (x) ORDER BY x",
	"SELECT a.x, b.y FROM range(2) AS a(x) CROSS JOIN LATERAL (SELECT a.x + 1 AS y) AS b ORDER BY 1",
	"SELECT * FROM range(2) AS a(x) POSITIONAL JOIN range(2) AS b(y)",
	"SELECT x FROM range(3) AS a(x) SEMI JOIN range(2) AS b(y) ON x = y ORDER BY x",
	"SELECT x FROM range(3) AS a(x) ANTI JOIN range(2) AS b(y) ON x = y",
	"SELECT COLUMNS('a.*') FROM (SELECT 1 AS a1, 2 AS a2, 3 AS b) AS t",
	"SELECT * EXCLUDE (b) REPLACE (a + 1 AS a) RENAME (c AS d) FROM (SELECT 1 AS a, 2 AS b, 3 AS c) AS t",
	"SELECT max(COLUMNS(*)) FROM (SELECT 1 AS a, 2 AS b) AS t",
	"SELECT unnest([1, 2]), unnest({'a': 1, 'b': 2}, recursive := true)",
	"SELECT x FROM (SELECT unnest([3, 1, 2]) AS x) AS t QUALIFY row_number() OVER (ORDER BY x) <= 2 ORDER BY x",
	"FROM range(2) SELECT range + 1 AS n ORDER BY n",
	"SELECT 'a' COLLATE NOCASE = 'A', 'ä' COLLATE NOACCENT = 'a'",
	"SELECT quantile_cont(n, [0.25, 0.5]), mode(n), arg_max(n, -n), histogram(n % 2) FROM range(10) AS r(n)",
	"SELECT (SELECT max(n) FROM range(3) AS r(n)), EXISTS (SELECT 1), 2 > ALL (SELECT n FROM range(2) AS r(n)), 1 = ANY ([1, 2])",
	"SELECT n FROM range(3) AS r(n) GROUP BY n HAVING n > 0 ORDER BY n LIMIT 50%",
	"SELECT true AND NOT false OR NULL, true::INT, 'a' || NULL, concat('a', NULL), 1 = 1.0",
	"SELECT 'x' AS \"Ünïcode 名\", '日本' AS b",
}

// TestRoundTrip compares each form with what DuckDB says to it directly.
func TestRoundTrip(t *testing.T) {
	e := newEngine(t, Options{})
	direct := func(sql string) (string, error) {
		st, err := e.begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if st.prepared, err = st.conn.Prepare(sql); err == nil {
			if wrapped, ok := castForeign(sql, st.prepared.Columns()); ok {
				st.prepared.Close()
				st.prepared, err = st.conn.Prepare(wrapped)
			}
		}
		if err == nil {
			st.result, err = st.prepared.Run()
		}
		if err != nil {
			st.close(false)
			return "", err
		}
		return collect(newResult(st))
	}
	for _, sql := range oddForms {
		want, err := direct(sql)
		if err != nil {
			t.Errorf("%s\nDuckDB itself: %v", sql, err)
			continue
		}
		got, err := read(e, Request{SQL: sql})
		// Names of columns may differ, rows and types may not.
		if err != nil || rowsOf(got) != rowsOf(want) {
			t.Errorf("%s\n got %s %v\nwant %s", sql, got, err, want)
		}
	}
}

func rowsOf(s string) string {
	_, rows, _ := strings.Cut(s, "\n")
	return rows
}

// TestConcurrent runs more statements than slots at once.
func TestConcurrent(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{Partitions: 4, BatchRows: 4096}
	db.Add(bigTable(50_000))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10 {
				out, err := read(e, Request{SQL: "SELECT count(*), sum(f0), count(DISTINCT host) FROM big WHERE host < 'host_5'",
					Database: "public", Tables: db, Reader: db})
				if err != nil || rowsOf(out) != "22500 11220250.0 45\n" {
					t.Errorf("%s %v", out, err)
				}
			}
		})
	}
	all.Wait()
}

// FuzzQuery looks for statements that panic in the rewriter, or that DuckDB
// answers with what must never be reached.
func FuzzQuery(f *testing.F) {
	for _, s := range oddForms {
		f.Add(s)
	}
	for _, s := range reachingStatements {
		f.Add(s)
	}
	for _, host := range itemHosts {
		f.Add(strings.ReplaceAll(host, "%", "cpu"))
	}
	e := newEngine(f, Options{})
	db := &querytest.DB{}
	db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time n:Int64\na 1 1"))
	f.Fuzz(func(t *testing.T, sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r, err := e.Query(ctx, Request{SQL: sql, Database: "public", Tables: db, Reader: db})
		if err == nil {
			r.Close()
			return
		}
		if strings.Contains(err.Error(), "panic") || fault.KindOf(err) == fault.Denied {
			t.Error(err)
		}
	})
}
