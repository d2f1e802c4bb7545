package query

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/table"
)

// push hands the scans of a SELECT what its WHERE says of their rows alone. The
// conditions stay in the statement as well. It runs before the conditions are
// rewritten.
func (r *rewriter) push(n node, sc *scope) {
	exact := true
	for _, c := range conjuncts(n["where_clause"]) {
		exact = r.pushOne(c, sc) && exact
	}
	if exact {
		pushOrder(n, sc)
	}
}

// conjuncts takes a condition apart at its ANDs.
func conjuncts(v any) []node {
	n, _ := v.(node)
	if n == nil {
		return nil
	}
	if text(n, "type") != "CONJUNCTION_AND" {
		return []node{n}
	}
	var all []node
	for _, c := range list(n, "children") {
		all = append(all, conjuncts(c)...)
	}
	return all
}

// pushOne hands one condition to the scan it speaks of. It reports whether the
// scan will return no row that fails it.
func (r *rewriter) pushOne(n node, sc *scope) (exact bool) {
	switch class(n) {
	case "COMPARISON":
		if x, op, v, _, ok := r.timeComparison(n, sc); ok {
			return pushTime(sc, x, op, v)
		}
		op, ok := compares[text(n, "type")]
		left, right := child(n, "left"), child(n, "right")
		if class(left) == "CONSTANT" {
			left, right, op = right, left, flip(op)
		}
		return ok && pushValues(sc, left, op, right)
	case "BETWEEN":
		return r.pushBetween(n, sc)
	case "OPERATOR":
		return r.pushOperator(n, sc)
	}
	return false
}

func (r *rewriter) pushBetween(n node, sc *scope) bool {
	x, low, high := child(n, "input"), child(n, "lower"), child(n, "upper")
	if typ := sc.typeOf(x); typ != table.InvalidType {
		from, ok := r.timeValue(low, typ, sc)
		to, also := r.timeValue(high, typ, sc)
		first := ok && pushTime(sc, x, table.GreaterEqual, from)
		return also && pushTime(sc, x, table.LessEqual, to) && first
	}
	// The three meet in one type, which is the column's only if both bounds are.
	col, _ := target(sc, x)
	if col == nil || !sameTyped(col.Type, low) || !sameTyped(col.Type, high) {
		return false
	}
	first := pushValues(sc, x, table.GreaterEqual, low)
	return pushValues(sc, x, table.LessEqual, high) && first
}

// sameTyped reports whether DuckDB compares a column of a type with a constant
// in just that type.
func sameTyped(typ table.Type, n node) bool {
	_, ok := valueFor(typ, table.LessEqual, n)
	return ok
}

func (r *rewriter) pushOperator(n node, sc *scope) bool {
	args := list(n, "children")
	if len(args) == 0 {
		return false
	}
	x := args[0].(node)
	switch text(n, "type") {
	case "OPERATOR_IS_NULL":
		return pushValues(sc, x, table.IsNull)
	case "OPERATOR_IS_NOT_NULL":
		return pushValues(sc, x, table.IsNotNull)
	case "COMPARE_IN":
		typ := sc.typeOf(x)
		if typ == table.InvalidType {
			values := make([]node, len(args)-1)
			for i := range values {
				values[i] = args[i+1].(node)
			}
			return pushValues(sc, x, table.In, values...)
		}
		var all []table.Value
		for _, a := range args[1:] {
			v, ok := r.timeValue(a.(node), typ, sc)
			if !ok {
				return false
			}
			if v.exact {
				all = append(all, table.Value{Type: typ, Int: v.raw})
			}
		}
		return pushTimes(sc, x, all)
	}
	return false
}

// target returns the column and source that an expression is, if the source may
// be filtered here.
func target(sc *scope, x node) (*table.Column, *source) {
	if class(x) != "COLUMN_REF" {
		return nil, nil
	}
	f := sc.find(names(x, "column_names"))
	if f == nil || f.base == nil || f.rel == nil || !f.rel.pushable {
		return nil, nil
	}
	return f.base, f.rel.source
}

