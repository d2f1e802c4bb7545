package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varvedb/varve/query/querytest"
)

// FuzzPruning compares WHERE, which scans are filtered by, with the same
// condition in FILTER, which no scan sees, for the random conditions of a seed.
func FuzzPruning(f *testing.F) {
	f.Add(uint64(2))
	f.Add(uint64(3))
	e := newEngine(f, Options{})
	f.Fuzz(func(t *testing.T, seed uint64) { checkPruning(t, e, seed) })
}

func checkPruning(t *testing.T, e *Engine, seed uint64) {
	db := &querytest.DB{Partitions: 2}
	r := rand.New(rand.NewPCG(1, seed))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	b.WriteString("host:String:tag ts:TimestampMillisecond:time n:Int64 v:Float64 other:TimestampNanosecond small:UInt8\n")
	for i := range 200 {
		fmt.Fprintf(&b, "%s %d %s %s %s %s\n", pick("a", "B", "''", "null", "10", "9.4"), 1767225600000+i%50*500,
			pick("null", "0", "5", "-5", "9007199254740992", "9007199254740993"), pick("null", "NaN", "+Inf", "-Inf", "0", "-0", "0.1", "5"),
			pick("null", "1767225600000000000", "1767225600000000001"), pick("null", "0", "5", "255"))
	}
	db.Add(querytest.Parse("public", "t", b.String()))
	constants := map[string][]string{
		"host":  {"'a'", "'B'", "''", "'9.4'", "NULL"},
		"n":     {"5", "-5", "0", "5.5", "1e300", "9007199254740993", "'5'", "NULL", "99999999999999999999"},
		"v":     {"0", "-0.0", "0.1", "1e-1", "5", "'NaN'", "'inf'", "NULL", "0.00000000000000000000000001"},
		"small": {"5", "-1", "256", "5.0", "'5'", "NULL"},
		"ts": {"'2026-01-01'", "'2026-01-01T08:00:05+08:00'", "'2026-01-01 00:00:01.0005'", "'9999-12-31'", "1767225601000",
			"now()", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:02'", "now() - INTERVAL '12 hours'"},
		"other": {"'2026-01-01'", "'2026-01-01T00:00:00.000000001Z'", "'9999-12-31'", "'0001-01-01'", "1767225600000000000"},
	}
	var condition func(depth int) string
	condition = func(depth int) string {
		if depth > 0 && r.IntN(3) > 0 {
			op := pick(" AND ", " AND ", " OR ")
			return pick("", "", "NOT ") + "(" + condition(depth-1) + op + condition(depth-1) + ")"
		}
		col := pick("host", "n", "v", "small", "ts", "other")
		c := func() string { return pick(constants[col]...) }
		op := pick("=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM")
		switch r.IntN(6) {
		case 0:
			return col + pick(" BETWEEN ", " NOT BETWEEN ") + c() + " AND " + c()
		case 1:
			return col + pick(" IN ", " NOT IN ") + "(" + c() + ", " + c() + ")"
		case 2:
			return col + pick(" IS NULL", " IS NOT NULL")
		case 3:
			return c() + " " + op + " " + col
		}
		return col + " " + op + " " + c()
	}
	failed := 0
	for i := range 200 {
		where := condition(2)
		req := Request{Database: "public", Now: testNow, Tables: db, Reader: db}
		req.SQL = "SELECT count(*), sum(hash(t)) FROM t WHERE " + where
		got, err := read(e, req)
		req.SQL = "SELECT count(*) FILTER (WHERE " + where + "), sum(hash(t)) FILTER (WHERE " + where + ") FROM t"
		want, wantErr := read(e, req)
		if err != nil || wantErr != nil { // in WHERE, AND may spare a row the operand that fails
			failed++
			continue
		}
		if rowsOf(got) != rowsOf(want) {
			t.Errorf("%d: %s\n got %s\nwant %s", i, where, rowsOf(got), rowsOf(want))
		}
	}
	if failed > 100 {
		t.Errorf("%d of 200 conditions are errors", failed)
	}
}
