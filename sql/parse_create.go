package sql

import (
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

func (p *parser) create() node {
	p.advance()
	switch {
	case p.accept("DATABASE"), p.accept("SCHEMA"):
		return p.createDatabase()
	case p.accept("TABLE"):
		return p.createTable()
	}
	what := strings.ToUpper(p.text())
	if p.accept("OR", "REPLACE") {
		what = "OR REPLACE " + strings.ToUpper(p.text())
	}
	p.unsupported("CREATE %s is not supported", what)
	return nil
}

func (p *parser) createDatabase() node {
	c := createDatabase{ifNotExists: p.accept("IF", "NOT", "EXISTS")}
	c.name = p.databaseName().text
	c.options = p.withOptions()
	p.expectEnd()
	p.check(checkDatabaseOptions(c.options))
	return c
}

// check stops with err, if it is one.
func (p *parser) check(err error) {
	if err != nil {
		p.stop(err)
	}
}

func (p *parser) createTable() node {
	c := createTable{ifNotExists: p.accept("IF", "NOT", "EXISTS"), name: p.tableName()}
	if p.is("LIKE") || p.is("AS") {
		p.unsupported("CREATE TABLE … %s is not supported; list the columns", strings.ToUpper(p.text()))
	}
	b := tableBuilder{parser: p, byName: map[string]int{}}
	p.expectOp('(')
	for ok := true; ok && p.err == nil; ok = p.more(len(b.columns)) {
		b.element()
	}
	p.expectOp(')')
	p.tableSuffix(&c)
	p.expectEnd()
	b.finish()
	p.check(checkTableOptions(c.options))
	c.columns = b.columns
	return c
}

// tableSuffix reads what follows the columns, in any order.
func (p *parser) tableSuffix(c *createTable) {
	for p.err == nil {
		switch {
		case p.accept("ENGINE"):
			p.expectOp('=')
			if engine := p.name("an engine").text; p.err == nil && !strings.EqualFold(engine, "mito") {
				p.unsupported("ENGINE=%s is not supported; the engine is mito", engine)
			}
		case p.is("WITH"):
			c.options = append(c.options, p.withOptions()...)
		case p.accept("COMMENT"):
			p.acceptOp('=')
			c.comment = p.string("a comment")
		case p.is("PARTITION"):
			p.unsupported("PARTITION is not supported yet")
		default:
			return
		}
	}
}

// withOptions reads an optional WITH (key = value, …).
func (p *parser) withOptions() []option {
	if !p.accept("WITH") {
		return nil
	}
	var options []option
	p.expectOp('(')
	for !p.isOp(')') && p.err == nil {
		options = append(options, p.option())
		if !p.more(len(options)) {
			break
		}
	}
	p.expectOp(')')
	return options
}

// option reads key = value; both may be written with or without quotes.
func (p *parser) option() option {
	var o option
	if p.isString() {
		o.key = p.string("an option")
	} else {
		o.key = p.name("an option").text
		for p.acceptOp('.') {
			o.key += "." + p.name("an option").text
		}
	}
	p.expectOp('=')
	switch p.tok.kind {
	case wordToken, numberToken:
		o.value = p.text()
		p.advance()
	default:
		o.value = p.string("the value of an option")
	}
	return o
}

// A tableBuilder collects the columns of a CREATE TABLE.
type tableBuilder struct {
	*parser
	columns   []columnDef
	byName    map[string]int
	timeIndex int // 1 + the column
	key       []string
	hasKey    bool
}

// element reads one column or one clause.
func (b *tableBuilder) element() {
	switch {
	case b.accept("TIME", "INDEX"):
		b.expectOp('(')
		column := b.name("the time index").text
		b.expectOp(')')
		if i, ok := b.byName[column]; ok {
			b.setTimeIndex(i)
		} else if b.err == nil {
			b.stop(fault.Errorf(fault.ColumnNotFound, "TIME INDEX: column %q does not exist", column))
		}
	case b.accept("PRIMARY", "KEY"):
		b.keyClause()
	case b.accept("CONSTRAINT"), b.is("FOREIGN"), b.is("UNIQUE"), b.is("CHECK"):
		b.unsupported("constraints other than PRIMARY KEY and TIME INDEX are not supported")
	default:
		b.column()
	}
}

func (b *tableBuilder) keyClause() {
	if b.hasKey {
		b.stop(fault.Errorf(fault.Invalid, "a table has one PRIMARY KEY; use PRIMARY KEY (a, b) for several columns"))
	}
	b.hasKey = true
	b.expectOp('(')
	for !b.isOp(')') && b.err == nil {
		b.key = append(b.key, b.name("a column").text)
		if !b.more(len(b.key)) {
			break
		}
	}
	b.expectOp(')')
}

func (b *tableBuilder) column() {
	c := columnDef{role: table.Field}
	c.name = b.name("a column").text
	c.typ = b.columnType(c.name)
	_, twice := b.byName[c.name]
	if twice {
		b.stop(fault.Errorf(fault.ColumnExists, "column %q is defined twice", c.name))
	}
	if b.err != nil {
		return
	}
	i := len(b.columns)
	b.byName[c.name] = i
	b.columns = append(b.columns, c)
	for b.err == nil && b.columnOption(i) {
	}
}

// columnOption reads one option of column i and reports whether there was one.
func (b *tableBuilder) columnOption(i int) bool {
	c := &b.columns[i]
	switch {
	case b.accept("NOT"):
		b.expect("NULL")
		c.notNull = true
	case b.accept("NULL"):
		if c.notNull {
			b.fail("column %q is NULL and NOT NULL", c.name)
		}
	case b.accept("DEFAULT"):
		c.fallback = b.defaultExpr(c.name)
	case b.accept("COMMENT"):
		c.comment = b.string("a comment")
	case b.accept("TIME"):
		b.expect("INDEX")
		b.setTimeIndex(i)
	case b.accept("PRIMARY"):
		b.expect("KEY")
		if b.hasKey {
			b.stop(fault.Errorf(fault.Invalid, "a table has one PRIMARY KEY; use PRIMARY KEY (a, b) for several columns"))
		}
		b.hasKey = true
		b.key = append(b.key, c.name)
	case b.is("INVERTED"), b.is("FULLTEXT"), b.is("SKIPPING"), b.is("VECTOR"):
		b.unsupported("column %q: %s INDEX is not supported yet", c.name, strings.ToUpper(b.text()))
	default:
		return false
	}
	return true
}

// defaultExpr reads the value behind DEFAULT.
func (b *tableBuilder) defaultExpr(column string) *value {
	v, ok := b.value()
	if b.err != nil {
		return nil
	}
	if !ok || v.kind == defaultKind {
		b.unsupported("column %q: DEFAULT takes a constant or now()", column)
		return nil
	}
	if v.kind == nullKind {
		return nil
	}
	return &v
}

func (b *tableBuilder) setTimeIndex(i int) {
	switch {
	case b.err != nil:
	case b.timeIndex > 0:
		b.stop(fault.Errorf(fault.Invalid, "a table has one TIME INDEX, here are %q and %q", b.columns[b.timeIndex-1].name, b.columns[i].name))
	case !b.columns[i].typ.IsTimestamp():
		b.stop(fault.Errorf(fault.Invalid, "TIME INDEX: column %q must be a TIMESTAMP", b.columns[i].name))
	default:
		b.timeIndex = i + 1
		b.columns[i].notNull = true
		b.columns[i].role = table.Timestamp
	}
}

// finish gives the key columns their role and checks the table as a whole.
func (b *tableBuilder) finish() {
	if b.err == nil && b.timeIndex == 0 {
		b.stop(fault.Errorf(fault.Invalid, "the table needs a TIME INDEX: mark one TIMESTAMP column with it"))
	}
	for n, column := range b.key {
		i, ok := b.byName[column]
		switch {
		case b.err != nil:
		case !ok:
			b.stop(fault.Errorf(fault.ColumnNotFound, "PRIMARY KEY: column %q does not exist", column))
		case b.columns[i].role == table.Timestamp:
			b.stop(fault.Errorf(fault.Invalid, "PRIMARY KEY: the time index %q is part of every row's identity and cannot be named", column))
		case b.columns[i].role == table.Tag:
			b.stop(fault.Errorf(fault.Invalid, "PRIMARY KEY: column %q is named twice", column))
		default:
			b.columns[i].role, b.columns[i].keyIndex = table.Tag, n
		}
	}
}
