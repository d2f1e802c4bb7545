package lineprotocol

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// The classes of bytes that end a token, or may stand behind a backslash.
const (
	endsName      = 1 << iota // a measurement
	endsKey                   // a tag or field key
	endsTagValue              //
	endsValue                 // a field value that is no string
	escapedInName             // after a backslash in a measurement
	escapedInKey              // after a backslash in a tag key, tag value or field key
	isBackslash
)

var classes = func() (c [256]uint8) {
	for b := range c {
		if b < ' ' || b == 0x7f {
			c[b] |= endsName | endsKey
		}
	}
	c[','] |= endsName | endsKey | endsTagValue | endsValue | escapedInName | escapedInKey
	c[' '] |= endsName | endsKey | endsTagValue | endsValue | escapedInName | escapedInKey
	c['='] |= endsKey | endsTagValue | escapedInKey
	c['\r'] |= endsTagValue | endsValue
	c['\n'] |= endsTagValue | endsValue
	c['\\'] |= isBackslash
	return c
}()

// A lexer takes the text of a request apart. Its methods are called in the
// order of the grammar,
//
//	next { measurement { tag } { fieldKey value } time }
//
// and report false at an error, which is then in problem. After one, skipLine
// goes to the next line.
//
// The byte slices it returns are good until the next line.
type lexer struct {
	buf     []byte
	pos     int
	line    int    // number of the line that pos is in, from 1
	scratch []byte // the tokens of this line that had escapes, without them
	value   value
	problem string
	quiet   bool // problems are not wanted in words
}

func (l *lexer) reset(buf []byte) {
	*l = lexer{buf: buf, line: 1, scratch: l.scratch[:0]}
}

// fail notes what is wrong and returns false.
func (l *lexer) fail(format string, args ...any) bool {
	if l.quiet {
		l.problem = format
	} else {
		l.problem = fmt.Sprintf(format, args...)
	}
	return false
}

