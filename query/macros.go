package query

// setup is run once per DuckDB instance. Each macro takes its arguments by
// expression, so it runs as fast as what it stands for.
var setup = []string{
	"SET GLOBAL TimeZone = 'UTC'",

	// Turned off behind the opening, so that the temporary directory stays open
	// to what is spilled; among the options of the opening it would be closed.
	"SET GLOBAL enable_external_access = false",

	// Bins begin at the epoch unless an origin is given.
	`CREATE MACRO date_bin
		(width, ts) AS time_bucket(CAST(width AS INTERVAL), CAST(ts AS TIMESTAMP), TIMESTAMP '1970-01-01'),
		(width, ts, origin) AS time_bucket(CAST(width AS INTERVAL), CAST(ts AS TIMESTAMP), CAST(origin AS TIMESTAMP))`,

	"CREATE MACRO approx_percentile_cont(x, p) AS approx_quantile(x, p)",

	"CREATE MACRO to_unixtime(x) AS CAST(floor(epoch(CAST(x AS TIMESTAMP))) AS BIGINT)",

	// Adding an interval goes through microseconds; what is finer is put back.
	`CREATE MACRO varve_add_ns(ts, span) AS make_timestamp_ns(
		epoch_ns(CAST(CAST(ts AS TIMESTAMP) + span AS TIMESTAMP_NS)) + epoch_ns(ts)
		- epoch_ns(CAST(CAST(ts AS TIMESTAMP) AS TIMESTAMP_NS)))`,

	// A bin of nanoseconds may begin before the first of them. That is null and
	// no error, which TRY_CAST would give too: one row may not fail a query.
	`CREATE MACRO varve_to_ns(ts) AS CASE
		WHEN ts >= TIMESTAMP '1677-09-21 00:12:43.145225' AND ts <= TIMESTAMP '2262-04-11 23:47:16.854775'
		THEN CAST(ts AS TIMESTAMP_NS) END`,

	`CREATE MACRO arrow_typeof(x) AS CASE typeof(x)
		WHEN 'BOOLEAN' THEN 'Boolean'
		WHEN 'TINYINT' THEN 'Int8' WHEN 'SMALLINT' THEN 'Int16' WHEN 'INTEGER' THEN 'Int32'
		WHEN 'BIGINT' THEN 'Int64' WHEN 'HUGEINT' THEN 'Int64'
		WHEN 'UTINYINT' THEN 'UInt8' WHEN 'USMALLINT' THEN 'UInt16' WHEN 'UINTEGER' THEN 'UInt32'
		WHEN 'UBIGINT' THEN 'UInt64'
		WHEN 'FLOAT' THEN 'Float32' WHEN 'DOUBLE' THEN 'Float64'
		WHEN 'VARCHAR' THEN 'Utf8' WHEN 'BLOB' THEN 'Binary' WHEN 'DATE' THEN 'Date32'
		WHEN 'TIMESTAMP_S' THEN 'Timestamp(Second, None)'
		WHEN 'TIMESTAMP_MS' THEN 'Timestamp(Millisecond, None)'
		WHEN 'TIMESTAMP' THEN 'Timestamp(Microsecond, None)'
		WHEN 'TIMESTAMP_NS' THEN 'Timestamp(Nanosecond, None)'
		WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'Timestamp(Microsecond, Some("+00:00"))'
		WHEN 'TIME' THEN 'Time64(Microsecond)'
		WHEN 'INTERVAL' THEN 'Interval(MonthDayNano)'
		WHEN '"NULL"' THEN 'Null'
		ELSE CASE WHEN starts_with(typeof(x), 'DECIMAL(')
			THEN 'Decimal128(' || replace(substr(typeof(x), 9), ',', ', ')
			ELSE typeof(x) END
		END`,
}
