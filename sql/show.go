package sql

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varvedb/varve/table"
)

func (e *Engine) showDatabases(n showDatabases) (*listing, error) {
	l := newListing("Database")
	if n.full {
		l = newListing("Database", "Options")
	}
	for _, d := range e.opts.Catalog.Databases() {
		switch {
		case !matchLike(n.like, d.Name):
		case n.full:
			l.add(d.Name, optionText(d.Options, " "))
		default:
			l.add(d.Name)
		}
	}
	return l, nil
}

func (e *Engine) showTables(s *Session, n showTables) (*listing, error) {
	tables, err := e.opts.Catalog.Tables(cmp.Or(n.database.text, s.database()))
	if err != nil {
		return nil, err
	}
	l := newListing("Tables")
	if n.full {
		l = newListing("Tables", "Table_type")
	}
	for _, info := range tables {
		switch {
		case !matchLike(n.like, info.Name):
		case n.full:
			l.add(info.Name, "BASE TABLE")
		default:
			l.add(info.Name)
		}
	}
	return l, nil
}

func (e *Engine) describeTable(s *Session, n describeTable) (*listing, error) {
	info, err := e.resolve(s, n.name)
	if err != nil {
		return nil, err
	}
	l := newListing("Column", "Type", "Key", "Null", "Default", "Semantic Type")
	for _, c := range info.Schema.Columns {
		key, null := "", "NO"
		if c.Role != table.Field {
			key = "PRI"
		}
		if c.Nullable {
			null = "YES"
		}
		l.add(c.Name, c.Type.String(), key, null, c.Default, c.Role.String())
	}
	return l, nil
}

func (e *Engine) showCreateTable(s *Session, n showCreateTable) (*listing, error) {
	info, err := e.resolve(s, n.name)
	if err != nil {
		return nil, err
	}
	l := newListing("Table", "Create Table")
	l.add(info.Name, createText(info))
	return l, nil
}

// createText returns the statement that creates a table like info.
func createText(info *table.Info) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE IF NOT EXISTS " + quoteName(info.Name) + " (\n")
	for _, c := range info.Schema.Columns {
		b.WriteString("  " + quoteName(c.Name) + " " + c.Type.SQL())
		if c.Nullable {
			b.WriteString(" NULL")
		} else {
			b.WriteString(" NOT NULL")
		}
		if c.Default != "" {
			b.WriteString(" DEFAULT " + c.Default)
		}
		if c.Comment != "" {
			b.WriteString(" COMMENT " + quoteText(c.Comment))
		}
		b.WriteString(",\n")
	}
	b.WriteString("  TIME INDEX (" + quoteName(info.Schema.TimeIndex().Name) + ")")
	if tags := info.Schema.Tags(); len(tags) > 0 {
		names := make([]string, len(tags))
		for i, t := range tags {
			names[i] = quoteName(t.Name)
		}
		b.WriteString(",\n  PRIMARY KEY (" + strings.Join(names, ", ") + ")")
	}
	b.WriteString("\n)\n\nENGINE=mito\n")
	options := maps.Clone(info.Options)
	if options == nil {
		options = map[string]string{}
	}
	if info.Comment != "" {
		options["comment"] = info.Comment
	}
	// A table made by a protocol may have its mode without the option.
	switch info.Merge {
	case table.LastNonNull:
		options["merge_mode"] = info.Merge.String()
	case table.Append:
		options["append_mode"] = "true"
	}
	if len(options) > 0 {
		b.WriteString("WITH(\n  " + optionText(options, ",\n  ") + "\n)")
	}
	return b.String()
}

// optionText returns options as key = 'value', sorted by key.
func optionText(options map[string]string, separator string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(options)) {
		name := key
		if strings.ContainsFunc(key, func(r rune) bool { return r >= utf8.RuneSelf || !isWordByte(byte(r)) }) {
			name = quoteText(key)
		}
		list = append(list, name+" = "+quoteText(options[key]))
	}
	return strings.Join(list, separator)
}

// matchLike reports whether s matches an SQL LIKE pattern; nil matches all.
func matchLike(pattern *string, s string) bool { return pattern == nil || like(*pattern, s) }

// like matches greedily: after a mismatch the last % takes one more character.
func like(pattern, s string) bool {
	p, i, star, from := 0, 0, -1, 0
	for i < len(s) || p < len(pattern) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '%':
				star, from = p, i
				p++
				continue
			case i == len(s):
			case c == '_':
				_, size := utf8.DecodeRuneInString(s[i:])
				p, i = p+1, i+size
				continue
			case c == '\\' && p+1 < len(pattern) && pattern[p+1] == s[i]:
				p, i = p+2, i+1
				continue
			case c == s[i] && c != '\\':
				p, i = p+1, i+1
				continue
			}
		}
		if star < 0 || from >= len(s) {
			return false
		}
		from++
		p, i = star+1, from
	}
	return true
}
