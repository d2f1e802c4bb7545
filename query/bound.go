package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/fault"
)

// Some functions of DuckDB's make values far larger than their arguments, or
// work on them for minutes. What they allocate is not in its memory limit, and
// no interrupt reaches them. A call of one becomes
//
//	list_transform([{a0: s, a1: n}], g -> CASE WHEN varve_fits(size, limit, 'repeat') THEN repeat(g.a0, g.a1) END)[1]
//
// which evaluates each argument once, and the size of what would come before
// it is made. The lambda keeps DuckDB from folding a call of constants first.
const (
	maxValue = 64 << 20 // bytes of one value; the values of a chunk may have four times as many
	maxSteps = 1e8      // of comparing two strings
	maxLike  = 1e9      // of matching a pattern with backtracking
	maxRegex = 8 << 20  // bytes that one call of a regular expression goes through

	// lambdaShare is the part of the limits that calls in the lambda of a list
	// function have: they may be made as often for one row.
	lambdaShare = 32
	maxLambda   = 1 << 20 // bytes of a list with such calls for each element
)

// A bound says how large a call gets, as factors that are multiplied.
type bound struct {
	memory []factor
	work   []factor
	steps  float64 // the limit of work
	fixed  []int   // arguments that DuckDB wants to be constant
}

// constants names the arguments that DuckDB wants to be constant, which no
// guard may hide.
func (b bound) constants(places ...int) bound {
	b.fixed = places
	return b
}

// A factor makes an expression from the arguments of a call; nil if they are
// too few, which DuckDB will say.
type factor func(args []node) node

// size is the sum of the bytes of the arguments with these places; of all, if
// none is named.
func size(places ...int) factor {
	return func(args []node) node {
		var sum node
		for i, a := range args {
			if len(places) > 0 && !slices.Contains(places, i) {
				continue
			}
			if s := newCall("varve_size", a); sum == nil {
				sum = s
			} else {
				sum = operator("+", sum, s)
			}
		}
		return sum
	}
}

// value is a number among the arguments.
func value(i int) factor {
	return func(args []node) node {
		if i >= len(args) {
			return nil
		}
		return newCast(args[i], "DOUBLE")
	}
}

func times(n int) factor {
	return func([]node) node { return newCast(newConstant("INTEGER", n), "DOUBLE") }
}

// width is what a format, and what is put in it, fills.
func width(args []node) node {
	return operator("+", newCall("varve_width", args[0]), size()(args))
}

// likes are what matches LIKE and its kin.
var likes = set("~~ !~~ ~~* !~~* ~~~ like_escape ilike_escape not_like_escape not_ilike_escape")

func like(args []node) node { return newCall("varve_like", args[0], args[1]) }

// simpleLike reports whether LIKE with this pattern has no loops in loops:
// DuckDB looks for the parts between the wildcards one after the other, if
// they are literal, and needs no loop for a wildcard at the end.
func (r *rewriter) simpleLike(n node, name string) bool {
	args := list(n, "children")
	if len(args) < 2 {
		return true
	}
	p, ok := stringConstant(args[1].(node))
	if !ok {
		return false
	}
	if (name == "~~*" || name == "!~~*") && !strings.Contains(p, "_") {
		for i := range args { // what ILIKE does, before it looks for parts
			args[i] = newCall("lower", args[i])
		}
		n["function_name"] = strings.TrimSuffix(name, "*")
		r.changes++
		return true
	}
	if (name == "~~" || name == "!~~") && !strings.Contains(p, "_") {
		return true
	}
	return len(strings.FieldsFunc(p, func(c rune) bool { return c != '%' && c != '*' })) < 2
}

// depth is how deep the JSON of all arguments is nested.
func depth(args []node) node {
	var sum node
	for _, a := range args {
		d := newCall("varve_depth", newCast(a, "VARCHAR"))
		if sum != nil {
			d = operator("+", sum, d)
		}
		sum = d
	}
	return sum
}

// steps is the length of a range.
func steps(args []node) node {
	from, to, step := newConstant("BIGINT", 0), args[0], newConstant("BIGINT", 1)
	if len(args) > 1 {
		from, to = args[0], args[1]
	}
	if len(args) > 2 {
		step = args[2]
	}
	return newCall("varve_steps", from, to, step)
}

