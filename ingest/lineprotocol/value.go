package lineprotocol

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// A kind is the type of a field value as its line spells it.
type kind uint8

const (
	kindFloat kind = iota
	kindInt
	kindUint
	kindBool
	kindString
)

// String returns the kind as messages name it.
func (k kind) String() string {
	return [...]string{"float", "integer", "unsigned integer", "boolean", "string"}[k]
}

// A value is one field value. Only the member of its kind has a meaning.
type value struct {
	kind  kind
	float float64
	int   int64
	uint  uint64
	bool  bool
	text  []byte // of a string
}

// fieldValue takes the value of a field into l.value.
func (l *lexer) fieldValue(key []byte) bool {
	if l.pos >= len(l.buf) {
		return l.fail("field %.64q has no value", key)
	}
	switch c := l.buf[l.pos]; {
	case '0' <= c && c <= '9' || c == '-' || c == '.':
		return l.number(key)
	case c == '"':
		return l.quoted(key)
	case c == 't' || c == 'T' || c == 'f' || c == 'F':
		return l.boolean(key)
	case classes[c]&endsValue != 0:
		return l.fail("field %.64q has no value", key)
	case c == '\'' || 'a' <= c|0x20 && c|0x20 <= 'z':
		return l.fail("field %.64q: a value cannot start with %s; strings need double quotes", key, l.at())
	default:
		return l.fail("field %.64q: a value cannot start with %s", key, l.at())
	}
}

// plain takes a value that is no string.
func (l *lexer) plain() []byte {
	start := l.pos
	for l.pos < len(l.buf) && classes[l.buf[l.pos]]&endsValue == 0 {
		l.pos++
	}
	return l.buf[start:l.pos]
}

func (l *lexer) boolean(key []byte) bool {
	switch text := l.plain(); string(text) {
	case "t", "T", "true", "True", "TRUE":
		l.value = value{kind: kindBool, bool: true}
	case "f", "F", "false", "False", "FALSE":
		l.value = value{kind: kindBool}
	default:
		return l.fail("field %.64q: %.64q is no boolean", key, text)
	}
	return true
}

// quoted takes a string. It may span lines; a missing quote therefore takes
// the rest of the request with it, since what follows could be part of the
// value and must not become rows.
func (l *lexer) quoted(key []byte) bool {
	rest := l.buf[l.pos+1:]
	end := bytes.IndexByte(rest, '"')
	escapes := end > 0 && bytes.IndexByte(rest[:end], '\\') >= 0
	if escapes {
		for end = 0; end < len(rest) && rest[end] != '"'; end++ {
			if rest[end] == '\\' && end+1 < len(rest) && (rest[end+1] == '"' || rest[end+1] == '\\') {
				end++
			}
		}
	}
	if end < 0 || end >= len(rest) {
		l.pos = len(l.buf)
		return l.fail("field %.64q: the string has no closing quote, and so takes in the rest of the request", key)
	}
	text := rest[:end]
	l.pos += end + 2
	l.line += bytes.Count(text, []byte{'\n'})
	if !utf8.Valid(text) {
		return l.fail("field %.64q: the string is not UTF-8", key)
	}
	if escapes {
		start := len(l.scratch)
		for i := 0; i < len(text); i++ {
			if text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\') {
				i++
			}
			l.scratch = append(l.scratch, text[i])
		}
		text = l.scratch[start:]
	}
	l.value = value{kind: kindString, text: text}
	return true
}

