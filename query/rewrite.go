package query

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// scanFunction is DuckDB's name of our table function. It appears in plans,
// where it reads well.
const scanFunction = "table_scan"

// A rewriter turns the tree of a statement into the one that runs: see the
// package comment, step 2. It fails closed: a kind of node that is not named
// here ends the statement.
type rewriter struct {
	req         Request
	engine      *Engine
	err         error   // the first
	changes     int     // expressions replaced so far
	ctes        int     // WITH queries so far
	depth       int     // of expressions around the current one
	nested      int     // of queries around the current one
	subqueries  int     // of those, in expressions
	expressions int     // so far
	queries     int     // so far
	guards      int     // calls that are bounded
	limits      float64 // what their limits are divided by; see lambdaShare

	tables  map[[2]string]*table.Info
	sources []*source
	done    map[uintptr][]column // of the subqueries that are rewritten
}

func (r *rewriter) fail(kind fault.Kind, format string, args ...any) {
	if r.err == nil {
		r.err = fault.Errorf(kind, format, args...)
	}
}

// DuckDB's binder takes time that grows with the cube of the depth of
// expressions and doubles with each subquery in an expression of another, and
// hears no interrupt in it. At these depths that is some tenths of a second.
const (
	maxDepth      = 256 // of expressions
	maxNested     = 64  // of queries
	maxSubqueries = 12  // of queries in expressions

	maxExpressions = 100_000 // of a statement
	maxQueries     = 1000    // of a statement
)

// query rewrites a SELECT or what combines several, and returns its columns
// where they are known.
func (r *rewriter) query(n node, ctes *cte, outer *scope) []column {
	if r.err != nil {
		return nil
	}
	r.nested++
	defer func() { r.nested-- }()
	if r.queries++; r.queries > maxQueries {
		r.fail(fault.TooLarge, "a statement may have %d queries", maxQueries)
		return nil
	}
	if r.nested > maxNested {
		r.fail(fault.TooLarge, "queries are nested deeper than %d", maxNested)
		return nil
	}
	ctes = r.with(n, ctes, outer)
	switch typ := text(n, "type"); typ {
	case "SELECT_NODE":
		return r.selectNode(n, ctes, outer)
	case "SET_OPERATION_NODE":
		var columns []column
		for i, side := range branches(n) {
			if c := r.query(side, ctes, outer); i == 0 {
				columns = c
			}
		}
		r.modifiers(n, &scope{rewriter: r, outer: outer, ctes: ctes, relations: []*relation{{columns: columns}}})
		return columns
	case "RECURSIVE_CTE_NODE":
		columns := r.query(child(n, "left"), ctes, outer)
		if own := ctes.find(text(n, "cte_name")); own != nil {
			own.columns = rename(columns, names(n, "aliases"))
			n["cte_name"] = own.internal
		}
		r.query(child(n, "right"), ctes, outer)
		return columns
	default:
		r.fail(fault.Unsupported, "%s is not supported", strings.ToLower(strings.TrimSuffix(typ, "_NODE")))
		return nil
	}
}

// branches returns the sides of a set operation.
func branches(n node) []node {
	var sides []node
	for _, key := range []string{"left", "right"} {
		if c := child(n, key); c != nil {
			sides = append(sides, c)
		}
	}
	for _, c := range list(n, "children") {
		sides = append(sides, c.(node))
	}
	return sides
}

// with rewrites the WITH clause of a query and returns what is in reach behind
// it.
func (r *rewriter) with(n node, ctes *cte, outer *scope) *cte {
	for _, e := range list(child(n, "cte_map"), "map") {
		entry := e.(node)
		value := child(entry, "value")
		query := child(child(value, "query"), "node")
		r.ctes++
		own := &cte{next: ctes, name: text(entry, "key"), internal: fmt.Sprintf("%s%s%d", text(entry, "key"), marker, r.ctes)}
		entry["key"] = own.internal
		if text(query, "type") == "RECURSIVE_CTE_NODE" {
			own.columns = rename(r.query(query, own, outer), names(value, "aliases"))
		} else {
			own.columns = rename(r.query(query, ctes, outer), names(value, "aliases"))
		}
		if targets := list(value, "key_targets"); len(targets) > 0 {
			r.fail(fault.Unsupported, "USING KEY is not supported")
		}
		ctes = own
	}
	return ctes
}

