package query

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// compares are the comparisons that a time literal takes part in.
var compares = map[string]table.Compare{
	"COMPARE_EQUAL":                table.Equal,
	"COMPARE_NOTEQUAL":             table.NotEqual,
	"COMPARE_LESSTHAN":             table.Less,
	"COMPARE_LESSTHANOREQUALTO":    table.LessEqual,
	"COMPARE_GREATERTHAN":          table.Greater,
	"COMPARE_GREATERTHANOREQUALTO": table.GreaterEqual,
}

var compareNames = map[table.Compare]string{}

func init() {
	for name, op := range compares {
		compareNames[op] = name
	}
}

// flip is the operator with its sides exchanged.
func flip(op table.Compare) table.Compare {
	switch op {
	case table.Less:
		return table.Greater
	case table.LessEqual:
		return table.GreaterEqual
	case table.Greater:
		return table.Less
	case table.GreaterEqual:
		return table.LessEqual
	}
	return op
}

// A timeValue is a literal in the unit of the column it is compared with,
// rounded down; beyond is -1 or 1 if the unit cannot hold it.
type timeValue struct {
	raw    int64
	exact  bool
	beyond int
}

// timeValue reads what a timestamp of type typ is compared with: a string, an
// integer in the column's own unit, or a constant point in time.
func (r *rewriter) timeValue(n node, typ table.Type, sc *scope) (v timeValue, ok bool) {
	if s, ok := stringConstant(n); ok {
		t, ok := table.ParseTime(s, r.req.TimeZone)
		if !ok {
			r.fail(fault.Plan, "%q cannot be compared with a %s: write a time as YYYY-MM-DD[ HH:MM:SS[.fraction][Z|±HH:MM]]", s, typ)
			return v, false
		}
		return valueOf(t, typ), true
	}
	if id, num, ok := constant(n); ok && (id == "INTEGER" || id == "BIGINT" || id == "HUGEINT" || id == "UBIGINT") {
		return rawValue(num, typ), true
	}
	if t, ok := r.fold(n, sc); ok {
		return valueOf(t, typ), true
	}
	return v, false
}

func valueOf(t time.Time, typ table.Type) (v timeValue) {
	v.raw, v.exact, v.beyond = typ.FromTime(t)
	return v
}

// rawValue reads an integer in a type's own unit.
func rawValue(v any, typ table.Type) timeValue {
	num, ok := v.(json.Number)
	if !ok { // a HUGEINT
		return timeValue{beyond: 1}
	}
	raw, err := strconv.ParseInt(num.String(), 10, 64)
	low, high := typ.Range()
	switch {
	case raw < low || err != nil && strings.HasPrefix(num.String(), "-"):
		return timeValue{raw: math.MinInt64, beyond: -1}
	case raw > high || err != nil:
		return timeValue{raw: math.MaxInt64, beyond: 1}
	}
	return timeValue{raw: raw, exact: true}
}

// A verdict says whether a comparison depends on the row at all.
type verdict uint8

const (
	depends verdict = iota
	always          // true for every value but null
	never           // false for every value but null
)

// settle turns a comparison with a literal that the unit cannot hold exactly
// into one with a value that it can.
func settle(op table.Compare, v timeValue) (table.Compare, verdict) {
	if v.beyond == 0 && v.exact {
		return op, depends
	}
	switch op {
	case table.Equal:
		return op, never
	case table.NotEqual:
		return op, always
	case table.Less, table.LessEqual:
		switch v.beyond {
		case 1:
			return op, always
		case -1:
			return op, never
		}
		return table.LessEqual, depends
	default:
		switch v.beyond {
		case 1:
			return op, never
		case -1:
			return op, always
		}
		return table.Greater, depends
	}
}

// compareTime writes a comparison of a timestamp with a literal.
func compareTime(x any, op table.Compare, v timeValue, typ table.Type) node {
	op, verdict := settle(op, v)
	switch verdict {
	case always: // but not for null
		return newCompare("COMPARE_EQUAL", x, x)
	case never:
		return newCompare("COMPARE_NOTEQUAL", x, x)
	}
	return newCompare(compareNames[op], x, rawLiteral(v.raw, typ))
}

func rawLiteral(raw int64, typ table.Type) node {
	return newCast(newConstant("VARCHAR", timeText(typ.Time(raw))), duckType(typ))
}

// comparison rewrites a comparison of a timestamp with a literal.
func (r *rewriter) comparison(n node, sc *scope) node {
	x, op, v, typ, ok := r.timeComparison(n, sc)
	if !ok {
		r.distinct(n, sc)
		r.sameUnitRows([]any{n["left"], n["right"]}, sc)
		return nil
	}
	return compareTime(r.expr(x, sc), op, v, typ)
}

// timeComparison takes apart a comparison of a timestamp with a literal, which
// may stand on either side.
func (r *rewriter) timeComparison(n node, sc *scope) (x node, op table.Compare, v timeValue, typ table.Type, ok bool) {
	op, ok = compares[text(n, "type")]
	if !ok {
		return
	}
	x, other := child(n, "left"), child(n, "right")
	if _, isConst := r.fold(x, sc); isConst || sc.typeOf(x) == table.InvalidType {
		x, other, op = other, x, flip(op)
	}
	if _, isConst := r.fold(x, sc); isConst {
		return nil, 0, v, 0, false
	}
	if typ = sc.typeOf(x); typ == table.InvalidType {
		return nil, 0, v, 0, false
	}
	v, ok = r.timeValue(other, typ, sc)
	return x, op, v, typ, ok
}

// between rewrites x BETWEEN a AND b on timestamps into two comparisons.
func (r *rewriter) between(n node, sc *scope) node {
	x := child(n, "input")
	typ := sc.typeOf(x)
	if typ == table.InvalidType {
		return nil
	}
	low, ok := r.timeValue(child(n, "lower"), typ, sc)
	high, also := r.timeValue(child(n, "upper"), typ, sc)
	if !ok && !also {
		return nil
	}
	x = r.expr(x, sc)
	bound := func(op table.Compare, key string, v timeValue, known bool) node {
		if known {
			return compareTime(x, op, v, typ)
		}
		return newCompare(compareNames[op], x, r.expr(child(n, key), sc))
	}
	return newAnd(bound(table.GreaterEqual, "lower", low, ok), bound(table.LessEqual, "upper", high, also))
}

// operator rewrites x IN (…) and NOT IN on timestamps.
func (r *rewriter) operator(n node, sc *scope) node {
	typ := text(n, "type")
	args := list(n, "children")
	if typ == "OPERATOR_COALESCE" {
		r.sameUnit(args, sc)
		return nil
	}
	if (typ != "COMPARE_IN" && typ != "COMPARE_NOT_IN") || len(args) == 0 {
		return nil
	}
	unit := sc.typeOf(args[0].(node))
	if unit == table.InvalidType {
		r.sameUnitRows(args, sc)
		return nil
	}
	x := r.expr(args[0].(node), sc)
	kept := []any{x}
	for _, a := range args[1:] {
		v, ok := r.timeValue(a.(node), unit, sc)
		switch {
		case !ok:
			kept = append(kept, r.expr(a.(node), sc))
		case v.exact:
			kept = append(kept, rawLiteral(v.raw, unit))
		}
	}
	if len(kept) == 1 {
		if typ == "COMPARE_IN" {
			return newCompare("COMPARE_NOTEQUAL", x, x)
		}
		return newCompare("COMPARE_EQUAL", x, x)
	}
	in := expression("OPERATOR", typ)
	in["children"] = kept
	return in
}