// pushTime narrows the scan of a timestamp column.
func pushTime(sc *scope, x node, op table.Compare, v timeValue) bool {
	col, src := target(sc, x)
	if col == nil {
		return false
	}
	op, verdict := settle(op, v)
	if col.Role != table.Timestamp {
		if verdict == depends {
			src.spec.Predicates = append(src.spec.Predicates,
				table.Predicate{Column: col.ID, Op: op, Values: []table.Value{{Type: col.Type, Int: v.raw}}})
		}
		return false
	}
	switch {
	case verdict == always:
		return true
	case verdict == never:
		src.spec.Times = table.TimeRange{Min: 1, Max: 0}
		return true
	}
	within := table.AllTime
	switch op {
	case table.Equal:
		within = table.TimeRange{Min: v.raw, Max: v.raw}
	case table.Less:
		within.Max = v.raw - 1 // v.raw is never the smallest integer
	case table.LessEqual:
		within.Max = v.raw
	case table.Greater:
		within.Min = v.raw + 1
	case table.GreaterEqual:
		within.Min = v.raw
	default:
		return false
	}
	src.spec.Times = src.spec.Times.Intersect(within)
	return true
}

// pushTimes narrows the scan to the span of some times.
func pushTimes(sc *scope, x node, times []table.Value) bool {
	col, src := target(sc, x)
	if col == nil || col.Role != table.Timestamp {
		return false
	}
	span := table.TimeRange{Min: 1, Max: 0}
	for _, t := range times {
		span = span.Union(table.TimeRange{Min: t.Int, Max: t.Int})
	}
	src.spec.Times = src.spec.Times.Intersect(span)
	return len(times) == 1
}

// pushValues gives a scan a comparison with constants.
func pushValues(sc *scope, x node, op table.Compare, constants ...node) bool {
	col, src := target(sc, x)
	if col == nil || col.Role == table.Timestamp {
		return false
	}
	p := table.Predicate{Column: col.ID, Op: op}
	for _, c := range constants {
		v, ok := valueFor(col.Type, op, c)
		if !ok {
			return false
		}
		p.Values = append(p.Values, v)
	}
	src.spec.Predicates = append(src.spec.Predicates, p)
	return col.Role == table.Tag
}

// valueFor turns a constant into a value of a column's type if the scan would
// compare it exactly as DuckDB does.
func valueFor(typ table.Type, op table.Compare, n node) (table.Value, bool) {
	id, v, ok := constant(n)
	if !ok {
		return table.Value{}, false
	}
	num, isNumber := v.(json.Number)
	integer := id == "INTEGER" || id == "BIGINT"
	switch typ {
	case table.String:
		s, ok := v.(string)
		return table.Value{Type: typ, Bytes: s}, ok && id == "VARCHAR"
	case table.Int8, table.Int16, table.Int32, table.Int64, table.UInt8, table.UInt16, table.UInt32, table.UInt64:
		i, err := strconv.ParseInt(num.String(), 10, 64)
		return table.Value{Type: typ, Int: i}, isNumber && integer && err == nil && typ.Holds(i)
	case table.Float64:
		// For DuckDB NaN is the greatest number; the statistics of files do not
		// know of it. So nothing that NaN passes may prune.
		if op != table.Less && op != table.LessEqual && op != table.Equal && op != table.In {
			return table.Value{}, false
		}
		f, err := strconv.ParseFloat(num.String(), 64)
		if !isNumber || err != nil || f != f {
			return table.Value{}, false
		}
		switch {
		case id == "DOUBLE", integer && f == float64(int64(f)) && f < 1<<53 && f > -1<<53:
			return table.Value{Type: typ, Float: f}, true
		case id == "DECIMAL":
			return decimalFor(child(child(child(n, "value"), "type"), "type_info"), num)
		}
	}
	return table.Value{}, false
}

// decimalFor turns a decimal constant, given as its digits, into the double
// that DuckDB compares with.
func decimalFor(info node, digits json.Number) (table.Value, bool) {
	scale, err := strconv.Atoi(string(number(info["scale"])))
	raw := digits.String()
	// Beyond 22 digits behind the point a power of ten is no exact double.
	if err != nil || scale > 22 || len(strings.TrimLeft(raw, "-")) > 15 {
		return table.Value{}, false
	}
	f, err := strconv.ParseFloat(raw+"e-"+strconv.Itoa(scale), 64)
	return table.Value{Type: table.Float64, Float: f}, err == nil
}