// rename gives columns the names of an alias list, which may be shorter.
func rename(columns []column, aliases []string) []column {
	if len(aliases) == 0 {
		return columns
	}
	renamed := make([]column, max(len(columns), len(aliases)))
	copy(renamed, columns)
	for i, name := range aliases {
		renamed[i].name = name
	}
	return renamed
}

func (r *rewriter) selectNode(n node, ctes *cte, outer *scope) []column {
	sc := &scope{rewriter: r, outer: outer, ctes: ctes, aliases: map[string]table.Type{}}
	n["from_table"] = r.from(child(n, "from_table"), sc, true)
	for _, e := range list(n, "select_list") {
		if alias := text(e.(node), "alias"); alias != "" {
			if t := sc.typeOf(e.(node)); t != table.InvalidType {
				sc.aliases[strings.ToLower(alias)] = t
			}
		}
	}
	r.push(n, sc)
	columns := r.selectList(n, sc)
	for _, key := range []string{"where_clause", "group_expressions", "having", "qualify"} {
		n[key] = r.walk(n[key], sc)
	}
	r.modifiers(n, sc)
	return columns
}

// modifiers rewrites ORDER BY, LIMIT and DISTINCT ON.
func (r *rewriter) modifiers(n node, sc *scope) {
	n["modifiers"] = r.walk(n["modifiers"], sc)
}

// selectList rewrites the select list and returns the columns it makes. A
// column whose expression changed keeps its name by an alias.
func (r *rewriter) selectList(n node, sc *scope) []column {
	var columns []column
	items := list(n, "select_list")
	for i, e := range items {
		item := e.(node)
		if class(item) == "STAR" {
			columns = append(columns, starColumns(item, sc)...)
			items[i] = r.walk(item, sc)
			continue
		}
		before := r.changes // typeOf rewrites subqueries
		c := column{name: text(item, "alias"), typ: sc.typeOf(item)}
		if c.name == "" {
			c.name = label(item)
		}
		changed := r.expr(item, sc)
		if text(changed, "alias") == "" && (r.changes != before || c.name == "count(*)") {
			changed["alias"] = c.name
		}
		items[i] = changed
		columns = append(columns, c)
	}
	return columns
}

// starColumns returns the columns of * or alias.*, of which some may not be
// there after EXCLUDE; knowing too many does no harm.
func starColumns(star node, sc *scope) []column {
	var columns []column
	for _, rel := range sc.relations {
		if name := text(star, "relation_name"); name == "" || strings.EqualFold(name, rel.name) {
			for _, c := range rel.columns {
				columns = append(columns, column{name: c.name, typ: c.typ})
			}
		}
	}
	return columns
}

// from rewrites an item of a FROM clause and adds its relations to the scope.
// pushable says that WHERE may filter it before anything is joined to it.
func (r *rewriter) from(n node, sc *scope, pushable bool) node {
	if r.err != nil || n == nil {
		return n
	}
	if child(n, "sample") != nil {
		pushable = false
	}
	switch typ := text(n, "type"); typ {
	case "EMPTY":
	case "BASE_TABLE":
		return r.baseTable(n, sc, pushable)
	case "JOIN":
		r.join(n, sc, pushable)
	case "SUBQUERY":
		columns := r.query(child(child(n, "subquery"), "node"), sc.ctes, sc)
		sc.relations = append(sc.relations, &relation{name: text(n, "alias"),
			columns: rename(columns, names(n, "column_name_alias"))})
	case "TABLE_FUNCTION":
		r.tableFunction(n, sc)
	case "EXPRESSION_LIST":
		n["values"] = r.walk(n["values"], sc)
	case "SHOW_REF":
		r.fail(fault.Unsupported, "DESCRIBE and SUMMARIZE are not supported inside a query")
	default:
		r.fail(fault.Unsupported, "%s in FROM is not supported", strings.ToLower(typ))
	}
	return n
}

