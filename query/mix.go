package query

import (
	"reflect"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// mixing are the functions whose value is one of their arguments. Operators and
// CASE that do the same are told by their node.
var mixing = set("greatest least nullif ifnull coalesce if")

// outcomes returns the expressions of which a CASE has one as its value.
func outcomes(n node) []any {
	var all []any
	for _, c := range list(n, "case_checks") {
		all = append(all, c.(node)["then_expr"])
	}
	return append(all, n["else_expr"])
}

// mix gives the time literals among the outcomes of a CASE the unit of the
// others.
func (r *rewriter) mix(n node, sc *scope) {
	values := outcomes(n)
	r.sameUnit(values, sc)
	for i, c := range list(n, "case_checks") {
		c.(node)["then_expr"] = values[i]
	}
	n["else_expr"] = values[len(values)-1]
}

// sameUnit replaces the strings among values that are times, if one of the
// others is a timestamp: DuckDB would drop their offsets.
func (r *rewriter) sameUnit(values []any, sc *scope) {
	for i, v := range values {
		n, _ := v.(node)
		s, ok := stringConstant(n)
		if !ok {
			continue
		}
		t, ok := table.ParseTime(s, r.req.TimeZone)
		if !ok {
			continue
		}
		if typ := sc.typeOfAny(values); typ.IsTimestamp() {
			r.changes++
			values[i] = named(r.timeLiteral(t, duckType(typ)), n)
		}
	}
}

// sameUnitRows does that for rows such as (host, ts) = ('a', '2026-01-01'),
// column by column.
func (r *rewriter) sameUnitRows(rows []any, sc *scope) {
	var columns [][]any
	for _, v := range rows {
		n, _ := v.(node)
		if args, ok := isCall(n, "row"); ok {
			columns = append(columns, args)
		}
	}
	for i := range columns {
		for k := range columns[0] {
			if i > 0 && k < len(columns[i]) {
				pair := []any{columns[0][k], columns[i][k]}
				r.sameUnit(pair, sc)
				columns[0][k], columns[i][k] = pair[0], pair[1]
			}
		}
	}
}

// distinct gives the literal of IS [NOT] DISTINCT FROM the unit of the
// timestamp on the other side.
func (r *rewriter) distinct(n node, sc *scope) {
	if typ := text(n, "type"); typ != "COMPARE_DISTINCT_FROM" && typ != "COMPARE_NOT_DISTINCT_FROM" {
		return
	}
	pair := []any{n["left"], n["right"]}
	r.sameUnit(pair, sc)
	n["left"], n["right"] = pair[0], pair[1]
}

// subquery rewrites a query in an expression, once, and returns its columns.
func (r *rewriter) subquery(n node, sc *scope) []column {
	key := reflect.ValueOf(n).Pointer()
	if columns, ok := r.done[key]; ok {
		return columns
	}
	r.subqueries++
	defer func() { r.subqueries-- }()
	if r.subqueries > maxSubqueries {
		r.fail(fault.TooLarge, "queries in expressions are nested deeper than %d", maxSubqueries)
		return nil
	}
	columns := r.query(child(child(n, "subquery"), "node"), sc.ctes, sc)
	if r.done == nil {
		r.done = map[uintptr][]column{}
	}
	r.done[key] = columns
	return columns
}
