package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/varvedb/varve/table"
)

// Trees returns each statement of a script in JSON: an object whose one key
// says what it is,
//
//	{"Query": {…}}, {"DropTable": {"names": ["t"], "if_exists": true}}
//
// A query is the tree of DuckDB's parser. The tables need not exist. The rows
// of an INSERT are not part of it.
func (e *Engine) Trees(ctx context.Context, s *Session, script Script) ([]json.RawMessage, error) {
	trees := make([]json.RawMessage, len(script))
	for i := range script {
		var err error
		if trees[i], err = e.treeJSON(ctx, s, &script[i]); err != nil {
			return nil, inStatement(err, i, len(script))
		}
	}
	return trees, nil
}

func (e *Engine) treeJSON(ctx context.Context, s *Session, st *Statement) (json.RawMessage, error) {
	tree, err := e.tree(ctx, s, st)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("print tree: %w", err)
	}
	return text, nil
}

func (e *Engine) tree(ctx context.Context, s *Session, st *Statement) (map[string]any, error) {
	text := ""
	switch n := st.node.(type) {
	case selectQuery:
		text = st.Text
	case insert:
		text = n.query
	}
	var query json.RawMessage
	if text != "" {
		text, err := rewrite(text, s, e.opts.Version)
		if err != nil {
			return nil, err
		}
		if query, err = e.opts.Query.Parse(ctx, text); err != nil {
			return nil, err
		}
	}
	switch n := st.node.(type) {
	case selectQuery:
		return map[string]any{explained(st.Text): query}, nil
	case insert:
		tree := map[string]any{"table": n.name.String(), "columns": nodeValue(reflect.ValueOf(n.columns))}
		if query != nil {
			tree["query"] = query
		}
		return map[string]any{"Insert": tree}, nil
	default:
		v := reflect.ValueOf(n)
		name := v.Type().Name()
		return map[string]any{strings.ToUpper(name[:1]) + name[1:]: nodeValue(v)}, nil
	}
}

// explained says what kind of query a text is.
func explained(text string) string {
	p := newParser(text)
	switch {
	case !p.accept("EXPLAIN"):
		return "Query"
	case p.accept("ANALYZE"):
		return "ExplainAnalyze"
	default:
		return "Explain"
	}
}

// nodeValue returns a node, or a field of one, as what json.Marshal prints.
// Names become their text, fields of structs snake_case keys.
func nodeValue(v reflect.Value) any {
	switch v.Type() {
	case reflect.TypeFor[name]():
		return v.Field(0).String()
	case reflect.TypeFor[tableName]():
		return strings.TrimPrefix(v.Field(0).Field(0).String()+"."+v.Field(1).Field(0).String(), ".")
	case reflect.TypeFor[value]():
		return value{valueKind(v.Field(0).Uint()), v.Field(1).String(), v.Field(2).Int(), table.Type(v.Field(3).Uint())}.String()
	case reflect.TypeFor[table.Type]():
		return table.Type(v.Uint()).String()
	case reflect.TypeFor[table.Role]():
		return table.Role(v.Uint()).String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return nodeValue(v.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			fields[fieldName(v.Type().Field(i).Name)] = nodeValue(v.Field(i))
		}
		return fields
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = nodeValue(v.Index(i))
		}
		return list
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	default:
		return v.Type().String() // a kind that no node has yet
	}
}

// fieldName returns the key of a field: its name in snake case, or what it is
// where Go has no such name.
func fieldName(s string) string {
	switch s {
	case "typ":
		return "type"
	case "fallback":
		return "default"
	}
	var b strings.Builder
	for i, c := range s {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
