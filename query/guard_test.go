package query

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/querytest"
)

var writeSafe = flag.Bool("write-safe", false, "write functions_safe.txt anew, to be reviewed")

// firstColumn runs a statement straight on DuckDB and returns its first column.
func firstColumn(t *testing.T, c *conn, sql string) []string {
	t.Helper()
	s, err := c.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for {
		k, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if k == nil {
			return out
		}
		for i := range k.Len {
			out = append(out, string(k.Vectors[0].Bytes(i)))
		}
	}
}

// TestFunctions fails on a function of DuckDB's on which nobody has decided, as
// an upgrade may bring.
func TestFunctions(t *testing.T) {
	e := newEngine(t, Options{})
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	var unknown, lines []string
	known, err := os.ReadFile("functions_safe.txt")
	if err != nil {
		t.Fatal(err)
	}
	safe := set(string(known))
	all := firstColumn(t, c, `SELECT DISTINCT function_name FROM duckdb_functions()
		WHERE function_type IN ('scalar', 'aggregate', 'macro') ORDER BY 1`)
	for _, name := range all {
		switch {
		case denied(name):
			if safe[name] {
				t.Errorf("function %s is called safe and is denied", name)
			}
		case bounds[name].memory != nil || bounds[name].work != nil:
			if safe[name] {
				t.Errorf("function %s is called safe and is bounded", name)
			}
		default:
			lines = append(lines, name)
			if !safe[name] {
				unknown = append(unknown, name)
			}
		}
	}
	if *writeSafe {
		if err := os.WriteFile("functions_safe.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(unknown) > 0 {
		t.Errorf("decide on these functions, in guard.go, bound.go or functions_safe.txt: %v", unknown)
	}
	for name := range deniedFunctions {
		if !slices.Contains(all, name) && name != "combine" {
			t.Errorf("denied function %s does not exist", name)
		}
	}
	for name := range bounds {
		if !slices.Contains(all, name) {
			t.Errorf("bounded function %s does not exist", name)
		}
	}
	for _, name := range firstColumn(t, c, `SELECT DISTINCT function_name FROM duckdb_functions()
		WHERE function_type IN ('table', 'table_macro', 'pragma')`) {
		_, err := read(e, Request{SQL: `SELECT * FROM "` + name + `"(1)`})
		if refused := err != nil && strings.Contains(err.Error(), "does not exist"); refused == allowedTableFunctions[name] {
			t.Errorf("table function %s: %v", name, err)
		}
	}
}

// reaching are expressions and FROM items that reach outside of the tables.
var (
	reachingItems = []string{
		"read_csv('/etc/passwd')", "read_csv_auto('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('/etc/passwd')",
		"read_json('/etc/passwd')", "read_json_auto('x')", "read_json_objects('x')", "read_ndjson('x')",
		"read_parquet('x.parquet')", "parquet_scan('x')", "parquet_metadata('x')", "parquet_schema('x')",
		"parquet_file_metadata('x')", "parquet_kv_metadata('x')", "parquet_bloom_probe('x', 'a', 1)", "read_duckdb('x')",
		"glob('/*')", "sniff_csv('/etc/passwd')", "query('SELECT 1')", "query_table('cpu')",
		"json_execute_serialized_sql('{}')", "duckdb_settings()", "duckdb_tables()", "duckdb_functions()",
		"duckdb_secrets()", "duckdb_logs()", "duckdb_memory()", "pragma_version()", "pragma_database_size()",
		"pragma_table_info('cpu')", "arrow_scan(1, 2, 3)", "arrow_scan_dumb(1, 2, 3)", "seq_scan('cpu')", "checkpoint()",
		"force_checkpoint()", "enable_logging()", "disable_logging()", "enable_profiling()", "truncate_duckdb_logs()",
		"table_scan(1)", `"TABLE_SCAN"(1)`, "main.table_scan(1)", "system.main.read_text('x')", "which_secret('a', 'b')",
		"test_all_types()", "summary(TABLE cpu)", "sql_auto_complete('a')", "histogram('cpu', 'n')", "duckdb_logs_parsed('x')",
		"'x.parquet'", "'/etc/passwd'", `"x.csv"`, "'s3://bucket/x.parquet'", "'https://example.com/x.csv'",
		"information_schema.tables", "pg_catalog.pg_tables", "duckdb_tables", "sqlite_master", "pg_class", "duckdb_settings",
		"memory.main.cpu", "system.information_schema.tables", "temp.cpu", "cpu AT (VERSION => 1)",
		"(DESCRIBE cpu)", "(SUMMARIZE cpu)", "(SHOW TABLES)", "(SHOW ALL TABLES)", "(PIVOT cpu ON host USING sum(n))",
	}
	reachingExpressions = []string{
		"sleep_ms(1)", "pg_sleep(1)", "write_log('x')", "current_setting('threads')", "current_query()", "nextval('s')",
		"currval('s')", "getvariable('x')", "setseed(0.5)", "json_serialize_sql('SELECT 1')", "json_serialize_plan('SELECT 1')",
		"json_deserialize_sql('{}')", "current_schema", "current_schema()", "current_catalog", "current_database()",
		"txid_current()", "main.sleep_ms(1)", "system.main.sleep_ms(1)", `"Sleep_MS"(1)`, "(1).sleep_ms()", "stats(1)",
		"get_block_size('memory')", "pg_get_viewdef(1)", "varve_add_ns(1, 2)", "__internal_decompress_string(1)",
		"variant_bytes_to_variant(1)", "in_search_path('a', 'b')", "$1", "?",
	}
	reachingStatements = []string{
		"COPY cpu TO '/tmp/x'", "COPY (SELECT 1) TO '/tmp/x'", "COPY cpu FROM '/tmp/x'", "ATTACH '/tmp/x'", "DETACH memory",
		"PRAGMA version", "PRAGMA database_list", "SET threads = 1", "SET VARIABLE x = 1", "RESET threads", "INSTALL httpfs",
		"LOAD httpfs", "EXPORT DATABASE '/tmp/x'", "IMPORT DATABASE '/tmp/x'", "CALL pragma_version()", "CHECKPOINT", "VACUUM",
		"CREATE TABLE x (a INT)", "CREATE VIEW x AS SELECT 1", "CREATE MACRO x() AS 1", "CREATE SECRET (TYPE s3)",
		"CREATE SEQUENCE s", "DROP TABLE cpu", "INSERT INTO cpu VALUES (1)", "UPDATE cpu SET n = 1", "DELETE FROM cpu",
		"ALTER TABLE cpu ADD COLUMN x INT", "USE memory", "BEGIN", "COMMIT", "PREPARE x AS SELECT 1", "EXECUTE x",
		"DEALLOCATE x", "SELECT 1; COPY cpu TO 'x'", "SELECT 1; SELECT 2", "", ";", "EXPLAIN", "EXPLAIN EXPLAIN SELECT 1",
		"EXPLAIN COPY cpu TO '/tmp/x'", "EXPLAIN ANALYZE ATTACH '/tmp/x'", "EXPLAIN ANALYZE SELECT 1; SELECT 2",
		"EXPLAIN (FORMAT json) COPY cpu TO 'x'", "SHOW TABLES", "SHOW ALL TABLES", "DESCRIBE cpu", "DESCRIBE SELECT 1",
		"SUMMARIZE cpu", "SUMMARIZE SELECT 1", "SHOW threads", "PIVOT cpu ON host USING sum(n)",
		"WITH x AS (INSERT INTO cpu VALUES (1) RETURNING *) SELECT * FROM x", "FROM cpu INSERT INTO x",
		"/* c */ COPY cpu TO '/tmp/x'", "-- c\nATTACH '/tmp/x'", "SELECT 1 \x00; COPY cpu TO 'x'",
		"MERGE INTO cpu USING cpu ON true WHEN MATCHED THEN DELETE", "TRUNCATE cpu", "COMMENT ON TABLE cpu IS 'x'",
	}
	// hosts are statements that a FROM item or an expression is nested in.
	itemHosts = []string{
		"SELECT * FROM %", "FROM %", "EXPLAIN SELECT * FROM %", "EXPLAIN ANALYZE SELECT * FROM %",
		"SELECT * FROM (SELECT * FROM %) AS s", "WITH c AS (SELECT * FROM %) SELECT * FROM c",
		"WITH c AS MATERIALIZED (FROM %) SELECT 1 FROM c", "SELECT (SELECT count(*) FROM %)",
		"SELECT * FROM cpu, LATERAL (SELECT * FROM %) AS l", "SELECT * FROM cpu JOIN % ON true",
		"SELECT * FROM cpu LEFT JOIN (SELECT * FROM %) AS j ON true", "SELECT 1 UNION ALL SELECT 1 FROM %",
		"SELECT 1 WHERE EXISTS (SELECT 1 FROM %)", "SELECT 1 WHERE 1 IN (SELECT 1 FROM %)",
		"SELECT abs((SELECT count(*) FROM %))", "SELECT [(SELECT 1 FROM %)]", "SELECT {'a': (SELECT 1 FROM %)}",
		"SELECT n FROM cpu ORDER BY (SELECT 1 FROM %)",
		"SELECT n FROM cpu LIMIT (SELECT 1 FROM %)", "SELECT n FROM cpu OFFSET (SELECT 1 FROM %)",
		"SELECT CASE WHEN EXISTS (FROM %) THEN 1 END", "VALUES ((SELECT 1 FROM %))",
		"SELECT * FROM (VALUES ((SELECT 1 FROM %))) AS v(a)", "SELECT * FROM range((SELECT 1 FROM %))",
		"SELECT * REPLACE ((SELECT 1 FROM %) AS n) FROM cpu", "SELECT sum(n) FILTER (WHERE EXISTS (FROM %)) FROM cpu",
		"SELECT sum(n) OVER (ORDER BY (SELECT 1 FROM %)) FROM cpu", "SELECT n FROM cpu GROUP BY (SELECT 1 FROM %), n",
		"SELECT count(*) FROM cpu HAVING EXISTS (FROM %)", "SELECT n FROM cpu QUALIFY row_number() OVER () = (SELECT 1 FROM %)",
		"WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r, % WHERE a < 2) SELECT * FROM r",
		"SELECT DISTINCT ON ((SELECT 1 FROM %)) n FROM cpu",
		"SELECT ts > (SELECT max(ts) FROM %) FROM cpu", "SELECT ts BETWEEN '2026-01-01' AND (SELECT max(ts) FROM %) FROM cpu",
		"SELECT ts IN ('2026-01-01', (SELECT max(ts) FROM %)) FROM cpu", "SELECT date_trunc('hour', (SELECT ts FROM %)) FROM cpu",
		"SELECT ts + (SELECT 1 FROM %) * INTERVAL '1 hour' FROM cpu",
		"SELECT * FROM cpu AS a NATURAL JOIN (SELECT * FROM %) AS b", "SELECT * FROM cpu ASOF JOIN (SELECT max(ts) AS ts FROM %) AS b ON cpu.ts >= b.ts",
	}
	expressionHosts = []string{
		"SELECT %", "EXPLAIN SELECT %", "EXPLAIN ANALYZE SELECT %", "SELECT abs(%)", "SELECT [%]", "SELECT {'a': %}",
		"SELECT 1 WHERE % IS NULL", "SELECT (SELECT %)", "WITH c AS (SELECT %) SELECT 1 FROM c", "VALUES (%)",
		"SELECT list_transform([1], x -> %)", "SELECT n FROM cpu ORDER BY %", "SELECT n FROM cpu LIMIT %",
		"SELECT * FROM range(%)", "SELECT * FROM cpu JOIN cpu AS b ON % = 1", "SELECT CASE WHEN 1 = 1 THEN % END",
		"SELECT count(*) FROM cpu GROUP BY %", "SELECT ts = % FROM cpu", "SELECT ts BETWEEN % AND '2026-01-01' FROM cpu",
		"SELECT ts IN ('2026-01-01', %) FROM cpu", "SELECT ts + % FROM cpu", "SELECT date_trunc(%, ts) FROM cpu",
		"SELECT CAST(% AS TIMESTAMP)", "SELECT now() + %", "SELECT * REPLACE (% AS n) FROM cpu",
		"SELECT sum(n) OVER (PARTITION BY %) FROM cpu", "SELECT first_value(%) OVER () FROM cpu", "SELECT ts - INTERVAL (%) DAY FROM cpu",
		"SELECT * FROM (VALUES (%)) AS v(a)", "SELECT date_bin('1h', ts, %) FROM cpu",
	}
)

// TestGuard tries everything that reaches outside, alone and nested.
func TestGuard(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{}
	db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time n:Int64\na 1 1"))
	// The rewriter itself must refuse, before DuckDB binds anything.
	refused := func(sql string) {
		t.Helper()
		_, body, err := peel(sql)
		if err == nil {
			st, beginErr := e.begin(context.Background())
			if beginErr != nil {
				t.Fatal(beginErr)
			}
			_, err = st.rewrite(Request{SQL: body, Database: "public", TimeZone: time.UTC, Tables: db, Reader: db})
			st.close(false)
		}
		switch fault.KindOf(err) {
		case fault.Syntax, fault.Plan, fault.Unsupported, fault.TableNotFound, fault.DatabaseMissing:
		default:
			t.Errorf("%s: error is %v (kind %d)", sql, err, fault.KindOf(err))
		}
	}
	for _, s := range reachingStatements {
		refused(s)
	}
	for _, host := range itemHosts {
		for _, item := range reachingItems {
			refused(strings.ReplaceAll(host, "%", item))
		}
	}
	for _, host := range expressionHosts {
		for _, x := range reachingExpressions {
			refused(strings.ReplaceAll(host, "%", x))
		}
	}
	if n := len(db.Specs()); n != 0 {
		t.Errorf("%d scans were begun", n)
	}
}

// TestGuardHosts shows that what TestGuard nests in runs with harmless parts, so
// that a refusal there is for the part.
func TestGuardHosts(t *testing.T) {
	e := newEngine(t, Options{})
	db := &querytest.DB{}
	db.Add(querytest.Parse("public", "cpu", "host:String:tag ts:TimestampNanosecond:time n:Int64\na 1 1"))
	accepted := func(host string, parts ...string) {
		t.Helper()
		var err error
		for _, part := range parts {
			sql := strings.ReplaceAll(host, "%", part)
			if _, err = read(e, Request{SQL: sql, Database: "public", Tables: db, Reader: db}); err == nil {
				return
			}
		}
		t.Errorf("%s: %v", host, err)
	}
	for _, host := range itemHosts {
		accepted(host, "cpu", "cpu AS c2", "range(1)", "range(1) AS g(ts)")
	}
	for _, host := range expressionHosts {
		accepted(host, "1", "n", "'hour'", "INTERVAL '1 hour'", "'2026-01-01'")
	}
}

func TestAdmission(t *testing.T) {
	e := newEngine(t, Options{MaxRunning: 1, MaxQueued: 1})
	ctx := context.Background()
	r, err := e.Query(ctx, Request{SQL: "SELECT 1"})
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(ctx)
	got := make(chan error)
	go func() {
		_, err := e.Query(waiting, Request{SQL: "SELECT 1"})
		got <- err
	}()
	for len(e.slots.waiting) == 0 { // until it waits
	}
	if _, err := e.Query(ctx, Request{SQL: "SELECT 1"}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the third query: %v", err)
	}
	cancel()
	if err := <-got; fault.KindOf(err) != fault.Cancelled {
		t.Errorf("the cancelled query: %v", err)
	}
	r.Close()
	if r, err = e.Query(ctx, Request{SQL: "SELECT 1"}); err != nil {
		t.Fatal(err)
	}
	r.Close()
}