func memory(f ...factor) bound { return bound{memory: f} }

func work(limit float64, f ...factor) bound { return bound{work: f, steps: limit} }

// regex makes so many bytes for each one it goes through, at most.
func regex(each factor) bound {
	return bound{memory: []factor{size(0), each}, work: []factor{size(0)}, steps: maxRegex}
}

// bounds are the functions that are bounded. TestFunctions wants a decision on
// each: here, in functions_safe.txt, or among the denied.
var bounds = boundSet(map[string]bound{
	"repeat":                          memory(size(0), value(1)),
	"lpad rpad":                       memory(value(1), times(4)),
	"list_resize array_resize":        memory(value(1), times(64)),
	"range generate_series":           memory(steps, times(16)),
	"equi_width_bins":                 memory(value(2), times(64)),
	"bitstring":                       memory(value(1)),
	"printf format":                   memory(width),
	"strftime":                        memory(size(), times(32)),
	"replace":                         memory(size(0), size(2)),
	"array_to_string list_string_agg": memory(size(0), size(1)).constants(1),
	"list_aggregate array_aggregate aggregate": memory(size(0), size()).constants(1, 2),
	"list_aggr array_aggr":                     memory(size(0), size()).constants(1, 2),
	"|| concat concat_ws":                      memory(size()),
	"list_concat list_cat array_concat":        memory(size()),
	"array_cat map_concat":                     memory(size()),
	"hex to_hex base64 to_base64":              memory(size(), times(2)),
	"translate":                                memory(size(0), times(4)),
	"url_encode":                               memory(size(), times(3)),
	"bin to_binary":                            memory(size(), times(8)),
	"regexp_escape":                            memory(size(), times(2)),
	"json_quote to_json array_to_json":         memory(size(), times(6)),
	"row_to_json json_array json_object":       memory(size(), times(6)),
	"string_split split str_split":             memory(size(0), times(24)),
	"string_to_array":                          memory(size(0), times(24)),
	"damerau_levenshtein":                      memory(size(0), size(1), times(8)),

	"levenshtein editdist3":                   work(maxSteps, size(0), size(1)),
	"jaro_similarity jaro_winkler_similarity": work(maxSteps, size(0), size(1)),
	"jaccard":                                     work(maxSteps, size(0), size(1)),
	"~~ !~~ ~~* !~~* ~~~":                         work(maxLike, like),
	"like_escape ilike_escape":                    work(maxLike, like),
	"not_like_escape not_ilike_escape":            work(maxLike, like),
	"json_merge_patch json_contains":              work(maxJSONDepth, depth),
	"regexp_replace":                              {memory: []factor{size(0), size(2)}, work: []factor{size(0)}, steps: maxRegex},
	"regexp_extract_all":                          regex(times(24)).constants(2, 3),
	"string_split_regex str_split_regex":          regex(times(24)).constants(2, 3),
	"regexp_split_to_array regexp_split_to_table": regex(times(24)).constants(2, 3),
})

func boundSet(m map[string]bound) map[string]bound {
	s := map[string]bound{}
	for names, b := range m {
		for _, name := range strings.Fields(names) {
			s[name] = b
		}
	}
	return s
}

// lambdas are the functions that call a lambda for each element of a list.
var lambdas = set(`list_transform list_apply array_transform array_apply apply
	list_filter array_filter filter list_reduce array_reduce reduce`)

func operator(name string, left, right node) node {
	n := newCall(name, left, right)
	n["is_operator"] = true
	return n
}