// pow10 are the powers of ten that are exact in a float.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// number takes a float, integer or unsigned integer. It reads the digits once;
// what that does not settle goes to anyNumber.
func (l *lexer) number(key []byte) bool {
	buf, i := l.buf, l.pos
	negative := buf[i] == '-'
	if negative {
		i++
	}
	start := i
	var mantissa uint64
	for i < len(buf) && buf[i]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(buf[i]-'0')
		i++
	}
	digits, fraction, point := i-start, 0, false
	if i < len(buf) && buf[i] == '.' {
		point = true
		i++
		start = i
		for i < len(buf) && buf[i]-'0' <= 9 {
			mantissa = mantissa*10 + uint64(buf[i]-'0')
			i++
		}
		fraction = i - start
		digits += fraction
	}
	if digits == 0 || digits > 19 { // 19 digits always fit into mantissa
		return l.anyNumber(key)
	}
	if i == len(buf) || classes[buf[i]]&endsValue != 0 {
		// Both operands are exact, so the quotient is rounded once: correctly.
		if mantissa > 1<<53 || fraction >= len(pow10) {
			return l.float(buf[l.pos:i], i)
		}
		f := float64(mantissa)
		if fraction > 0 {
			f /= pow10[fraction]
		}
		if negative {
			f = -f
		}
		l.pos = i
		l.value = value{kind: kindFloat, float: f}
		return true
	}
	suffix := buf[i]
	i++
	if point || mantissa > math.MaxInt64 || i < len(buf) && classes[buf[i]]&endsValue == 0 {
		return l.anyNumber(key)
	}
	switch {
	case suffix == 'i' && negative:
		l.value = value{kind: kindInt, int: -int64(mantissa)}
	case suffix == 'i':
		l.value = value{kind: kindInt, int: int64(mantissa)}
	case suffix == 'u' && !negative:
		l.value = value{kind: kindUint, uint: mantissa}
	default:
		return l.anyNumber(key)
	}
	l.pos = i
	return true
}

// float parses a float whose syntax is known to be right and that ends at end.
func (l *lexer) float(text []byte, end int) bool {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	l.pos = end
	if err != nil {
		return l.fail("%.64q is out of the range of a float", text)
	}
	l.value = value{kind: kindFloat, float: f}
	return true
}

// anyNumber takes a number of any form, and says what is wrong with it.
func (l *lexer) anyNumber(key []byte) (ok bool) {
	text := l.plain()
	digits, last := text[:len(text)-1], text[len(text)-1]
	switch v := &l.value; {
	case last == 'i':
		*v = value{kind: kindInt}
		v.int, ok = l.convert(strconv.ParseInt(string(digits), 10, 64))
	case last == 'u':
		*v = value{kind: kindUint}
		var n uint64
		n, err := strconv.ParseUint(string(digits), 10, 64)
		v.uint = n
		_, ok = l.convert(0, err)
	case decimal(text):
		return l.float(text, l.pos)
	default:
		l.problem = "no number"
	}
	if !ok {
		return l.fail("field %.64q: %.64q is %s", key, text, l.problem)
	}
	return true
}

// convert says in problem what strconv found wrong.
func (l *lexer) convert(n int64, err error) (int64, bool) {
	switch {
	case err == nil:
		return n, true
	case errors.Is(err, strconv.ErrRange):
		l.problem = "out of range"
	default:
		l.problem = "no number"
	}
	return 0, false
}

// decimal reports whether text is a decimal float; strconv takes more than
// that (hexadecimal, infinities, underscores).
func decimal(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte{'-'})
	whole, text := cutDigits(text)
	var fraction int
	if len(text) > 0 && text[0] == '.' {
		fraction, text = cutDigits(text[1:])
	}
	if whole+fraction == 0 {
		return false
	}
	if len(text) == 0 {
		return true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	if text = text[1:]; len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	exponent, text := cutDigits(text)
	return exponent > 0 && len(text) == 0
}

// cutDigits returns how many digits text starts with, and what follows them.
func cutDigits(text []byte) (int, []byte) {
	for i, c := range text {
		if c < '0' || c > '9' {
			return i, text[i:]
		}
	}
	return len(text), nil
}

// integer takes a timestamp.
func (l *lexer) integer() (int64, bool) {
	start := l.pos
	negative := l.here('-')
	if negative {
		l.pos++
	}
	var n uint64
	first := l.pos
	for l.pos < len(l.buf) && l.buf[l.pos]-'0' <= 9 {
		n = n*10 + uint64(l.buf[l.pos]-'0')
		l.pos++
	}
	switch digits := l.pos - first; {
	case digits == 0 || l.pos < len(l.buf) && classes[l.buf[l.pos]]&endsValue == 0:
		l.plain()
		return 0, l.fail("%.64q is no timestamp", l.buf[start:l.pos])
	case digits > 19 || n > math.MaxInt64: // leading zeros, or far out
		t, err := strconv.ParseInt(string(l.buf[start:l.pos]), 10, 64)
		if err != nil {
			return 0, l.fail("timestamp %.64q is out of range", l.buf[start:l.pos])
		}
		return t, true
	case negative:
		return -int64(n), true
	default:
		return int64(n), true
	}
}
