package query

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// An explainMode says whether a statement's rows or its plan are wanted.
type explainMode uint8

const (
	plain explainMode = iota
	explain
	analyze
)

// peel takes EXPLAIN [ANALYZE] [VERBOSE] off the front of a statement.
func peel(sql string) (explainMode, string, error) {
	word, rest := nextWord(sql)
	if !strings.EqualFold(word, "EXPLAIN") {
		return plain, sql, nil
	}
	mode := explain
	for {
		word, after := nextWord(rest)
		switch strings.ToUpper(word) {
		case "ANALYZE":
			mode = analyze
		case "VERBOSE":
		case "FORMAT":
			format, after := nextWord(after)
			if !strings.EqualFold(format, "text") {
				return plain, "", fault.Errorf(fault.Unsupported, "EXPLAIN FORMAT %s is not supported", format)
			}
			rest = after
			continue
		case "EXPLAIN":
			return plain, "", fault.Errorf(fault.Syntax, "EXPLAIN of EXPLAIN")
		default:
			return mode, rest, nil
		}
		rest = after
	}
}

// nextWord returns the first word of a text behind white space and comments.
func nextWord(s string) (word, rest string) {
	for {
		s = strings.TrimLeft(s, " \t\r\n\f\v")
		if after, ok := strings.CutPrefix(s, "--"); ok {
			_, s, _ = strings.Cut(after, "\n")
			continue
		}
		if after, ok := strings.CutPrefix(s, "/*"); ok {
			_, s, _ = strings.Cut(after, "*/")
			continue
		}
		break
	}
	end := strings.IndexFunc(s, func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && r != '_' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// explain runs EXPLAIN or EXPLAIN ANALYZE and returns a row with DuckDB's plan
// and one per table, with what is pushed into its scan or what that has cost.
func (st *statement) explain(sql string, mode explainMode) (*Result, error) {
	prefix := "EXPLAIN "
	if mode == analyze {
		prefix = "EXPLAIN ANALYZE "
	}
	var err error
	if st.prepared, err = st.conn.Prepare(prefix + sql); err != nil {
		return nil, err
	}
	if st.result, err = st.prepared.Run(); err != nil {
		return nil, err
	}
	var rows [][2]string
	for {
		c, err := st.result.Next()
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		for i := range c.Len {
			rows = append(rows, [2]string{string(c.Vectors[0].Bytes(i)), unmark(string(c.Vectors[1].Bytes(i)))})
		}
	}
	for _, s := range st.sources {
		rows = append(rows, [2]string{"scan of " + s.info.Name, s.describe()})
	}
	if mode == analyze {
		for _, t := range st.stats {
			rows = append(rows, [2]string{"read of " + t.Table, describeStats(t.ScanStats)})
		}
	}
	return textResult(st, []string{"plan_type", "plan"}, rows), nil
}

// describe says what a scan is asked for.
func (s *source) describe() string {
	var b strings.Builder
	switch t := s.spec.Times; {
	case t == table.AllTime:
		b.WriteString("times: all")
	case t.Empty():
		b.WriteString("times: none")
	default:
		fmt.Fprintf(&b, "times: [%s, %s]", s.timeEnd(t.Min, table.AllTime.Min), s.timeEnd(t.Max, table.AllTime.Max))
	}
	for i, p := range s.spec.Predicates {
		sep := " and "
		if i == 0 {
			sep = "; where: "
		}
		b.WriteString(sep + s.describePredicate(p))
	}
	switch s.spec.Order {
	case table.TimeAscending:
		fmt.Fprintf(&b, "; first %d by time", s.spec.Limit)
	case table.TimeDescending:
		fmt.Fprintf(&b, "; last %d by time", s.spec.Limit)
	}
	return b.String()
}

func (s *source) timeEnd(raw, open int64) string {
	if raw == open {
		return "…"
	}
	return timeText(s.info.Schema.TimeIndex().Type.Time(raw))
}

var compareText = [...]string{"=", "!=", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL"}

func (s *source) describePredicate(p table.Predicate) string {
	var values []string
	for _, v := range p.Values {
		switch v.Type.Layout() {
		case table.Bytes:
			values = append(values, "'"+v.Bytes+"'")
		case table.Floats:
			values = append(values, fmt.Sprint(v.Float))
		default:
			values = append(values, fmt.Sprint(v.Int))
		}
	}
	text := s.info.Schema.Column(p.Column).Name + " " + compareText[p.Op]
	switch {
	case p.Op == table.In:
		return text + " (" + strings.Join(values, ", ") + ")"
	case len(values) > 0:
		return text + " " + values[0]
	}
	return text
}

// describeStats writes what a scan looked at and left out.
func describeStats(s *table.ScanStats) string {
	text := fmt.Sprintf("files: %d, pruned %d; row groups: %d, pruned %d; pages: %d, pruned %d, cached %d; "+
		"bytes read: %d; memtable rows: %d; rows read: %d, returned %d",
		s.Files.Load(), s.FilesPruned.Load(), s.RowGroups.Load(), s.RowGroupsPruned.Load(),
		s.Pages.Load(), s.PagesPruned.Load(), s.CacheHits.Load(), s.BytesRead.Load(),
		s.MemtableRows.Load(), s.RowsRead.Load(), s.RowsReturned.Load())
	if n := s.FilesDamaged.Load(); n > 0 {
		text += fmt.Sprintf("; damaged files: %d", n)
	}
	return text
}
