package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lambda rewrites the call of a function that calls a lambda for each element
// of a list. What the lambda catches from outside, or makes, is there once for
// each element.
func (r *rewriter) lambda(n node, sc *scope) node {
	args := list(n, "children")
	at := slices.IndexFunc(args, func(a any) bool { return class(a.(node)) == "LAMBDA" })
	if at < 1 {
		return nil
	}
	caught, literals := catches(args[at].(node))
	for i := range args[:at] {
		args[i] = r.expr(args[i].(node), sc)
	}
	before := r.guards
	r.limits *= lambdaShare
	args[at] = r.walk(args[at], sc)
	r.limits /= lambdaShare
	for i := at + 1; i < len(args); i++ {
		args[i] = r.expr(args[i].(node), sc)
	}
	column := func(key string) node {
		c := expression("COLUMN_REF", "COLUMN_REF")
		c["column_names"] = []any{guardParam, key}
		return c
	}
	made := memory(size(0), times(literals))
	fields := []any{copyNamed(args[0].(node), "a0")}
	for i, c := range caught {
		key := fmt.Sprintf("c%d", i)
		fields = append(fields, copyNamed(c, key))
		before := made.memory[1]
		made.memory[1] = func(args []node) node {
			return operator("+", before(args), newCall("varve_size", column(key)))
		}
	}
	name, limit := strings.ToLower(text(n, "function_name")), r.limits
	conditions := made.conditions(name, []node{column("a0")}, limit/16)
	if r.guards > before {
		conditions = append(conditions, memory(size(0)).conditions(name, []node{column("a0")}, limit*maxValue/maxLambda)...)
	}
	args[0] = column("a0")
	return guard(fields, conditions, n)
}

// copyNamed is an expression as a field of a guard.
func copyNamed(n node, alias string) node {
	c := maps.Clone(n)
	c["alias"] = alias
	return c
}

// catches returns the columns that a lambda takes from around it, and the bytes
// of its literals.
func catches(lambda node) (columns []node, literals int) {
	literals = 16
	params, seen := map[string]bool{}, map[string]bool{}
	var visit func(v any, parameters bool)
	visit = func(v any, parameters bool) {
		switch v := v.(type) {
		case []any:
			for _, c := range v {
				visit(c, parameters)
			}
		case node:
			switch class(v) {
			case "LAMBDA":
				visit(v["lhs"], true)
				visit(v["expr"], false)
				return
			case "CONSTANT":
				s, _ := stringConstant(v)
				literals += len(s)
				return
			case "COLUMN_REF":
				path := names(v, "column_names")
				first, key := strings.ToLower(path[0]), strings.ToLower(strings.Join(path, marker))
				if parameters {
					params[first] = true
				} else if !params[first] && !seen[key] {
					seen[key] = true
					columns = append(columns, v)
				}
				return
			}
			for _, c := range v {
				visit(c, parameters)
			}
		}
	}
	visit(lambda, false)
	return columns, literals
}