// bounded puts the guard around a call, whose arguments it rewrites.
func (r *rewriter) bounded(n node, name string, b bound, sc *scope) node {
	args := list(n, "children")
	if name == "||" {
		if args = chain(n); r.depth+len(args)-1 > maxDepth {
			r.fail(fault.TooLarge, "expressions are nested deeper than %d", maxDepth)
			return n
		}
	}
	if len(args) == 0 {
		return nil
	}
	if len(list(child(n, "order_bys"), "orders")) > 0 || n["filter"] != nil || n["distinct"] == true {
		return nil // only an aggregate, which none of these is
	}
	r.guards++
	limits := r.limits
	var fields []any
	inner := make([]node, len(args))
	kept := slices.IndexFunc(args, func(a any) bool { return class(a.(node)) != "CONSTANT" })
	if kept < 0 {
		kept = slices.IndexFunc(args, func(a any) bool { _, _, ok := constant(a.(node)); return ok })
	}
	if kept < 0 {
		return nil // nulls
	}
	for i, a := range args {
		a := a.(node)
		if class(a) == "STAR" {
			r.fail(fault.Unsupported, "* and COLUMNS are not supported as arguments of %s", name)
			return n
		}
		if (class(a) == "CONSTANT" && i != kept) || slices.Contains(b.fixed, i) {
			inner[i] = r.expr(a, sc)
			continue
		}
		alias := text(a, "alias")
		field := r.expr(a, sc)
		key := fmt.Sprintf("a%d", i)
		inner[i] = expression("COLUMN_REF", "COLUMN_REF")
		inner[i]["column_names"], inner[i]["alias"] = []any{guardParam, key}, alias
		field["alias"] = key
		fields = append(fields, field)
	}
	call := newCall(name, anys(inner)...)
	if name == "||" {
		call = inner[0]
		for _, a := range inner[1:] {
			call = operator("||", call, a)
		}
	}
	return guard(fields, b.conditions(name, inner, limits), call)
}

func anys(nodes []node) []any {
	out := make([]any, len(nodes))
	for i, n := range nodes {
		out[i] = n
	}
	return out
}

// chain returns the operands of a || b || c, which share one guard: nested
// ones would go deep.
func chain(n node) []any {
	args, ok := isCall(n, "||")
	if !ok || len(args) != 2 || text(n, "schema") != "" {
		return []any{n}
	}
	return append(chain(args[0].(node)), args[1])
}

// conditions are the checks before a call. share divides the limits.
func (b bound) conditions(name string, args []node, share float64) []any {
	var out []any
	add := func(check string, factors []factor, limit float64) {
		var product node
		for _, f := range factors {
			switch e := f(args); {
			case e == nil:
				return
			case product == nil:
				product = e
			default:
				product = operator("*", product, e)
			}
		}
		if product != nil {
			out = append(out, newCall(check, product, newCast(newConstant("BIGINT", int64(limit/share)), "DOUBLE"), newConstant("VARCHAR", name)))
		}
	}
	add("varve_fits", b.memory, maxValue)
	add("varve_works", b.work, b.steps)
	return out
}

// guardParam is the parameter of the lambdas of guards. They are never nested,
// and equal calls have equal guards, as GROUP BY needs.
const guardParam = "g" + marker

// guard is list_transform([{fields}], g -> CASE WHEN conditions THEN call END)[1].
func guard(fields, conditions []any, call node) node {
	if len(conditions) == 0 {
		conditions = []any{newConstant("BOOLEAN", true)}
	}
	when := conditions[0].(node)
	if len(conditions) > 1 {
		when = newAnd(conditions...)
	}
	null := expression("CONSTANT", "VALUE_CONSTANT")
	null["value"] = node{"type": node{"id": "NULL", "type_info": nil}, "is_null": true}
	cases := expression("CASE", "CASE_EXPR")
	cases["case_checks"] = []any{node{"when_expr": when, "then_expr": call}}
	cases["else_expr"] = null
	lambda := expression("LAMBDA", "LAMBDA")
	lhs := expression("COLUMN_REF", "COLUMN_REF")
	lhs["column_names"] = []any{guardParam}
	lambda["lhs"], lambda["expr"] = lhs, cases
	first := expression("OPERATOR", "ARRAY_EXTRACT")
	list := newCall("list_value", newCall("struct_pack", fields...))
	first["children"] = []any{newCall("list_transform", list, lambda), newConstant("INTEGER", 1)}
	return first
}

// refusedType finds the whole numbers of any length, whose conversions take
// time that grows with the square of it.
func refusedType(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.EqualFold(v, "BIGNUM") || strings.EqualFold(v, "VARINT")
	case []any:
		return slices.ContainsFunc(v, refusedType)
	case node:
		for k, c := range v {
			if k != "alias" && refusedType(c) {
				return true
			}
		}
	}
	return false
}
