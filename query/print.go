package query

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A printer writes the tree of a plain SELECT as SQL, which saves the time that
// DuckDB takes to read the tree in and to print it. It knows the common nodes
// alone: one that it does not know, or that says more than it would write, ends
// it, and DuckDB prints the statement. Its text must parse to the same tree
// again, which TestPrint holds it to.
type printer struct {
	text []byte
	bad  bool // not everything is known
}

// printTree returns the text of a statement's tree, if all of it is known.
func printTree(tree node) (string, bool) {
	p := &printer{text: make([]byte, 0, 1024)}
	statements := list(tree, "statements")
	if len(statements) != 1 {
		return "", false
	}
	statement := statements[0].(node)
	p.only(statement, "node")
	p.query(child(statement, "node"))
	return string(p.text), !p.bad
}

func (p *printer) write(s string) { p.text = append(p.text, s...) }

// only gives up if a key that is not printed holds anything.
func (p *printer) only(n node, keys ...string) {
	for k, v := range n {
		switch k {
		case "class", "type", "query_location":
			continue
		}
		if !blank(v) && !slices.Contains(keys, k) {
			p.bad = true
		}
	}
}

// blank reports whether a value says nothing.
func blank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case node:
		for k, c := range v {
			if k != "type" && !blank(c) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *printer) query(n node) {
	p.only(n, "modifiers", "select_list", "from_table", "where_clause", "group_expressions", "group_sets",
		"aggregate_handling", "having")
	if text(n, "type") != "SELECT_NODE" || text(n, "aggregate_handling") != "STANDARD_HANDLING" {
		p.bad = true
		return
	}
	p.write("SELECT ")
	for i, e := range list(n, "select_list") {
		p.comma(i)
		item, _ := e.(node)
		p.expr(item, "alias")
		if alias := text(item, "alias"); alias != "" {
			p.write(" AS ")
			p.name(alias)
		}
	}
	p.from(child(n, "from_table"))
	if w := child(n, "where_clause"); w != nil {
		p.write(" WHERE ")
		p.expr(w)
	}
	p.groups(n)
	if h := child(n, "having"); h != nil {
		p.write(" HAVING ")
		p.expr(h)
	}
	for _, m := range list(n, "modifiers") {
		p.modifier(m.(node))
	}
}

// groups prints a GROUP BY of one set with all expressions.
func (p *printer) groups(n node) {
	groups, sets := list(n, "group_expressions"), list(n, "group_sets")
	if len(groups) == 0 && len(sets) == 0 {
		return
	}
	if len(sets) != 1 {
		p.bad = true
		return
	}
	set, _ := sets[0].([]any)
	p.bad = p.bad || len(set) != len(groups)
	p.write(" GROUP BY ")
	for i, g := range groups {
		if i < len(set) && string(number(set[i])) != strconv.Itoa(i) {
			p.bad = true
		}
		p.comma(i)
		p.expr(g.(node))
	}
}

func (p *printer) from(n node) {
	switch text(n, "type") {
	case "EMPTY":
		p.only(n)
		return
	case "TABLE_FUNCTION":
		p.only(n, "function", "alias", "with_ordinality")
		if with := text(n, "with_ordinality"); with != "" && with != "WITHOUT_ORDINALITY" {
			p.bad = true
		}
		p.write(" FROM ")
		p.expr(child(n, "function"))
	default:
		p.bad = true
		return
	}
	if alias := text(n, "alias"); alias != "" {
		p.write(" AS ")
		p.name(alias)
	}
}

func (p *printer) modifier(m node) {
	switch text(m, "type") {
	case "ORDER_MODIFIER":
		p.only(m, "orders")
		p.write(" ORDER BY ")
		for i, o := range list(m, "orders") {
			p.comma(i)
			p.order(o.(node))
		}
	case "LIMIT_MODIFIER":
		p.only(m, "limit", "offset")
		for _, key := range []string{"limit", "offset"} {
			if c := child(m, key); c != nil {
				p.write(" " + strings.ToUpper(key) + " ")
				p.expr(c)
			}
		}
	default:
		p.bad = true
	}
}

var (
	directions = map[string]string{"ORDER_DEFAULT": "", "ASCENDING": " ASC", "DESCENDING": " DESC"}
	nullOrders = map[string]string{"ORDER_DEFAULT": "", "NULLS FIRST": " NULLS FIRST", "NULLS LAST": " NULLS LAST"}
)

func (p *printer) order(o node) {
	p.only(o, "null_order", "expression")
	direction, known := directions[text(o, "type")]
	nulls, also := nullOrders[text(o, "null_order")]
	p.bad = p.bad || !known || !also
	p.expr(child(o, "expression"))
	p.write(direction + nulls)
}

// infix are the operators, by type of node or name of function, that stand
// between two operands.
var infix = map[string]string{
	"COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "!=", "COMPARE_LESSTHAN": "<", "COMPARE_GREATERTHAN": ">",
	"COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHANOREQUALTO": ">=",
	"CONJUNCTION_AND": "AND", "CONJUNCTION_OR": "OR",
	"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "//": "//", "||": "||", "~~": "~~", "!~~": "!~~",
}

