package sql

import (
	"strings"

	"github.com/varvedb/varve/fault"
)

// A parser reads one statement token by token. The first error sticks: after
// it every token is the end of the statement, so that callers need to look at
// err only once.
type parser struct {
	lexer
	tok token
	err error
}

func newParser(text string) *parser { return newParserAt(text, 0) }

// newParserAt returns a parser that starts at position pos of text.
func newParserAt(text string, pos int) *parser {
	p := &parser{lexer: lexer{src: text, pos: pos}}
	p.advance()
	return p
}

// advance moves to the next token.
func (p *parser) advance() {
	if p.err != nil {
		return
	}
	tok, err := p.next()
	if err != nil {
		p.stop(err)
		return
	}
	p.tok = tok
}

// stop makes err the parser's error and moves to the end.
func (p *parser) stop(err error) {
	if p.err == nil {
		p.err = err
	}
	p.pos = len(p.src)
	p.tok = token{start: p.pos, end: p.pos}
}

// fail stops with a Syntax error that names the current token.
func (p *parser) fail(format string, args ...any) {
	if p.err != nil {
		return
	}
	near := "the end of the statement"
	if p.tok.kind != endToken {
		near = p.text()
		if len(near) > 40 {
			near = strings.ToValidUTF8(near[:40], "") + "…"
		}
	}
	p.stop(syntaxError(p.src, p.tok.start, "near "+"%s: "+format, append([]any{near}, args...)...))
}

// unsupported stops with an Unsupported error.
func (p *parser) unsupported(format string, args ...any) {
	p.stop(fault.Errorf(fault.Unsupported, format, args...))
}

func (p *parser) text() string { return p.src[p.tok.start:p.tok.end] }

// is reports whether the current token is this keyword.
func (p *parser) is(keyword string) bool {
	return p.tok.kind == wordToken && strings.EqualFold(p.text(), keyword)
}

// isOp reports whether the current token is the operator character c.
func (p *parser) isOp(c byte) bool { return p.tok.kind == opToken && p.src[p.tok.start] == c }

// accept moves over the keywords, if the next tokens are all of them.
func (p *parser) accept(keywords ...string) bool {
	saved := *p
	for _, k := range keywords {
		if !p.is(k) {
			if p.err == nil {
				*p = saved
			}
			return false
		}
		p.advance()
	}
	return true
}

// acceptOp moves over the operator character c, if it is next.
func (p *parser) acceptOp(c byte) bool {
	if !p.isOp(c) {
		return false
	}
	p.advance()
	return true
}

// maxList bounds the members of every list but VALUES. The limits that users
// meet are smaller; this one keeps hostile texts from taking memory.
const maxList = 16_384

// more moves over a comma behind n members of a list, if one is next.
func (p *parser) more(n int) bool {
	if n >= maxList && p.isOp(',') {
		p.stop(fault.Errorf(fault.TooLarge, "a list may have %d members", maxList))
	}
	return p.acceptOp(',')
}

func (p *parser) expect(keyword string) {
	if !p.accept(keyword) {
		p.fail("expected %s", keyword)
	}
}

func (p *parser) expectOp(c byte) {
	if !p.acceptOp(c) {
		p.fail("expected %q", c)
	}
}

// expectEnd fails unless the statement ends here.
func (p *parser) expectEnd() {
	if p.tok.kind != endToken {
		p.fail("expected the end of the statement")
	}
}

// name reads a name, quoted or not.
func (p *parser) name(what string) name {
	if p.tok.kind != wordToken && p.tok.kind != quotedToken {
		p.fail("expected %s", what)
		return name{}
	}
	n := name{text: p.text(), quoted: p.tok.kind == quotedToken}
	if n.quoted {
		n.text, _ = stringValue(p.src, p.tok)
	}
	p.advance()
	return n
}

// tableName reads t, db.t or greptime.db.t.
func (p *parser) tableName() tableName {
	n := tableName{table: p.name("the name of a table")}
	for parts := 1; p.acceptOp('.'); parts++ {
		if parts == 2 && n.database.text != defaultCatalog || parts > 2 {
			p.fail("the only catalog is %q", defaultCatalog)
		}
		n.database, n.table = n.table, p.name("the name of a table")
	}
	return n
}

// isString reports whether the current token is a string in any form.
func (p *parser) isString() bool {
	k := p.tok.kind
	return k == stringToken || k == escapedToken || k == dollarToken
}

// string reads a string. Where only a string can stand, a text in double
// quotes is one, as in MySQL.
func (p *parser) string(what string) string {
	if !p.isString() && p.tok.kind != quotedToken {
		p.fail("expected %s, a string", what)
		return ""
	}
	s, err := stringValue(p.src, p.tok)
	if err != nil {
		p.stop(err)
		return ""
	}
	p.advance()
	return s
}

// skipParens moves over a balanced (…), if one is next.
func (p *parser) skipParens() {
	depth := 0
	for p.tok.kind != endToken {
		switch {
		case p.isOp('('):
			depth++
		case p.isOp(')'):
			depth--
		}
		p.advance()
		if depth == 0 {
			return
		}
	}
}

// like reads an optional LIKE 'pattern'.
func (p *parser) like() *string {
	if p.is("WHERE") {
		p.unsupported("SHOW … WHERE is not supported; use LIKE")
	}
	if !p.accept("LIKE") {
		return nil
	}
	pattern := p.string("a pattern")
	return &pattern
}