func number(v any) json.Number { n, _ := v.(json.Number); return n }

// location returns where in the text a node begins.
func location(n node) (int, error) { return strconv.Atoi(string(number(n["query_location"]))) }

// pushOrder tells the scan of a plain SELECT … ORDER BY time LIMIT n, whose
// every condition the scan applies itself, that only n rows matter.
func pushOrder(n node, sc *scope) {
	if len(sc.relations) != 1 || !sc.relations[0].pushable || sc.relations[0].source == nil ||
		text(child(n, "from_table"), "type") != "TABLE_FUNCTION" {
		return
	}
	if len(list(n, "group_expressions")) > 0 || len(list(n, "group_sets")) > 0 || n["having"] != nil ||
		n["qualify"] != nil || n["sample"] != nil || text(n, "aggregate_handling") != "STANDARD_HANDLING" {
		return
	}
	for _, item := range list(n, "select_list") {
		if !rowWise(item) {
			return
		}
	}
	var order table.Order
	limit := int64(0)
	for _, m := range list(n, "modifiers") {
		m := m.(node)
		switch text(m, "type") {
		case "ORDER_MODIFIER":
			order = timeOrder(m, n, sc)
		case "LIMIT_MODIFIER":
			limit = limitOf(m)
		default:
			return
		}
	}
	if order != table.Unordered && limit > 0 {
		src := sc.relations[0].source
		src.spec.Order, src.spec.Limit = order, int(limit)
	}
}

// rowWise reports whether a select item plainly makes one value of each row:
// no call, which might aggregate or multiply rows, and no subquery.
func rowWise(v any) bool {
	switch n := v.(type) {
	case []any:
		for _, c := range n {
			if !rowWise(c) {
				return false
			}
		}
	case node:
		switch class(n) {
		case "FUNCTION":
			if n["is_operator"] != true {
				return false
			}
		case "WINDOW", "SUBQUERY":
			return false
		}
		for _, c := range n {
			if !rowWise(c) {
				return false
			}
		}
	}
	return true
}

// timeOrder returns the order of an ORDER BY of the time index alone. In ORDER
// BY an alias goes before a column.
func timeOrder(m, sel node, sc *scope) table.Order {
	orders := list(m, "orders")
	if len(orders) != 1 {
		return table.Unordered
	}
	o := orders[0].(node)
	x := child(o, "expression")
	if class(x) != "COLUMN_REF" {
		return table.Unordered
	}
	path := names(x, "column_names")
	for _, item := range list(sel, "select_list") {
		if item := item.(node); strings.EqualFold(text(item, "alias"), path[len(path)-1]) || renames(item) {
			return table.Unordered
		}
	}
	if col, _ := target(sc, x); col == nil || col.Role != table.Timestamp {
		return table.Unordered
	}
	if text(o, "type") == "DESCENDING" {
		return table.TimeDescending
	}
	return table.TimeAscending
}

// renames reports whether a select item may make columns of other names or
// contents than the table's: * REPLACE, * RENAME and COLUMNS(…), also inside of
// an expression.
func renames(item node) bool {
	if class(item) != "STAR" {
		return holdsStar(item)
	}
	for key, v := range item {
		l, isList := v.([]any)
		switch key {
		case "replace_list", "rename_list", "columns", "expr", "alias":
			if v != nil && v != false && v != "" && !(isList && len(l) == 0) {
				return true
			}
		}
	}
	return false
}

func holdsStar(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsStar)
	case node:
		for _, c := range v {
			if holdsStar(c) {
				return true
			}
		}
		return class(v) == "STAR"
	}
	return false
}

// limitOf returns the rows that LIMIT and OFFSET need, or 0 if that is not a
// small constant.
func limitOf(m node) int64 {
	limit, ok := foldInteger(child(m, "limit"))
	if !ok || limit <= 0 {
		return 0
	}
	if o := child(m, "offset"); o != nil {
		offset, ok := foldInteger(o)
		if !ok || offset < 0 {
			return 0
		}
		limit += offset
	}
	if limit > 1<<20 {
		return 0
	}
	return limit
}
