package query

import (
	"strings"

	"github.com/varvedb/varve/fault"
)

// maxJSONDepth bounds the JSON that DuckDB goes through by recursion, on a
// stack that deep JSON overflows, or in time that grows with the square of the
// depth.
const maxJSONDepth = 1000

// jsonStructures are the functions whose second argument is a structure.
var jsonStructures = set("from_json from_json_strict json_transform json_transform_strict")

// flatStructure reports whether the structure that is given to a function is
// not deep, which can be seen of literals only.
func (r *rewriter) flatStructure(n node, name string) bool {
	args := list(n, "children")
	if len(args) != 2 {
		return true // DuckDB says so
	}
	s, ok := stringConstant(args[1].(node))
	switch {
	case !ok:
		r.fail(fault.Unsupported, "the structure that %s is given must be a literal", name)
	case strings.Count(s, "[")+strings.Count(s, "{") > maxDepth:
		r.fail(fault.TooLarge, "the structure that %s is given is nested deeper than %d", name, maxDepth)
	}
	return r.err == nil
}

// flatJSON puts a guard around the argument of json_tree and json_each.
func (r *rewriter) flatJSON(arg node, name string) node {
	if s, ok := stringConstant(arg); ok {
		if strings.Count(s, "[")+strings.Count(s, "{") > maxJSONDepth {
			r.fail(fault.TooLarge, "the argument of %s has more than %d lists and objects", name, maxJSONDepth)
		}
		return arg
	}
	column := expression("COLUMN_REF", "COLUMN_REF")
	column["column_names"] = []any{guardParam, "a0"}
	deep := bound{work: []factor{depth}, steps: maxJSONDepth}
	return guard([]any{copyNamed(arg, "a0")}, deep.conditions(name, []node{column}, 1), column)
}