// next goes to the start of the next line that has something to say.
func (l *lexer) next() bool {
	l.scratch = l.scratch[:0]
	for l.pos < len(l.buf) {
		switch l.buf[l.pos] {
		case ' ':
			l.pos++
		case '\n':
			l.pos++
			l.line++
		case '\r':
			if l.pos+1 < len(l.buf) && l.buf[l.pos+1] != '\n' {
				return true // a measurement cannot start so
			}
			l.pos++
		case '#':
			if !l.comment() {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// comment skips a comment, unless it has control characters: then it is more
// likely to be damage.
func (l *lexer) comment() bool {
	end := len(l.buf)
	if i := bytes.IndexByte(l.buf[l.pos:], '\n'); i >= 0 {
		end = l.pos + i
	}
	for _, c := range bytes.TrimSuffix(l.buf[l.pos:end], []byte{'\r'}) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	l.pos = end
	return true
}

// skipLine goes behind the next end of line.
func (l *lexer) skipLine() {
	i := bytes.IndexByte(l.buf[l.pos:], '\n')
	if i < 0 {
		l.pos = len(l.buf)
		return
	}
	l.pos += i + 1
	l.line++
}

// token takes bytes up to one of class end, and resolves escapes.
func (l *lexer) token(what string, end, escaped uint8) ([]byte, bool) {
	buf, i := l.buf, l.pos
	escapes := false
	for i < len(buf) {
		class := classes[buf[i]]
		if class&(end|isBackslash) == 0 {
			i++
			continue
		}
		if class&isBackslash == 0 {
			break
		}
		if i+1 < len(buf) && classes[buf[i+1]]&escaped != 0 {
			escapes = true
			i++
		}
		i++
	}
	token := buf[l.pos:i]
	l.pos = i
	if !utf8.Valid(token) {
		return nil, l.fail("%s %.64q is not UTF-8", what, token)
	}
	if escapes {
		token = l.unescape(token, escaped)
	}
	return token, true
}

// unescape removes the backslashes that stand before bytes of a class; any
// other one is a byte like others.
func (l *lexer) unescape(token []byte, escaped uint8) []byte {
	start := len(l.scratch)
	for i := 0; i < len(token); i++ {
		if token[i] == '\\' && i+1 < len(token) && classes[token[i+1]]&escaped != 0 {
			i++
		}
		l.scratch = append(l.scratch, token[i])
	}
	return l.scratch[start:]
}

// at returns the byte at pos in words.
func (l *lexer) at() string {
	if l.pos >= len(l.buf) {
		return "the end of input"
	}
	r, _ := utf8.DecodeRune(l.buf[l.pos:])
	return fmt.Sprintf("%q", r)
}

// here reports whether the byte at pos is c.
func (l *lexer) here(c byte) bool { return l.pos < len(l.buf) && l.buf[l.pos] == c }

func (l *lexer) skipSpaces() {
	for l.here(' ') {
		l.pos++
	}
}

// measurement takes the name of the table.
func (l *lexer) measurement() ([]byte, bool) {
	if l.here('#') {
		return nil, l.fail("control character in a comment")
	}
	name, ok := l.token("measurement", endsName, escapedInName)
	if !ok {
		return nil, false
	}
	if len(name) == 0 {
		return nil, l.fail("measurement cannot start with %s", l.at())
	}
	return name, true
}

// tag takes the next tag. At the end of the tags key is nil, and pos is at the
// first field.
func (l *lexer) tag() (key, val []byte, ok bool) {
	if l.here(' ') {
		l.skipSpaces()
		return nil, nil, true
	}
	if !l.here(',') {
		return nil, nil, l.fail("expected a tag or field but found %s", l.at())
	}
	l.pos++
	if key, ok = l.token("tag key", endsKey, escapedInKey); !ok {
		return nil, nil, false
	}
	if len(key) == 0 {
		return nil, nil, l.fail("expected a tag key after the comma but found %s", l.at())
	}
	if !l.here('=') {
		return nil, nil, l.fail("expected = after tag key %.64q but found %s", key, l.at())
	}
	l.pos++
	if val, ok = l.token("value of a tag", endsTagValue, escapedInKey); !ok {
		return nil, nil, false
	}
	if len(val) == 0 {
		return nil, nil, l.fail("tag %.64q has no value", key)
	}
	return key, val, true
}

// fieldKey takes the key of a field and the = behind it.
func (l *lexer) fieldKey() ([]byte, bool) {
	key, ok := l.token("field key", endsKey, escapedInKey)
	if !ok {
		return nil, false
	}
	if len(key) == 0 {
		return nil, l.fail("expected a field key but found %s", l.at())
	}
	if !l.here('=') {
		return nil, l.fail("expected = after field key %.64q but found %s", key, l.at())
	}
	l.pos++
	return key, true
}

// moreFields reports whether a comma, which it takes, says that another field
// follows.
func (l *lexer) moreFields() bool {
	if l.here(',') {
		l.pos++
		return true
	}
	return false
}

// time takes what is left of the line: a timestamp, if there is one.
func (l *lexer) time() (t int64, given, ok bool) {
	if l.endOfLine() {
		return 0, false, true
	}
	if !l.here(' ') {
		return 0, false, l.fail("unexpected %s after a field", l.at())
	}
	l.skipSpaces()
	if l.endOfLine() {
		return 0, false, true
	}
	if t, ok = l.integer(); !ok {
		return 0, false, false
	}
	l.skipSpaces()
	if !l.endOfLine() {
		return 0, false, l.fail("unexpected %s after the timestamp", l.at())
	}
	return t, true, true
}

// endOfLine takes an end of line, or reports false.
func (l *lexer) endOfLine() bool {
	switch {
	case l.pos >= len(l.buf):
		return true
	case l.buf[l.pos] == '\n':
		l.pos++
	case l.buf[l.pos] == '\r' && (l.pos+1 == len(l.buf) || l.buf[l.pos+1] == '\n'):
		l.pos = min(l.pos+2, len(l.buf))
	default:
		return false
	}
	l.line++
	return true
}
