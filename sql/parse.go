package sql

import (
	"strings"
	"unicode/utf8"

	"github.com/varvedb/varve/fault"
)

// defaultCatalog is the only catalog; it is named for clients that write
// catalog.database.table.
const defaultCatalog = "greptime"

// maxStatements bounds the statements of a script, each of which takes memory
// before the first one runs.
const maxStatements = 100_000

// A Script is a text taken apart into statements.
type Script []Statement

// Parse takes a text apart. An error in any statement is found before the
// first one runs, except those that only the tables or DuckDB can tell.
func Parse(text string) (Script, error) {
	if !utf8.ValidString(text) {
		return nil, fault.Errorf(fault.Syntax, "the statement is not valid UTF-8")
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return nil, syntaxError(text, i, "a NUL character is not allowed")
	}
	texts, err := split(text)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, fault.Errorf(fault.Syntax, "there is no statement in the text")
	}
	script := make(Script, len(texts))
	for i, t := range texts {
		script[i].Text = t
		if script[i].node, err = parseStatement(t); err != nil {
			return nil, inStatement(err, i, len(texts))
		}
	}
	return script, nil
}

// inStatement adds the statement's number to its error where there are several.
func inStatement(err error, i, of int) error {
	if err == nil || of == 1 {
		return err
	}
	return fault.Errorf(fault.KindOf(err), "statement %d: %w", i+1, err)
}

// split cuts text at its semicolons and leaves out empty statements.
func split(text string) ([]string, error) {
	var texts []string
	l := lexer{src: text}
	start, end := -1, 0
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		if t.kind == endToken || t.kind == opToken && text[t.start] == ';' {
			if start >= 0 {
				texts = append(texts, text[start:end])
			}
			if len(texts) > maxStatements {
				return nil, fault.Errorf(fault.TooLarge, "one request may have %d statements", maxStatements)
			}
			if start = -1; t.kind == endToken {
				return texts, nil
			}
			continue
		}
		if start < 0 {
			start = t.start
		}
		end = t.end
	}
}