// expr prints an expression; more names the keys that the caller prints.
func (p *printer) expr(n node, more ...string) {
	if p.bad || n == nil {
		p.bad = true
		return
	}
	only := func(keys ...string) { p.only(n, append(keys, more...)...) }
	switch class(n) {
	case "CONSTANT":
		only("value")
		p.constant(child(n, "value"))
	case "COLUMN_REF":
		only("column_names")
		for i, part := range names(n, "column_names") {
			if i > 0 {
				p.write(".")
			}
			p.name(part)
		}
	case "FUNCTION":
		only("function_name", "children", "distinct", "is_operator")
		p.call(n)
	case "CAST":
		only("child", "cast_type")
		p.cast(n)
	case "COMPARISON":
		only("left", "right")
		p.between(infix[text(n, "type")], []any{n["left"], n["right"]})
	case "CONJUNCTION":
		only("children")
		p.between(infix[text(n, "type")], list(n, "children"))
	case "BETWEEN":
		only("input", "lower", "upper")
		p.bad = p.bad || text(n, "type") != "COMPARE_BETWEEN"
		p.write("(")
		p.expr(child(n, "input"))
		p.write(" BETWEEN ")
		p.expr(child(n, "lower"))
		p.write(" AND ")
		p.expr(child(n, "upper"))
		p.write(")")
	case "OPERATOR":
		only("children")
		p.operator(text(n, "type"), list(n, "children"))
	case "STAR":
		only()
		p.write("*")
	default:
		p.bad = true
	}
}

func (p *printer) operator(typ string, args []any) {
	if len(args) == 0 {
		p.bad = true
		return
	}
	before, after := "(", ")"
	switch typ {
	case "OPERATOR_IS_NULL":
		after = " IS NULL)"
	case "OPERATOR_IS_NOT_NULL":
		after = " IS NOT NULL)"
	case "OPERATOR_NOT":
		before = "(NOT "
	case "COMPARE_IN":
		after = " IN ("
	case "COMPARE_NOT_IN":
		after = " NOT IN ("
	default:
		p.bad = true
		return
	}
	in := strings.HasPrefix(typ, "COMPARE")
	p.bad = p.bad || in == (len(args) == 1)
	p.write(before)
	p.expr(args[0].(node))
	p.write(after)
	if in {
		p.list(args[1:])
		p.write("))")
	}
}

// between prints operands with an operator between them.
func (p *printer) between(operator string, operands []any) {
	if operator == "" || len(operands) < 2 {
		p.bad = true
		return
	}
	p.write("(")
	for i, o := range operands {
		if i > 0 {
			p.write(" " + operator + " ")
		}
		operand, _ := o.(node)
		p.expr(operand)
	}
	p.write(")")
}

func (p *printer) call(n node) {
	name, args := text(n, "function_name"), list(n, "children")
	if n["is_operator"] == true {
		if len(args) != 2 || n["distinct"] == true {
			p.bad = true
			return
		}
		p.between(infix[name], args)
		return
	}
	p.name(name)
	p.write("(")
	if n["distinct"] == true {
		p.write("DISTINCT ")
	}
	p.list(args)
	p.write(")")
}

func (p *printer) list(items []any) {
	for i, a := range items {
		p.comma(i)
		p.expr(a.(node))
	}
}

func (p *printer) comma(i int) {
	if i > 0 {
		p.write(", ")
	}
}

// plainTypes are the types whose name as SQL is their id.
var plainTypes = set(`BIGINT INTEGER SMALLINT TINYINT DOUBLE FLOAT VARCHAR DATE INTERVAL
	TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS`)

func (p *printer) cast(n node) {
	typ := child(n, "cast_type")
	id := text(typ, "id")
	p.bad = p.bad || !plainTypes[id] || typ["type_info"] != nil
	p.write("CAST(")
	p.expr(child(n, "child"), "alias") // of an expression that got the cast: the cast has it too
	p.write(" AS " + id + ")")
}

func (p *printer) constant(v node) {
	typ := child(v, "type")
	switch id := text(typ, "id"); {
	case v["is_null"] == true || typ["type_info"] != nil:
		p.bad = true
	case id == "VARCHAR":
		s, ok := v["value"].(string)
		p.bad = p.bad || !ok
		p.quote('\'', s)
	case id == "INTEGER" || id == "BIGINT":
		num, _ := v["value"].(json.Number)
		if num == "" {
			num = json.Number(p.integer(v["value"]))
		}
		p.write(string(num))
	default:
		p.bad = true
	}
}

// integer prints an integer that the rewriter has put into the tree.
func (p *printer) integer(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	}
	p.bad = true
	return ""
}

// name prints a name in quotes, so that no word is a keyword.
func (p *printer) name(s string) { p.quote('"', s) }

func (p *printer) quote(mark byte, s string) {
	p.text = append(p.text, mark)
	for i := range len(s) {
		if s[i] == mark {
			p.text = append(p.text, mark)
		}
		p.text = append(p.text, s[i])
	}
	p.text = append(p.text, mark)
}
