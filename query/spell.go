package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/fault"
)

// spell gives names that differ just in case others inside of DuckDB, in the
// whole statement at once, so that aliases and references keep fitting each
// other. Statements whose tables have no such columns are left as they are.
func (r *rewriter) spell(tree node, st *statement) {
	for _, s := range r.sources {
		st.spellings.collect(s.columns)
	}
	if len(st.spellings) == 0 {
		return
	}
	var all []string
	for name := range st.spellings {
		all = append(all, name)
	}
	slices.Sort(all)
	groups := map[string]int{}
	for _, name := range all {
		folded := strings.ToLower(name)
		st.spellings[name] = name
		if k := groups[folded]; k > 0 {
			st.spellings[name] = fmt.Sprintf("%s%s%d", name, marker, k)
		}
		groups[folded]++
	}
	r.respell(tree, st.spellings, groups)
}

// nameKeys are the keys of the tree whose strings name columns or relations.
var nameKeys = map[string]bool{
	"column_names": true, "alias": true, "exclude_list": true, "using_columns": true,
	"column_name_alias": true, "aliases": true, "relation_name": true,
}

func (r *rewriter) respell(v any, names spellings, groups map[string]int) {
	switch v := v.(type) {
	case []any:
		for _, c := range v {
			r.respell(c, names, groups)
		}
	case node:
		if class(v) == "CONSTANT" {
			v["alias"] = names.internal(text(v, "alias"))
			return
		}
		for k, c := range v {
			if !nameKeys[k] {
				r.respell(c, names, groups)
				continue
			}
			switch c := c.(type) {
			case string:
				v[k] = names.internal(c)
			case []any:
				for i := range c {
					if s, ok := c[i].(string); ok {
						c[i] = r.spelling(s, k, i == len(c)-1, names, groups)
					}
				}
			}
		}
		if class(v) == "STAR" {
			for _, e := range list(v, "replace_list") {
				entry, _ := e.(node)
				entry["key"] = names.internal(text(entry, "key"))
			}
		}
	}
}

// spelling returns the internal form of a name. The last name of a reference
// must be spelled as one of the columns that differ just in case.
func (r *rewriter) spelling(s, key string, last bool, names spellings, groups map[string]int) string {
	if _, known := names[s]; !known && last && key == "column_names" && groups[strings.ToLower(s)] > 0 {
		r.fail(fault.Plan, "column %s is ambiguous: there are columns that differ from it just in case", s)
	}
	return names.internal(s)
}
