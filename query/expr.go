package query

import (
	"maps"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// walk rewrites whatever hangs below a key of the tree.
func (r *rewriter) walk(v any, sc *scope) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = r.walk(v[i], sc)
		}
	case node:
		if class(v) != "" {
			return r.expr(v, sc)
		}
		typ := text(v, "type")
		switch {
		case strings.HasSuffix(typ, "_NODE"):
			r.query(v, sc.ctes, sc)
			return v
		case tableRefs[typ]:
			r.fail(fault.Unsupported, "a table is not supported here")
			return v
		}
		for k, c := range v {
			v[k] = r.walk(c, sc)
		}
	}
	return v
}

// tableRefs are the items of FROM clauses, which must not turn up elsewhere.
var tableRefs = map[string]bool{
	"BASE_TABLE": true, "SUBQUERY": true, "JOIN": true, "TABLE_FUNCTION": true, "EXPRESSION_LIST": true,
	"SHOW_REF": true, "COLUMN_DATA": true, "DELIM_GET": true, "PIVOT": true, "CTE": true,
	"BOUND_TABLE_REF": true, "EMPTY": true, "EMPTY_FROM": true,
}

// expr rewrites one expression, from the top down.
func (r *rewriter) expr(n node, sc *scope) node {
	if r.err != nil {
		return n
	}
	r.depth++
	defer func() { r.depth-- }()
	if r.expressions++; r.expressions > maxExpressions {
		r.fail(fault.TooLarge, "a statement may have %d expressions", maxExpressions)
		return n
	}
	if r.depth > maxDepth {
		r.fail(fault.TooLarge, "expressions are nested deeper than %d", maxDepth)
		return n
	}
	var replaced node
	switch class(n) {
	case "CONSTANT":
		return r.constant(n)
	case "COLUMN_REF":
		return r.columnRef(n, sc)
	case "SUBQUERY":
		r.subquery(n, sc)
		n["child"] = r.walk(n["child"], sc)
		return n
	case "FUNCTION", "WINDOW":
		replaced = r.call(n, sc)
	case "CAST":
		replaced = r.cast(n, sc)
	case "COMPARISON":
		replaced = r.comparison(n, sc)
	case "BETWEEN":
		replaced = r.between(n, sc)
	case "OPERATOR":
		replaced = r.operator(n, sc)
	case "CASE":
		r.mix(n, sc)
	case "CONJUNCTION", "STAR", "LAMBDA", "LAMBDA_REF", "COLLATE", "POSITIONAL_REFERENCE":
	case "PARAMETER":
		r.fail(fault.Plan, "parameters are not supported")
		return n
	default:
		r.fail(fault.Unsupported, "expression %s is not supported", strings.ToLower(text(n, "type")))
		return n
	}
	if replaced != nil {
		r.changes++
		return named(replaced, n)
	}
	for k, v := range n {
		n[k] = r.walk(v, sc)
	}
	return n
}

// constant mends what the round trip through the tree would lose: 1e3 would
// come back as a decimal and 5. as an integer, and the parser hands x'ab' on as
// the text xab.
func (r *rewriter) constant(n node) node {
	typ := child(child(n, "value"), "type")
	if info := child(typ, "type_info"); text(typ, "id") == "DECIMAL" && number(info["scale"]) == "0" {
		r.changes++
		c := newCast(newConstant("VARCHAR", string(number(child(n, "value")["value"]))), "DECIMAL")
		c["cast_type"] = typ
		return named(c, n)
	}
	if id, v, ok := constant(n); ok && (id == "DOUBLE" || id == "FLOAT") {
		r.changes++
		return named(newCast(newConstant("VARCHAR", string(number(v))), id), n)
	}
	s, ok := stringConstant(n)
	at, err := location(n)
	if !ok || err != nil || s == "" || at+1 >= len(r.req.SQL) || r.req.SQL[at+1] != '\'' {
		return n
	}
	if c := r.req.SQL[at]; (c == 'x' || c == 'X') && s[0] == c|0x20 {
		r.changes++
		return named(newCall("unhex", newConstant("VARCHAR", s[1:])), n)
	}
	return n
}

func (r *rewriter) columnRef(n node, sc *scope) node {
	path := names(n, "column_names")
	if t, ok := r.fold(n, sc); ok {
		r.changes++
		return named(r.freeTime(t, path[0]), n)
	}
	if len(path) == 1 && denied(strings.ToLower(path[0])) && sc.find(path) == nil {
		r.fail(fault.Plan, "column %s does not exist", path[0]) // DuckDB would call the function
		return n
	}
	if len(path) == 3 && sc.qualified(path) {
		n["column_names"] = []any{path[1], path[2]}
	}
	return n
}

