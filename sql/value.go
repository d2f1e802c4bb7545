package sql

import (
	"strconv"
	"strings"

	"github.com/varvedb/varve/table"
)

// A value is one value on its way into a column.
type value struct {
	kind valueKind
	text string     // of numberKind, textKind and bytesKind; true or false of boolKind
	num  int64      // of intKind and timeKind
	typ  table.Type // of timeKind: one of the timestamps or Date
}

// A valueKind says what a value is.
type valueKind uint8

const (
	nullKind    valueKind = iota
	boolKind              // text is true or false
	numberKind            // text is a decimal number
	intKind               // num is an integer
	textKind              // text is a string
	bytesKind             // text is a byte string
	timeKind              // num is a time or date in the unit of typ
	nowKind               // now() or current_timestamp
	defaultKind           // DEFAULT
)

// String returns the value as an error message shows it.
func (v value) String() string {
	switch v.kind {
	case nullKind:
		return "NULL"
	case intKind:
		return strconv.FormatInt(v.num, 10)
	case timeKind:
		return quoteText(table.FormatTime(v.num, v.typ))
	case nowKind:
		return "now()"
	case defaultKind:
		return "DEFAULT"
	case bytesKind:
		return "x" + quoteText(hexText(v.text))
	case textKind:
		if len(v.text) > 64 {
			return quoteText(strings.ToValidUTF8(v.text[:64], "") + "…")
		}
		return quoteText(v.text)
	default:
		return v.text
	}
}

func hexText(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range min(len(s), 32) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

// value reads a value that can be known without a query. For anything else it
// returns false, with the parser wherever that was seen.
func (p *parser) value() (v value, ok bool) {
	switch p.tok.kind {
	case stringToken, escapedToken, dollarToken, quotedToken:
		return value{kind: textKind, text: p.string("a value")}, p.err == nil
	case hexToken:
		b, err := hexValue(p.src, p.tok)
		p.check(err)
		p.advance()
		return value{kind: bytesKind, text: b}, p.err == nil
	case numberToken:
		return p.number("")
	case opToken:
		switch {
		case p.acceptOp('-'):
			return p.number("-")
		case p.acceptOp('+'):
			return p.number("")
		}
	case wordToken:
		return p.wordValue()
	}
	return value{}, false
}

// number reads a decimal number.
func (p *parser) number(sign string) (value, bool) {
	if p.tok.kind != numberToken {
		return value{}, false
	}
	text := p.text()
	if len(text) > 1 && text[1]|0x20 == 'x' {
		return value{}, false
	}
	if strings.Contains(text, "_") {
		text = strings.ReplaceAll(text, "_", "")
	}
	if sign != "" {
		text = sign + text
	}
	p.advance()
	return value{kind: numberKind, text: text}, true
}

// wordValue reads NULL, TRUE, FALSE, DEFAULT, now() or current_timestamp.
func (p *parser) wordValue() (value, bool) {
	switch {
	case p.accept("NULL"):
		return value{}, true
	case p.accept("TRUE"):
		return value{kind: boolKind, text: "true"}, true
	case p.accept("FALSE"):
		return value{kind: boolKind, text: "false"}, true
	case p.accept("DEFAULT"):
		return value{kind: defaultKind}, true
	case p.accept("NOW"):
		return value{kind: nowKind}, p.acceptOp('(') && p.acceptOp(')')
	case p.accept("CURRENT_TIMESTAMP"):
		return value{kind: nowKind}, !p.acceptOp('(') || p.acceptOp(')')
	}
	return value{}, false
}
