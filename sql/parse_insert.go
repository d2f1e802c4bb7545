package sql

import (
	"strings"

	"github.com/varvedb/varve/fault"
)

// insert reads INSERT INTO t [(columns)] up to its rows or its query. REPLACE
// INTO is the same thing, since a row replaces the older one of its identity.
func (p *parser) insert() node {
	p.advance()
	if p.is("OR") {
		p.unsupported("INSERT OR … is not supported; a row replaces the older one with the same tags and time")
	}
	p.expect("INTO")
	n := insert{name: p.tableName(), rows: -1}
	if p.isOp('(') {
		start := *p
		p.advance()
		if p.isQuery() || p.isOp('(') {
			*p = start
		} else {
			n.columns = p.columnList()
		}
	}
	switch {
	case p.is("VALUES"):
		p.advance()
		n.rows = p.tok.start
		if !p.isOp('(') {
			p.fail("expected the values of a row")
		}
	case p.isQuery(), p.isOp('('):
		n.query = p.src[p.tok.start:]
	case p.is("DEFAULT"), p.is("SET"), p.is("BY"):
		p.unsupported("INSERT … %s is not supported; use VALUES or a query", strings.ToUpper(p.text()))
	default:
		p.fail("expected VALUES or a query")
	}
	return n
}

// columnList reads the rest of (a, b, …).
func (p *parser) columnList() []name {
	list := []name{}
	for ok := true; ok && p.err == nil; ok = p.more(len(list)) {
		list = append(list, p.name("a column"))
	}
	p.expectOp(')')
	return list
}

// maxCells bounds the cells of one INSERT.
const maxCells = 65_536

// A cell is a value of VALUES that needs a query to be known.
type cell struct {
	row, column int
	text        string // the expression as DuckDB shall see it
}

// A rowReader reads the rows of VALUES. Cells that only a query can tell come
// from known, in order; once there are more of them than that, unknown is set.
type rowReader struct {
	*parser
	width   int
	known   []value
	cells   []cell
	collect bool // only find the cells
	unknown bool
}

// rows reads all rows and hands out each value and each end of a row.
func (r *rowReader) rows(set func(i int, v value) error, end func() error) error {
	for row := 1; r.err == nil && !r.unknown; row++ {
		r.expectOp('(')
		for i := 0; r.err == nil && !r.unknown; i++ {
			if i == r.width {
				r.fail("row %d has more than %d values", row, r.width)
				break
			}
			v := r.cell(row, i)
			if r.err != nil || r.unknown {
				break
			}
			if !r.collect {
				if err := set(i, v); err != nil {
					return inRow(err, row)
				}
			}
			if r.acceptOp(',') {
				continue
			}
			if i+1 < r.width {
				r.fail("row %d has too few values, %d of %d", row, i+1, r.width)
			}
			break
		}
		if r.unknown {
			return nil
		}
		r.expectOp(')')
		if r.err == nil && !r.collect {
			if err := end(); err != nil {
				return inRow(err, row)
			}
		}
		if !r.acceptOp(',') {
			break
		}
	}
	if r.err == nil && !r.unknown {
		r.end()
	}
	return r.err
}

// end checks what is behind the last row.
func (r *rowReader) end() {
	if r.is("ON") || r.is("RETURNING") || r.is("AS") {
		r.unsupported("INSERT … %s is not supported", strings.ToUpper(r.text()))
	}
	r.expectEnd()
}

func inRow(err error, row int) error {
	return fault.Errorf(fault.KindOf(err), "row %d: %w", row, err)
}

// cell reads one value up to the comma or parenthesis behind it.
func (r *rowReader) cell(row, column int) value {
	start := *r.parser
	if v, ok := r.value(); ok && (r.isOp(',') || r.isOp(')')) {
		return v
	}
	if r.err != nil {
		return value{}
	}
	*r.parser = start
	text := r.expression()
	if r.err != nil {
		return value{}
	}
	n := len(r.cells)
	if n == maxCells {
		r.stop(fault.Errorf(fault.TooLarge, "the rows of one INSERT may have %d expressions that are not plain values", maxCells))
		return value{}
	}
	r.cells = append(r.cells, cell{row, column, text})
	switch {
	case r.collect:
		return value{}
	case n < len(r.known):
		return r.known[n]
	}
	r.unknown = true
	return value{}
}

// expression reads one expression. A text in double quotes is a string in it,
// because a row of VALUES has no columns to name.
func (p *parser) expression() string {
	var b strings.Builder
	from, depth := p.tok.start, 0
	first := from
	for p.tok.kind != endToken {
		switch {
		case p.isOp('('), p.isOp('['), p.isOp('{'):
			depth++
		case depth == 0 && (p.isOp(',') || p.isOp(')')):
			if p.tok.start == first {
				p.fail("expected a value")
				return ""
			}
			b.WriteString(p.src[from:p.tok.start])
			return b.String()
		case p.isOp(')'), p.isOp(']'), p.isOp('}'):
			depth--
		case p.tok.kind == quotedToken:
			b.WriteString(p.src[from:p.tok.start])
			s, _ := stringValue(p.src, p.tok)
			b.WriteString(quoteText(s))
			from = p.tok.end
		}
		p.advance()
	}
	p.fail("expected ) behind the values of a row")
	return ""
}
