package sql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/fault"
)

// A kind says what a token is.
type kind uint8

const (
	endToken      kind = iota // end of the statement
	wordToken                 // an unquoted name or keyword
	quotedToken               // a "name" or a `name`
	stringToken               // 'text', with '' for a quote
	escapedToken              // E'text', with C escapes
	dollarToken               // $tag$text$tag$
	hexToken                  // x'c0ffee'
	numberToken               // 1, 1.5, .5, 1e9, 1_000, 0xff
	variableToken             // @@name
	opToken                   // one character of anything else
)

// A token is a piece of the source text: source[start:end].
type token struct {
	kind       kind
	start, end int
}

// A lexer cuts a text into tokens, one call at a time. Its rules for strings,
// names and comments are those of DuckDB's parser, plus backticks and @@name,
// so that both agree on where a statement ends.
type lexer struct {
	src  string
	pos  int
	last token
}

// next returns the next token, or an endToken at the end of the text.
func (l *lexer) next() (token, error) {
	if err := l.skipSpace(); err != nil {
		return token{}, err
	}
	t := token{start: l.pos}
	if l.pos == len(l.src) {
		t.end = l.pos
		return t, nil
	}
	var err error
	t.kind, err = l.scan()
	t.end = l.pos
	l.last = t
	return t, err
}

// scan moves over one token, which starts at l.pos.
func (l *lexer) scan() (kind, error) {
	c, after := l.src[l.pos], l.at(l.pos+1)
	switch {
	case after == '\'' && (c == 'e' || c == 'E'):
		return escapedToken, l.escaped()
	case after == '\'' && (c == 'x' || c == 'X'):
		l.pos++
		return hexToken, l.quoted('\'', "hexadecimal string")
	case isLetter(c):
		for l.pos < len(l.src) && isWordByte(l.src[l.pos]) && l.wideSpace() == 0 {
			l.pos++
		}
		return wordToken, nil
	case isDigit(c), c == '.' && isDigit(after):
		l.number()
		return numberToken, nil
	case c == '\'':
		return stringToken, l.quoted(c, "string")
	case c == '"', c == '`':
		return quotedToken, l.quoted(c, "quoted name")
	case c == '$':
		return l.dollar()
	case c == '@' && after == '@' && isLetter(l.at(l.pos+2)) && !l.afterOperand():
		l.pos += 2
		for l.pos < len(l.src) && (isWordByte(l.src[l.pos]) || l.src[l.pos] == '.') {
			l.pos++
		}
		return variableToken, nil
	default:
		l.pos++
		return opToken, nil
	}
}

// notOperands are the keywords behind which an operand begins.
var notOperands = map[string]bool{"SELECT": true, "DISTINCT": true, "SET": true, "WHERE": true, "HAVING": true, "ON": true,
	"AND": true, "OR": true, "NOT": true, "CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "BY": true,
	"IN": true, "LIKE": true, "BETWEEN": true, "VALUES": true, "IS": true, "AS": true, "LIMIT": true}

// afterOperand reports whether the last token ends an operand, so that @@
// must be the operator of full-text search and not the start of a variable.
func (l *lexer) afterOperand() bool {
	text := l.src[l.last.start:l.last.end]
	switch l.last.kind {
	case endToken:
		return false
	case opToken:
		return text == ")" || text == "]"
	case wordToken:
		return !notOperands[strings.ToUpper(text)]
	default:
		return true
	}
}

