package query

import (
	"context"
	"encoding/json"
	"fmt"
)

// Parse returns the tree of one query in JSON, as DuckDB's parser sees it,
// without the places in the text. The tables need not exist.
func (e *Engine) Parse(ctx context.Context, sql string) (json.RawMessage, error) {
	_, body, err := peel(sql)
	if err != nil {
		return nil, err
	}
	st, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer st.close(false)
	tree, err := st.parse(body)
	if err != nil {
		return nil, st.fault(err)
	}
	root := child(list(tree, "statements")[0].(node), "node")
	forgetPlaces(root)
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("print tree: %w", err)
	}
	return text, nil
}

// forgetPlaces removes what only says where in the text a node stood.
func forgetPlaces(v any) {
	switch v := v.(type) {
	case node:
		delete(v, "query_location")
		for _, c := range v {
			forgetPlaces(c)
		}
	case []any:
		for _, c := range v {
			forgetPlaces(c)
		}
	}
}