// parseStatement parses one statement by its first word.
func parseStatement(text string) (node, error) {
	p := newParser(text)
	for p.isOp('(') {
		p.advance()
	}
	if p.tok.start > 0 && !p.isQuery() {
		p.fail("only a query can stand in parentheses")
	}
	n := p.statement(strings.ToUpper(p.text()))
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

func (p *parser) statement(first string) node {
	switch first {
	case "SELECT", "WITH", "VALUES", "FROM":
		return selectQuery{}
	case "EXPLAIN":
		return p.explain()
	case "INSERT", "REPLACE":
		return p.insert()
	case "CREATE":
		return p.create()
	case "DROP":
		return p.drop()
	case "SHOW":
		return p.show()
	case "DESC", "DESCRIBE":
		return p.describe()
	case "USE":
		p.advance()
		n := useDatabase{p.databaseName()}
		p.expectEnd()
		return n
	case "SET":
		return p.set()
	case "ADMIN":
		return p.admin()
	}
	if why, known := refused[first]; known && p.tok.kind == wordToken {
		p.unsupported("%s", why)
		return nil
	}
	p.fail("a statement cannot start with this")
	return nil
}

// refused are the statements of DuckDB and of similar systems that Varve does
// not run, each with what its user should know.
var refused = map[string]string{
	"ALTER": "ALTER is not supported yet", "DELETE": "DELETE is not supported yet",
	"TRUNCATE": "TRUNCATE is not supported yet", "TQL": "TQL is not supported yet; use the PromQL endpoints",
	"UPDATE": "UPDATE is not supported; INSERT a row with the same tags and time to replace it",
	"MERGE":  "MERGE is not supported; INSERT replaces rows with the same tags and time",
	"COPY":   "COPY is not supported: SQL does not read or write files",
	"EXPORT": "EXPORT is not supported: SQL does not read or write files",
	"IMPORT": "IMPORT is not supported: SQL does not read or write files",
	"ATTACH": "ATTACH is not supported: SQL does not open other databases",
	"DETACH": "DETACH is not supported: SQL does not open other databases",
	"BEGIN":  notTransactional, "START": notTransactional, "COMMIT": notTransactional,
	"ROLLBACK": notTransactional, "ABORT": notTransactional, "SAVEPOINT": notTransactional,
	"PRAGMA": notAllowed("PRAGMA"), "INSTALL": notAllowed("INSTALL"), "LOAD": notAllowed("LOAD"),
	"UPDATE_EXTENSIONS": notAllowed("UPDATE EXTENSIONS"), "RESET": notAllowed("RESET"),
	"CALL": notAllowed("CALL"), "CHECKPOINT": notAllowed("CHECKPOINT"), "FORCE": notAllowed("FORCE CHECKPOINT"),
	"VACUUM": notAllowed("VACUUM"), "ANALYZE": notAllowed("ANALYZE"), "PREPARE": notAllowed("PREPARE"),
	"EXECUTE": notAllowed("EXECUTE"), "DEALLOCATE": notAllowed("DEALLOCATE"), "DECLARE": notAllowed("DECLARE"),
	"FETCH": notAllowed("FETCH"), "CLOSE": notAllowed("CLOSE"), "KILL": notAllowed("KILL"),
	"COMMENT": notAllowed("COMMENT"), "GRANT": notAllowed("GRANT"), "REVOKE": notAllowed("REVOKE"),
	"SUMMARIZE": notAllowed("SUMMARIZE"), "PIVOT": notAllowed("PIVOT"), "UNPIVOT": notAllowed("UNPIVOT"),
	"TABLE": "TABLE t is not supported; write SELECT * FROM t", "RENAME": notAllowed("RENAME"),
	"PIVOT_WIDER": notAllowed("PIVOT_WIDER"), "PIVOT_LONGER": notAllowed("PIVOT_LONGER"),
}

const notTransactional = "transactions are not supported: every statement stands alone"

func notAllowed(statement string) string { return statement + " is not supported" }

// explain checks that what EXPLAIN [ANALYZE] [VERBOSE] explains is a query.
func (p *parser) explain() node {
	p.advance()
	p.accept("ANALYZE")
	if p.is("VERBOSE") || p.is("FORMAT") {
		p.unsupported("EXPLAIN %s is not supported", strings.ToUpper(p.text()))
	}
	for p.acceptOp('(') {
	}
	if !p.isQuery() {
		p.unsupported("only a query can be explained")
	}
	return selectQuery{}
}

// isQuery reports whether the current token begins a query.
func (p *parser) isQuery() bool {
	return p.is("SELECT") || p.is("WITH") || p.is("VALUES") || p.is("FROM")
}

// databaseName reads db or greptime.db.
func (p *parser) databaseName() name {
	n := p.name("the name of a database")
	if n.text == defaultCatalog && p.acceptOp('.') {
		n = p.name("the name of a database")
	}
	return n
}

func (p *parser) drop() node {
	p.advance()
	switch {
	case p.accept("TABLE"):
		d := dropTable{ifExists: p.accept("IF", "EXISTS")}
		for ok := true; ok; ok = p.more(len(d.names)) {
			d.names = append(d.names, p.tableName())
		}
		p.expectEnd()
		return d
	case p.accept("DATABASE"), p.accept("SCHEMA"):
		d := dropDatabase{ifExists: p.accept("IF", "EXISTS"), name: p.databaseName()}
		p.expectEnd()
		return d
	}
	p.unsupported("DROP %s is not supported", strings.ToUpper(p.text()))
	return nil
}

func (p *parser) show() node {
	p.advance()
	full := p.accept("FULL")
	var n node
	switch {
	case p.accept("DATABASES"), p.accept("SCHEMAS"):
		n = showDatabases{like: p.like(), full: full}
	case p.accept("TABLES"):
		s := showTables{full: full}
		if p.accept("FROM") || p.accept("IN") {
			s.database = p.databaseName()
		}
		s.like = p.like()
		n = s
	case !full && p.accept("CREATE", "TABLE"):
		n = showCreateTable{p.tableName()}
	default:
		p.unsupported("SHOW %s is not supported", strings.ToUpper(p.text()))
	}
	p.expectEnd()
	return n
}

func (p *parser) describe() node {
	p.advance()
	p.accept("TABLE")
	if p.isQuery() || p.isOp('(') {
		p.unsupported("DESCRIBE takes the name of a table")
	}
	n := describeTable{p.tableName()}
	p.expectEnd()
	return n
}

// set reads SET [SESSION|LOCAL] TIME_ZONE|TIMEZONE = zone and SET TIME ZONE zone.
func (p *parser) set() node {
	p.advance()
	for p.accept("SESSION") || p.accept("LOCAL") {
	}
	switch {
	case p.accept("TIME", "ZONE"):
	case p.tok.kind == variableToken && strings.HasSuffix(strings.ToLower(p.text()), "time_zone"):
		p.advance()
		p.expectOp('=')
	case p.accept("TIME_ZONE"), p.accept("TIMEZONE"):
		if !p.accept("TO") {
			p.expectOp('=')
		}
	default:
		p.unsupported("SET %s is not supported; only TIME_ZONE can be set", p.text())
	}
	s := setTimeZone{}
	if p.tok.kind == wordToken {
		s.zone = p.name("a time zone").text
	} else {
		s.zone = p.string("a time zone")
	}
	p.expectEnd()
	return s
}

// admin reads ADMIN flush_table('t').
func (p *parser) admin() node {
	p.advance()
	if !p.is("flush_table") {
		p.unsupported("ADMIN %s is not supported; there is flush_table", p.text())
	}
	p.advance()
	p.expectOp('(')
	text := p.string("the name of a table")
	p.expectOp(')')
	p.expectEnd()
	if p.err != nil {
		return nil
	}
	inner := newParser(text)
	n := flushTable{inner.tableName()}
	inner.expectEnd()
	if inner.err != nil {
		p.stop(fault.Errorf(fault.Syntax, "ADMIN flush_table: %q is not the name of a table", text))
	}
	return n
}
