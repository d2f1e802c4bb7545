package query

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// A source is one reference to a table in a statement.
type source struct {
	id      int64 // the argument of its scan function
	info    *table.Info
	columns []table.Column
	spec    table.ScanSpec // without columns

	st    *statement // set before DuckDB sees the source
	snap  table.Snapshot
	stats *table.ScanStats
}

func newSource(e *Engine, info *table.Info) *source {
	s := &source{id: e.nextID.Add(1), info: info, spec: table.ScanSpec{Times: table.AllTime}}
	for _, c := range info.Schema.Columns {
		if c.ID < table.ReservedColumnID {
			s.columns = append(s.columns, c)
		}
	}
	return s
}

// Columns returns the columns in schema order, under names that differ by more
// than case.
func (s *source) Columns() []duckdb.SourceColumn {
	columns := make([]duckdb.SourceColumn, len(s.columns))
	for i, c := range s.columns {
		columns[i] = duckdb.SourceColumn{Name: s.st.spellings.internal(c.Name), Type: c.Type}
	}
	return columns
}

// Rows estimates the rows of the scan. It is planned for that only where DuckDB
// has a choice, which is where there is more than one table.
func (s *source) Rows() int64 {
	if len(s.st.sources) < 2 {
		return -1
	}
	spec := s.spec
	spec.Stats = nil
	parts, err := s.snap.Scan(s.st.ctx, spec)
	if err != nil {
		return -1
	}
	var rows int64
	for _, p := range parts {
		rows += p.Rows()
		p.Close()
	}
	return rows
}

// Scan begins a scan. A statement may scan a source several times.
func (s *source) Scan(columns []int) (duckdb.Scan, int, error) {
	spec := s.spec
	spec.Stats = s.stats
	for _, c := range columns {
		if c >= 0 {
			spec.Columns = append(spec.Columns, s.columns[c].ID)
		}
	}
	parts, err := s.snap.Scan(s.st.ctx, spec)
	if err != nil {
		s.st.failed(fmt.Errorf("scan table %s: %w", s.info.Name, err))
		return nil, 0, err
	}
	threads := max(1, min(len(parts), s.st.engine.opts.Threads))
	return newScan(s.st, s.info.Name, parts, threads), threads, nil
}

// marker sets off what is added to names inside of DuckDB, and is taken off
// again with the digits behind it wherever a text leaves. Names with it are
// refused.
const marker = "\u200b~"

// unmark takes the additions off the names in a text.
func unmark(s string) string {
	for {
		before, after, ok := strings.Cut(s, marker)
		if !ok {
			return s
		}
		s = before + strings.TrimLeft(after, "0123456789")
	}
}

// spellings gives the column names of a statement that differ just in case
// names that differ in more, since DuckDB cannot tell them apart.
type spellings map[string]string // name → internal, only where they differ

// collect finds the columns of a table that need it.
func (s *spellings) collect(columns []table.Column) {
	seen := make(map[string]string, len(columns))
	for _, c := range columns {
		folded := strings.ToLower(c.Name)
		first, ok := seen[folded]
		if !ok {
			seen[folded] = c.Name
			continue
		}
		if *s == nil {
			*s = spellings{}
		}
		(*s)[first], (*s)[c.Name] = "", ""
	}
}

func (s spellings) internal(name string) string {
	if in, ok := s[name]; ok {
		return in
	}
	return name
}