// at returns the byte at position i, or 0 behind the end.
func (l *lexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

// skipSpace moves over white space and comments. Comments in /* */ nest.
func (l *lexer) skipSpace() error {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || '\t' <= c && c <= '\r':
			l.pos++
		case c >= utf8.RuneSelf && l.wideSpace() > 0:
			l.pos += l.wideSpace()
		case c == '-' && l.at(l.pos+1) == '-':
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				end = len(l.src) - l.pos
			}
			l.pos += end
		case c == '/' && l.at(l.pos+1) == '*':
			if err := l.blockComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// wideSpace returns the length of the Unicode space at l.pos, or 0. Texts that
// were copied from a page have them, and DuckDB takes them for spaces too.
func (l *lexer) wideSpace() int {
	if l.src[l.pos] < utf8.RuneSelf {
		return 0
	}
	r, size := utf8.DecodeRuneInString(l.src[l.pos:])
	if unicode.IsSpace(r) {
		return size
	}
	return 0
}

func (l *lexer) blockComment() error {
	start, depth := l.pos, 0
	for l.pos < len(l.src) {
		switch two := l.src[l.pos:min(l.pos+2, len(l.src))]; two {
		case "/*":
			depth++
			l.pos += 2
		case "*/":
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			l.pos++
		}
	}
	return syntaxError(l.src, start, "the comment is not closed")
}

// quoted moves over a text in quotes, in which two quotes stand for one.
func (l *lexer) quoted(quote byte, what string) error {
	start := l.pos
	for i := l.pos + 1; ; i++ {
		n := strings.IndexByte(l.src[i:], quote)
		if n < 0 {
			l.pos = len(l.src)
			return syntaxError(l.src, start, "the %s is not closed", what)
		}
		i += n
		if l.at(i+1) != quote {
			l.pos = i + 1
			return nil
		}
		i++
	}
}

// escaped moves over E'…', in which a backslash also protects a quote.
func (l *lexer) escaped() error {
	start := l.pos
	for i := l.pos + 2; i < len(l.src); i++ {
		switch {
		case l.src[i] == '\\':
			i++
		case l.src[i] != '\'':
		case l.at(i+1) == '\'':
			i++
		default:
			l.pos = i + 1
			return nil
		}
	}
	l.pos = len(l.src)
	return syntaxError(l.src, start, "the string is not closed")
}

// dollar moves over $$text$$ or $tag$text$tag$; any other $ is an operator.
func (l *lexer) dollar() (kind, error) {
	i := l.pos + 1
	for i < len(l.src) && isWordByte(l.src[i]) && l.src[i] != '$' && (i > l.pos+1 || !isDigit(l.src[i])) {
		i++
	}
	if l.at(i) != '$' {
		l.pos++
		return opToken, nil
	}
	tag := l.src[l.pos : i+1]
	n := strings.Index(l.src[i+1:], tag)
	if n < 0 {
		start := l.pos
		l.pos = len(l.src)
		return dollarToken, syntaxError(l.src, start, "the string that starts with %s is not closed", tag)
	}
	l.pos = i + 1 + n + len(tag)
	return dollarToken, nil
}

func (l *lexer) number() {
	if l.src[l.pos] == '0' && l.at(l.pos+1)|0x20 == 'x' {
		for l.pos += 2; l.pos < len(l.src) && isWordByte(l.src[l.pos]); {
			l.pos++
		}
		return
	}
	digits := func() {
		for isDigit(l.at(l.pos)) || l.at(l.pos) == '_' {
			l.pos++
		}
	}
	digits()
	if l.at(l.pos) == '.' && l.at(l.pos+1) != '.' {
		l.pos++
		digits()
	}
	if l.at(l.pos)|0x20 != 'e' {
		return
	}
	mark := l.pos
	if l.pos++; l.at(l.pos) == '+' || l.at(l.pos) == '-' {
		l.pos++
	}
	if !isDigit(l.at(l.pos)) {
		l.pos = mark
		return
	}
	digits()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' }

// syntaxError returns a Syntax error that names the place of position pos.
func syntaxError(src string, pos int, format string, args ...any) error {
	line := 1 + strings.Count(src[:pos], "\n")
	column := 1 + utf8.RuneCountInString(src[strings.LastIndexByte(src[:pos], '\n')+1:pos])
	return fault.Errorf(fault.Syntax, "syntax error at line %d, column %d: "+format, append([]any{line, column}, args...)...)
}
