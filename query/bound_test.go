package query

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/fault"
)

// tooMuch are expressions that would need gigabytes, or minutes in which
// nothing interrupts them. s has a million letters; l a million numbers.
var tooMuch = []string{
	"repeat('x', 3000000000)", "repeat(s, 1000)", "repeat([1], 1000000000)", "repeat('x'::BLOB, 3000000000)",
	"range(500000000)", "range(1, 500000000)", "range(500000000, 0, -1)", "generate_series(1, 500000000)",
	"range(TIMESTAMP '1970-01-01', TIMESTAMP '2026-01-01', INTERVAL '1 s')",
	"generate_series(TIMESTAMPTZ '1970-01-01', TIMESTAMPTZ '2026-01-01', INTERVAL '1 s')",
	"list_resize([1], 1000000000)", "array_resize([1], 1000000000, 7)", "lpad('x', 2000000000, 'y')", "rpad('x', 2000000000, 'y')",
	"printf('%1900000000d', 1)", "printf('%-*d', 1900000000, 1)", "format('{:>1900000000}', 'x')", "format('{:>{}}', 'x', 1900000000)",
	"bitstring('1', 2000000000)", "replace(s, 'a', repeat('b', 1000))", "translate(repeat(s, 60), 'a', 'é')",
	"string_split(repeat(s, 60), '')", "hex(hex(hex(hex(hex(hex(hex(s)))))))",
	"bin(repeat(s, 60))", "list_reduce(list_transform(range(40), x -> 'x'), (a, b) -> a || a)", "equi_width_bins(0, 10000000, 10000000, false)",
	"list_transform(l, x -> repeat('x', 100))", "list_transform(l, x -> s)", "list_transform(l, x -> range(100))",
	"array_to_string(l, '" + strings.Repeat("x", 1000) + "')", "list_aggregate(l, 'string_agg', '" + strings.Repeat("x", 1000) + "')",

	"s LIKE '%a_%a_%a%b'", "s ILIKE '%a_%a%a%b'", "s GLOB '*a*a*a*b'", "s LIKE '%a%a%a%b' ESCAPE 'x'", "s LIKE concat('%a%a%a%a%b', i)",
	"levenshtein(s, s)", "editdist3(s, s)", "damerau_levenshtein(left(s, 10000), left(s, 10000))", "jaro_similarity(s, s)",
	"jaro_winkler_similarity(s, s)", "jaccard(s, s)", "regexp_replace(repeat(s, 20), 'a', 'b', 'g')",
	"regexp_extract_all(repeat(s, 20), '.')", "regexp_split_to_array(repeat(s, 20), '.')", "string_split_regex(repeat(s, 20), '.')",
}

// TestBounds expects that they are refused soon, as constants, as values of
// rows, and inside of lambdas, and in no more memory.
func TestBounds(t *testing.T) {
	e := newEngine(t, Options{})
	before := residentBytes(t)
	for _, x := range tooMuch {
		rows := " FROM (SELECT i, repeat('a', 1000000) AS s FROM range(%) AS r(i)) AS t"
		if strings.Contains(x, "(l,") {
			rows = strings.ReplaceAll(rows, "AS s", "AS s, range(1000000) AS l")
		}
		for _, sql := range []string{
			"SELECT length(CAST(" + x + " AS VARCHAR))" + strings.ReplaceAll(rows, "%", "1"),
			"SELECT list_transform([s], y -> " + x + ")" + strings.ReplaceAll(rows, "%", "1"),
		} {
			begun := time.Now()
			_, err := read(e, Request{SQL: sql})
			if fault.KindOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "the limit is") {
				t.Errorf("%s: %v (kind %d)", sql, err, fault.KindOf(err))
			}
			if d := time.Since(begun); d > 10*time.Second {
				t.Errorf("%s took %s", sql, d)
			}
		}
	}
	if grown := residentBytes(t) - before; grown > 1<<30 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// TestBoundsChangeNothing compares calls under a guard with what DuckDB itself