// join rewrites a join. Filtering one of its sides early must not change which
// rows the other finds, so only sides whose rows all come from matches, or which
// are kept whole, stay pushable.
func (r *rewriter) join(n node, sc *scope, pushable bool) {
	left, right := pushable, pushable
	switch kind := text(n, "join_type"); kind {
	case "INNER":
	case "LEFT", "SEMI", "ANTI", "SINGLE", "MARK":
		right = false
	case "RIGHT":
		left = false
	default:
		left, right = false, false
	}
	switch text(n, "ref_type") {
	case "REGULAR", "CROSS", "NATURAL":
	case "ASOF":
		right = false
	default:
		left, right = false, false
	}
	n["left"] = r.from(child(n, "left"), sc, left)
	n["right"] = r.from(child(n, "right"), sc, right)
	n["condition"] = r.walk(n["condition"], sc)
}

func (r *rewriter) tableFunction(n node, sc *scope) {
	call := child(n, "function")
	if name := strings.ToLower(text(call, "function_name")); !allowedTableFunctions[name] {
		r.fail(fault.Plan, "table function %s does not exist", name)
		return
	}
	args := list(call, "children")
	call["children"] = r.walk(args, sc)
	if name := strings.ToLower(text(call, "function_name")); len(args) > 0 && (name == "json_tree" || name == "json_each") {
		args[0] = r.flatJSON(args[0].(node), name)
	}
	rel := &relation{name: text(n, "alias"), columns: []column{{name: text(call, "function_name")}}}
	if aliases := names(n, "column_name_alias"); len(aliases) > 0 {
		rel.columns = rename(rel.columns, aliases)
	}
	sc.relations = append(sc.relations, rel)
}

// baseTable replaces a name in FROM: by the name that a WITH query has inside,
// or by a scan of the table that it means.
func (r *rewriter) baseTable(n node, sc *scope, pushable bool) node {
	name, database := text(n, "table_name"), text(n, "schema_name")
	if child(n, "at_clause") != nil {
		r.fail(fault.Unsupported, "AT is not supported")
		return n
	}
	if text(n, "alias") == "" {
		n["alias"] = name
	}
	if database == "" {
		if c := sc.ctes.find(name); c != nil {
			n["table_name"] = c.internal
			r.changes++
			sc.relations = append(sc.relations, &relation{name: text(n, "alias"),
				columns: rename(c.columns, names(n, "column_name_alias"))})
			return n
		}
		database = r.req.Database
	}
	if c := text(n, "catalog_name"); c != "" && c != "greptime" {
		r.fail(fault.DatabaseMissing, "catalog %q does not exist", c)
		return n
	}
	info := r.resolve(database, name)
	if info == nil {
		return n
	}
	r.changes++
	src := newSource(r.engine, info)
	r.sources = append(r.sources, src)
	rel := &relation{database: database, name: text(n, "alias"), source: src, pushable: pushable}
	for i := range src.columns {
		c := &src.columns[i]
		rel.columns = append(rel.columns, column{c.Name, c.Type, c})
	}
	if aliases := names(n, "column_name_alias"); len(aliases) > 0 {
		rel.columns = rename(rel.columns, aliases)
	}
	sc.relations = append(sc.relations, rel)
	return node{
		"type": "TABLE_FUNCTION", "alias": n["alias"], "sample": n["sample"], "query_location": n["query_location"],
		"function": newCall(scanFunction, newConstant("BIGINT", src.id)), "column_name_alias": n["column_name_alias"],
	}
}

// resolve returns the table of a name; within a statement it is always the
// same.
func (r *rewriter) resolve(database, name string) *table.Info {
	key := [2]string{database, name}
	if info := r.tables[key]; info != nil {
		return info
	}
	if r.req.Tables == nil {
		r.fail(fault.TableNotFound, "table %q does not exist", name)
		return nil
	}
	info, err := r.req.Tables.Resolve(database, name)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return nil
	}
	for _, known := range r.tables { // under another spelling
		if known.ID == info.ID {
			info = known
		}
	}
	if r.tables == nil {
		r.tables = map[[2]string]*table.Info{}
	}
	r.tables[key] = info
	return info
}
