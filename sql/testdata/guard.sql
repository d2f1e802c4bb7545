-- Everything here must be refused: one statement a line.
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_csv_auto('/etc/passwd')
SELECT * FROM "read_csv"('/etc/passwd')
SELECT * FROM main.read_csv('/etc/passwd')
SELECT * FROM system.main.read_csv('/etc/passwd')
SELECT * FROM read_parquet('/tmp/x')
SELECT * FROM parquet_scan('/tmp/x')
SELECT * FROM parquet_metadata('/tmp/x')
SELECT * FROM read_json('/etc/passwd')
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM read_blob('/etc/passwd')
SELECT * FROM glob('/*')
SELECT * FROM sniff_csv('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM "/tmp/x.parquet"
SELECT * FROM 'https://example.com/x.csv'
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('t')
SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_secrets()
SELECT * FROM duckdb_functions()
SELECT * FROM pragma_version()
SELECT * FROM pragma_database_size()
SELECT * FROM arrow_scan(1, 2, 3)
SELECT * FROM seq_scan('t')
SELECT * FROM checkpoint()
SELECT * FROM enable_logging()
SELECT * FROM which_secret('a', 'b')
SELECT * FROM test_all_types()
SELECT * FROM information_schema.tables
SELECT * FROM sqlite_master
SELECT * FROM pg_catalog.pg_class
SELECT sleep_ms(1)
SELECT write_log('x')
SELECT current_setting('memory_limit')
SELECT current_query()
SELECT nextval('s')
SELECT getvariable('x')
SELECT getenv('HOME')
SELECT txid_current()
SELECT 1 WHERE EXISTS (SELECT * FROM read_text('/etc/passwd'))
SELECT (SELECT content FROM read_text('/etc/passwd'))
SELECT CASE WHEN true THEN current_setting('threads') END
SELECT list_transform(['memory_limit'], x -> current_setting(x))
SELECT [current_setting(x) FOR x IN ['threads']]
SELECT count(*) FILTER (WHERE current_setting('threads') = '1')
SELECT * FROM range(3) AS r(i) ORDER BY current_setting('threads')
SELECT * FROM range(3) AS r(i) LIMIT (SELECT count(*) FROM read_text('/etc/passwd'))
WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT 1
WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + (SELECT count(*) FROM glob('/*')) FROM x WHERE a < 3) SELECT * FROM x
WITH x AS MATERIALIZED (SELECT current_setting('threads')) SELECT * FROM x
VALUES ((SELECT content FROM read_text('/etc/passwd')))
FROM read_text('/etc/passwd')
SELECT 1 UNION ALL SELECT count(*) FROM read_text('/etc/passwd')
SELECT * FROM (SHOW TABLES)
SELECT * FROM (DESCRIBE SELECT 1)
SELECT * FROM (SUMMARIZE SELECT 1)
PIVOT range(3) ON range
SELECT * FROM (PIVOT read_text('/etc/passwd') ON filename)
SELECT COLUMNS(*) FROM read_text('/etc/passwd')
EXPLAIN SELECT * FROM read_text('/etc/passwd')
EXPLAIN ANALYZE SELECT current_setting('threads')
EXPLAIN COPY (SELECT 1) TO '/tmp/x'
EXPLAIN EXPLAIN SELECT 1
INSERT INTO g SELECT 1, content FROM read_text('/etc/passwd')
INSERT INTO g VALUES (1, (SELECT content FROM read_text('/etc/passwd')))
INSERT INTO g VALUES (1, current_setting('threads'))
INSERT INTO g VALUES (1, 'a'), (2, getenv('HOME'))
COPY (SELECT 1) TO '/tmp/x'
COPY g FROM '/etc/passwd'
ATTACH '/tmp/x.db'
INSTALL httpfs
LOAD httpfs
PRAGMA version
SET memory_limit = '1GB'
SET GLOBAL threads = 1
RESET threads
CALL pragma_version()
PREPARE p AS SELECT 1
EXECUTE p
EXPORT DATABASE '/tmp/x'
IMPORT DATABASE '/tmp/x'
CREATE TABLE x AS SELECT * FROM read_text('/etc/passwd')
CREATE TEMP TABLE x (a INT)
CREATE VIEW v AS SELECT 1
CREATE MACRO m() AS TABLE SELECT * FROM read_text('/etc/passwd')
CREATE SEQUENCE s
CREATE TYPE t AS ENUM ('a')
CREATE INDEX i ON g (a)
CREATE SECRET s (TYPE s3)
CREATE FUNCTION f() AS 1
VACUUM
CHECKPOINT
FORCE CHECKPOINT
BEGIN
SELECT 1 INTO x