// says of them.
func TestBoundsChangeNothing(t *testing.T) {
	e := newEngine(t, Options{})
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.release()
	for _, x := range []string{
		"repeat(s, i)", "repeat([i], 2)", "repeat('ab'::BLOB, i)", "repeat(NULL, 3)", "repeat(s, NULL)", "repeat('x', -1)",
		"range(i)", "range(i, 5)", "range(9, i, -2)", "generate_series(1, i)", "range(NULL)",
		"range(TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-03', INTERVAL '1 day')", "list_resize([i], 3)", "list_resize([i], 3, 7)",
		"lpad(s, 5, 'x')", "rpad(s, i::INT, 'xy')", "printf('%5d|%s', i, s)", "format('{:*^9}', s)", "format('{{}} {}', i)", "bitstring('101', 9)",
		"strftime(make_timestamp(i), '%Y')", "strftime('%Y', make_timestamp(i))", "replace(s, 'a', 'bb')", "replace(s, NULL, 'b')",
		"array_to_string([i, 2], ',')", "array_to_string([s, 'b'], chr(10))", "list_aggregate([i, 2], 'sum')", "list_aggregate([s, 'b'], 'string_agg', '-')",
		"s || i", "s || NULL || 'x'", "NULL || 'x'", "'a' || 'b' || s || s", "[i] || [2]", "concat(s, NULL, i)", "concat_ws(',', s, NULL, 'b')",
		"list_concat([i], NULL, [2])", "hex(s)", "hex(i)", "base64('ab'::BLOB)", "url_encode('a b')", "bin(i)", "translate(s, 'a', 'é')",
		"to_json({'a': i, 'b': s})", "json_object('a', i, 'b', s)", "json_array(i, s, NULL)", "row_to_json({'a': i})", "json_quote(s)",
		"string_split('a,b', ',')", "levenshtein(s, 'abd')", "damerau_levenshtein(s, 'ba')", "jaro_similarity(s, 'ab')", "jaccard(s || 'a', 'ab')",
		"regexp_replace(s, 'a', 'c', 'g')", "regexp_extract_all(s, '(a)(b)?', 1)", "regexp_split_to_array('a1b', '[0-9]')",
		"list_transform([i, 2], x -> x + i)", "list_transform([i, 2], (x, k) -> x * k)", "list_filter([i, 2], x -> x > 1)", "list_reduce([i, 2], (a, b) -> a + b)",
		"list_reduce(['a', s], (a, b) -> a || b)", "[y || s FOR y IN ['a', 'b'] IF y <> 'a']", "list_transform([[i]], x -> list_transform(x, y -> y + len(x)))",
		"list_transform(range(3), x -> repeat(s, x::INT))", "s LIKE '%a%b%'", "s NOT LIKE 'a%'", "s ILIKE '%A%B%'", "s NOT ILIKE 'A_%'", "s GLOB 'a*b'", "s LIKE 'a%' ESCAPE 'x'", "s LIKE s", "s ILIKE 'AB'", "map_concat(MAP {1: i}, MAP {2: i})", "equi_width_bins(0, 10, 2, true)",
	} {
		const from = " FROM (SELECT i, repeat('ab', i::INT) AS s FROM range(4) AS r(i)) AS t ORDER BY i"
		got, err := read(e, Request{SQL: "SELECT CAST((" + x + ") AS VARCHAR)" + from})
		want := ""
		for _, v := range firstColumn(t, c, "SELECT coalesce(CAST(to_json(CAST(("+x+") AS VARCHAR)) AS VARCHAR), 'null')"+from) {
			want += v + "\n"
		}
		if _, rows, _ := strings.Cut(got, "\n"); err != nil || rows != want {
			t.Errorf("%s: got %s, want %s, %v", x, rows, want, err)
		}
	}
}

// TestBoundsOfChunks expects that what is small for one row is not made for
// 2048 rows at once.
func TestBoundsOfChunks(t *testing.T) {
	e := newEngine(t, Options{})
	for _, x := range []string{"repeat('x', 30000000 + i::INT)", "range(1000000 + i)", "levenshtein(s, s || i)", "s || i"} {
		_, err := read(e, Request{SQL: "SELECT count(" + x + ") FROM (SELECT i, repeat('a', 9000 + (i % 2)) AS s FROM range(2048) AS r(i)) AS t, range(40)"})
		if x == "s || i" && err != nil {
			t.Errorf("%s: %v", x, err)
		}
		if x != "s || i" && (fault.KindOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "for a chunk of rows")) {
			t.Errorf("%s: %v", x, err)
		}
	}
}

// TestBoundsDoubling expects an end to strings that double, without and with
// recursion.
func TestBoundsDoubling(t *testing.T) {
	e := newEngine(t, Options{})
	sql := "SELECT 'abc' || i::VARCHAR AS s FROM range(1) AS r(i)"
	for range 40 {
		sql = "SELECT s || s AS s FROM (" + sql + ")"
	}
	recursive := "WITH RECURSIVE r(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM r) SELECT max(length(s)) FROM r"
	for _, sql := range []string{"SELECT length(s) FROM (" + sql + ")", recursive} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		r, err := e.Query(ctx, Request{SQL: sql})
		if err == nil {
			_, err = r.Next(ctx)
			r.Close()
		}
		cancel()
		if fault.KindOf(err) != fault.TooLarge {
			t.Errorf("%.60s: %v", sql, err)
		}
	}
}

// TestRefusedTypes expects that numbers of any length are refused wherever a
// type is named.
func TestRefusedTypes(t *testing.T) {
	e := newEngine(t, Options{})
	for _, x := range []string{"x::BIGNUM", "CAST(x AS VARINT)", "TRY_CAST([x] AS bignum[])", "bignum '5'", "{'a': x}::STRUCT(a BIGNUM)", "MAP {1: x}::MAP(INT, BIGNUM)"} {
		if _, err := read(e, Request{SQL: "SELECT " + x + " FROM (SELECT '1' AS x)"}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", x, err)
		}
	}
}

// BenchmarkBound is what the guard of || costs, against none.
func BenchmarkBound(b *testing.B) {
	e := newEngine(b, Options{Threads: 1})
	for name, x := range map[string]string{"guarded": "i::VARCHAR || '-'", "plain": "i::VARCHAR"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(e, Request{SQL: "SELECT max(" + x + ") FROM range(1000000) AS r(i)"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
