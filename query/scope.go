package query

import (
	"strings"

	"github.com/varvedb/varve/table"
)

// A column is a column that an expression may name: its type, where that is
// known, and where it is read from a table.
type column struct {
	name string
	typ  table.Type    // InvalidType: not known, and no timestamp to care for
	base *table.Column // nil: computed
}

// A relation is one item of a FROM clause.
type relation struct {
	database string // of a table
	name     string // its alias
	columns  []column
	source   *source // of a table; nil for the rest
	pushable bool    // WHERE may filter it before the joins
}

// lookup returns the column that a name means: the one of exactly that name,
// else the first that differs just in case.
func (r *relation) lookup(name string) *column {
	var found *column
	for i := range r.columns {
		c := &r.columns[i]
		if c.name == name {
			return c
		}
		if found == nil && strings.EqualFold(c.name, name) {
			found = c
		}
	}
	return found
}

// A scope is what the expressions of one SELECT can name.
type scope struct {
	rewriter  *rewriter
	outer     *scope // of the statement around a subquery
	ctes      *cte
	relations []*relation
	aliases   map[string]table.Type // of the select list, by lower-case name
}

// A cte is a list of the WITH queries in reach, innermost first. Each has a name
// of its own inside, so that no name in the statement can reach DuckDB's
// catalog.
type cte struct {
	next     *cte
	name     string
	internal string
	columns  []column
}

func (c *cte) find(name string) *cte {
	for ; c != nil; c = c.next {
		if strings.EqualFold(c.name, name) {
			return c
		}
	}
	return nil
}

// A found column, and the relation it belongs to if there is exactly one in the
// innermost scope.
type found struct {
	*column
	rel *relation
}

// find resolves a column reference; nil if it is not a column known here.
func (s *scope) find(path []string) *found {
	for at := s; at != nil; at = at.outer {
		f := at.findHere(path)
		if f == nil {
			continue
		}
		if at != s {
			f.rel = nil
		}
		return f
	}
	return nil
}

func (s *scope) findHere(path []string) *found {
	if len(path) > 1 {
		rel := s.relation(path)
		if rel == nil {
			return nil
		}
		if c := rel.lookup(path[len(path)-1]); c != nil {
			return &found{c, rel}
		}
		return nil
	}
	var f *found
	for _, rel := range s.relations {
		c := rel.lookup(path[0])
		switch {
		case c == nil:
		case f == nil:
			f = &found{c, rel}
		case f.typ != c.typ:
			return nil
		default:
			f.rel = nil // several, as after JOIN … USING
		}
	}
	if f == nil {
		if typ, ok := s.aliases[strings.ToLower(path[0])]; ok {
			f = &found{&column{name: path[0], typ: typ}, nil}
		}
	}
	return f
}

// relation returns the relation that qualifies a column: alias.column or
// database.table.column.
func (s *scope) relation(path []string) *relation {
	for _, rel := range s.relations {
		switch {
		case len(path) == 2 && strings.EqualFold(rel.name, path[0]):
			return rel
		case len(path) == 3 && strings.EqualFold(rel.name, path[1]) && strings.EqualFold(rel.database, path[0]):
			return rel
		}
	}
	return nil
}

// sameType are the functions whose result has the type of their first argument.
var sameType = map[string]bool{
	"min": true, "max": true, "first": true, "last": true, "any_value": true, "arbitrary": true,
	"arg_min": true, "arg_max": true, "min_by": true, "max_by": true, "mode": true,
	"lag": true, "lead": true, "first_value": true, "last_value": true, "nth_value": true,
}

// typeOf returns the timestamp type of an expression, or InvalidType if it has
// another type or one that is not known.
func (s *scope) typeOf(n node) table.Type {
	t := table.InvalidType
	switch class(n) {
	case "COLUMN_REF":
		if f := s.find(names(n, "column_names")); f != nil {
			t = f.typ
		}
	case "CAST":
		if id := text(child(n, "cast_type"), "id"); id != "TIMESTAMP WITH TIME ZONE" {
			t = castTypes[id]
		}
	case "FUNCTION", "WINDOW":
		t = s.typeOfCall(n)
	case "OPERATOR":
		if text(n, "type") == "OPERATOR_COALESCE" {
			t = s.typeOfAny(list(n, "children"))
		}
	case "CASE":
		t = s.typeOfAny(outcomes(n))
	case "SUBQUERY":
		if columns := s.rewriter.subquery(n, s); text(n, "subquery_type") == "SCALAR" && len(columns) == 1 {
			t = columns[0].typ
		}
	}
	if !t.IsTimestamp() {
		return table.InvalidType
	}
	return t
}

func (s *scope) typeOfCall(n node) table.Type {
	args := list(n, "children")
	name := strings.ToLower(text(n, "function_name"))
	switch {
	case len(args) == 0:
		return table.InvalidType
	case mixing[name]:
		return s.typeOfAny(args)
	case sameType[name]:
		return s.typeOf(args[0].(node))
	case len(args) < 2:
		return table.InvalidType
	case timeFunctions[name]:
		return s.typeOf(args[1].(node))
	case name == "+" || name == "-":
		if isInterval(args[1].(node)) {
			return s.typeOf(args[0].(node))
		}
		if name == "+" && isInterval(args[0].(node)) {
			return s.typeOf(args[1].(node))
		}
	}
	return table.InvalidType
}

// typeOfAny returns the first timestamp type among expressions that make one
// value.
func (s *scope) typeOfAny(values []any) table.Type {
	for _, v := range values {
		if n, ok := v.(node); ok {
			if t := s.typeOf(n); t != table.InvalidType {
				return t
			}
		}
	}
	return table.InvalidType
}

// timeFunctions are those that answer the type of their second argument.
var timeFunctions = map[string]bool{
	"date_trunc": true, "datetrunc": true, "date_bin": true, "time_bucket": true,
}

// isInterval reports whether an expression is plainly an interval.
func isInterval(n node) bool {
	if text(child(n, "cast_type"), "id") == "INTERVAL" {
		return true
	}
	args := list(n, "children")
	if class(n) != "FUNCTION" || len(args) == 0 {
		return false
	}
	name := strings.ToLower(text(n, "function_name"))
	if unit, ok := strings.CutPrefix(name, "to_"); ok {
		_, known := intervalUnits[strings.TrimSuffix(unit, "s")]
		return known || unit == "centuries" || unit == "decades" || unit == "millennia"
	}
	if name == "+" || name == "-" || name == "*" || name == "/" {
		first := isInterval(args[0].(node))
		if name == "*" && len(args) == 2 {
			return first || isInterval(args[1].(node))
		}
		return first && (len(args) == 1 || name == "/" || isInterval(args[1].(node)))
	}
	return false
}