// qualified reports whether path is database.table.column.
func (s *scope) qualified(path []string) bool {
	for ; s != nil; s = s.outer {
		if s.relation(path) != nil {
			return true
		}
	}
	return false
}

// freeTime is a point in time where no column says in which unit.
func (r *rewriter) freeTime(t time.Time, function string) node {
	switch strings.ToLower(function) {
	case "current_date", "today":
		return r.timeLiteral(t, "DATE")
	}
	return r.timeLiteral(t, "TIMESTAMP")
}

// timeLiteral writes a point in time as a literal of a type of DuckDB's.
func (r *rewriter) timeLiteral(t time.Time, typeID string) node {
	s := timeText(t)
	switch typeID {
	case "DATE":
		s = strings.Fields(timeText(t.In(r.req.TimeZone)))[0]
	case "TIMESTAMP WITH TIME ZONE":
		s += "+00"
	}
	return newCast(newConstant("VARCHAR", s), typeID)
}

func (r *rewriter) cast(n node, sc *scope) node {
	if refusedType(n["cast_type"]) {
		r.fail(fault.Unsupported, "type BIGNUM is not supported")
		return nil
	}
	id := text(child(n, "cast_type"), "id")
	if _, ok := castTypes[id]; !ok {
		return nil
	}
	if t, ok := r.foldCast(n, sc); ok {
		return r.timeLiteral(t, id)
	}
	return nil
}

// call checks that a function may be called and rewrites those on times.
func (r *rewriter) call(n node, sc *scope) node {
	name := strings.ToLower(text(n, "function_name"))
	if schema := text(n, "schema"); denied(name) || !functionSchemas[strings.ToLower(schema)] {
		r.fail(fault.Plan, "function %s does not exist", name)
		return nil
	}
	if class(n) == "WINDOW" {
		return nil
	}
	r.timeArgument(n, name)
	if mixing[name] {
		r.sameUnit(list(n, "children"), sc)
	}
	if t, ok := r.fold(n, sc); ok {
		return r.freeTime(t, name)
	}
	switch name {
	case "first_value":
		n["function_name"] = "first"
		r.changes++
	case "last_value":
		n["function_name"] = "last"
		r.changes++
	}
	if jsonStructures[name] && !r.flatStructure(n, name) {
		return nil
	}
	if b, ok := bounds[name]; ok && !(likes[name] && r.simpleLike(n, name)) {
		return r.bounded(n, name, b, sc)
	}
	if lambdas[name] {
		return r.lambda(n, sc)
	}
	typ := sc.typeOf(n)
	if typ == table.InvalidType || typ == table.TimestampMicrosecond {
		return nil
	}
	return r.timeCall(n, name, typ, sc)
}

// timeArguments says which argument of a function, if it is a string, is a time.
var timeArguments = map[string]int{"to_unixtime": 0, "date_trunc": 1, "datetrunc": 1, "date_bin": 2, "time_bucket": 2}

// timeArgument gives such a string the meaning that time literals have.
func (r *rewriter) timeArgument(n node, name string) {
	args := list(n, "children")
	i, ok := timeArguments[name]
	if !ok || i >= len(args) {
		return
	}
	s, ok := stringConstant(args[i].(node))
	if t, isTime := table.ParseTime(s, r.req.TimeZone); ok && isTime {
		r.changes++
		args[i] = r.timeLiteral(t, "TIMESTAMP")
	}
}

// timeCall keeps the unit of the argument where DuckDB would answer
// microseconds.
func (r *rewriter) timeCall(n node, name string, typ table.Type, sc *scope) node {
	args := list(n, "children")
	switch {
	case timeFunctions[name]:
		for i := range args {
			args[i] = r.walk(args[i], sc)
		}
		if typ == table.TimestampNanosecond {
			bin := maps.Clone(n)
			bin["alias"] = "" // DuckDB takes one for the name of a macro's argument
			return newCall("varve_to_ns", bin)
		}
		return newCast(n, duckType(typ))
	case name == "+" || name == "-":
		t, i := args[0].(node), args[1].(node)
		if sc.typeOf(t) == table.InvalidType {
			t, i = i, t
		}
		t, i = r.expr(t, sc), r.expr(i, sc)
		if name == "-" {
			i = newCall("-", i)
		}
		if typ == table.TimestampNanosecond {
			return newCall("varve_add_ns", t, i)
		}
		sum := newCall("+", t, i)
		sum["is_operator"] = true
		return newCast(sum, duckType(typ))
	}
	return nil
}

// duckType is DuckDB's name of a timestamp type.
func duckType(t table.Type) string {
	switch t {
	case table.TimestampSecond:
		return "TIMESTAMP_S"
	case table.TimestampMillisecond:
		return "TIMESTAMP_MS"
	case table.TimestampNanosecond:
		return "TIMESTAMP_NS"
	default:
		return "TIMESTAMP"
	}
}
