package query

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A node is one object of the tree that DuckDB's parser serialises. Which keys
// it has depends on its "class" (expressions) or "type" (the rest). The tree is
// walked by key and not by Go types, so that a node of a kind that is not known
// here is refused and never overlooked.
type node = map[string]any

// noLocation is the query_location of what was not in the text.
const noLocation = json.Number("18446744073709551615")

// parseTree reads the tree of one statement.
func parseTree(text string) (node, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var n node
	err := d.Decode(&n)
	return n, err
}

func text(n node, key string) string {
	s, _ := n[key].(string)
	return s
}

func child(n node, key string) node {
	c, _ := n[key].(node)
	return c
}

func list(n node, key string) []any {
	l, _ := n[key].([]any)
	return l
}

// names returns a list of strings.
func names(n node, key string) []string {
	var s []string
	for _, v := range list(n, key) {
		t, _ := v.(string)
		s = append(s, t)
	}
	return s
}

func class(n node) string { return text(n, "class") }

// isCall reports whether n calls one of the functions and returns its
// arguments.
func isCall(n node, names ...string) ([]any, bool) {
	if class(n) != "FUNCTION" {
		return nil, false
	}
	name := strings.ToLower(text(n, "function_name"))
	for _, want := range names {
		if name == want {
			return list(n, "children"), true
		}
	}
	return nil, false
}

// constant returns the type and value of a constant that is not null.
func constant(n node) (typeID string, value any, ok bool) {
	v := child(n, "value")
	if class(n) != "CONSTANT" || v == nil || v["is_null"] == true {
		return "", nil, false
	}
	return text(child(v, "type"), "id"), v["value"], true
}

// stringConstant returns the value of a string literal.
func stringConstant(n node) (string, bool) {
	id, v, ok := constant(n)
	if !ok || id != "VARCHAR" {
		return "", false
	}
	s, ok := v.(string)
	return s, ok
}

func expression(class, typ string) node {
	return node{"class": class, "type": typ, "alias": "", "query_location": noLocation}
}

func newConstant(typeID string, value any) node {
	n := expression("CONSTANT", "VALUE_CONSTANT")
	n["value"] = node{"type": node{"id": typeID, "type_info": nil}, "is_null": false, "value": value}
	return n
}

func newCast(n node, typeID string) node {
	c := expression("CAST", "OPERATOR_CAST")
	c["child"], c["try_cast"] = n, false
	c["cast_type"] = node{"id": typeID, "type_info": nil}
	return c
}

func newCall(name string, args ...any) node {
	n := expression("FUNCTION", "FUNCTION")
	n["function_name"], n["schema"], n["catalog"] = name, "", ""
	n["children"] = args
	n["filter"], n["distinct"], n["is_operator"], n["export_state"] = nil, false, false, false
	n["order_bys"] = node{"type": "ORDER_MODIFIER", "orders": []any{}}
	return n
}

func newCompare(op string, left, right any) node {
	n := expression("COMPARISON", op)
	n["left"], n["right"] = left, right
	return n
}

func newAnd(children ...any) node {
	n := expression("CONJUNCTION", "CONJUNCTION_AND")
	n["children"] = children
	return n
}

// named gives a replacement the alias of what it replaces.
func named(replacement, original node) node {
	replacement["alias"] = text(original, "alias")
	return replacement
}

// label is the name that an expression without an alias gets as a column.
func label(n node) string {
	switch class(n) {
	case "COLUMN_REF":
		names := names(n, "column_names")
		return names[len(names)-1]
	case "CONSTANT":
		if s, ok := stringConstant(n); ok {
			return "'" + s + "'"
		}
		b, _ := json.Marshal(child(n, "value")["value"])
		return string(b)
	case "CAST":
		return "CAST(" + label(child(n, "child")) + " AS " + text(child(n, "cast_type"), "id") + ")"
	case "FUNCTION":
		return labelCall(n)
	case "STAR":
		return "*"
	case "SUBQUERY":
		return "subquery"
	case "COMPARISON":
		return "(" + label(child(n, "left")) + " " + compareText[compares[text(n, "type")]] + " " + label(child(n, "right")) + ")"
	case "CASE":
		return "case"
	case "OPERATOR", "CONJUNCTION", "WINDOW":
		typ := strings.ToLower(text(n, "type"))
		_, typ, _ = strings.Cut(typ, "_")
		return typ
	}
	return strings.ToLower(text(n, "type"))
}

func labelCall(n node) string {
	name, args := text(n, "function_name"), list(n, "children")
	if name == "count_star" {
		return "count(*)"
	}
	labels := make([]string, len(args))
	for i, a := range args {
		labels[i] = label(a.(node))
	}
	if n["is_operator"] == true && len(labels) == 2 {
		return "(" + labels[0] + " " + name + " " + labels[1] + ")"
	}
	if n["distinct"] == true && len(labels) > 0 {
		labels[0] = "DISTINCT " + labels[0]
	}
	return name + "(" + strings.Join(labels, ", ") + ")"
}
