package sql

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// stringValue returns the text that a string or quoted-name token stands for.
// It allocates only where the text has escapes.
func stringValue(src string, t token) (string, error) {
	s := src[t.start:t.end]
	switch t.kind {
	case escapedToken:
		return unescape(src, t)
	case dollarToken:
		tag := strings.IndexByte(s[1:], '$') + 2
		return s[tag : len(s)-tag], nil
	default:
		quote := s[:1]
		s = s[1 : len(s)-1]
		if strings.Contains(s, quote) {
			s = strings.ReplaceAll(s, quote+quote, quote)
		}
		return s, nil
	}
}

// hexValue returns the bytes of an x'…' token.
func hexValue(src string, t token) (string, error) {
	b, err := hex.DecodeString(src[t.start+2 : t.end-1])
	if err != nil {
		return "", syntaxError(src, t.start, "%s is not pairs of hexadecimal digits", src[t.start:t.end])
	}
	return string(b), nil
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns the text of an E'…' token.
func unescape(src string, t token) (string, error) {
	s := src[t.start+2 : t.end-1]
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'': // the lexer has seen that it comes twice
			i++
			out = append(out, c)
		case c != '\\':
			out = append(out, c)
		default:
			n, rest := escape(s[i+1:])
			if rest < 0 {
				return "", syntaxError(src, t.start, "the string has an escape that means nothing: %s", s[i:min(i+6, len(s))])
			}
			out = append(out, n...)
			i += rest
		}
	}
	if !utf8.Valid(out) {
		return "", syntaxError(src, t.start, "the string is not UTF-8 after its escapes are replaced")
	}
	return string(out), nil
}

// escape returns what the escape after a backslash stands for and its length,
// which is negative if it stands for nothing.
func escape(s string) (value []byte, length int) {
	if s == "" {
		return nil, -1
	}
	if c, ok := escapes[s[0]]; ok {
		return []byte{c}, 1
	}
	switch s[0] {
	case 'x':
		return escapedNumber(s, 1, 2, 16)
	case 'u':
		return escapedNumber(s, 4, 4, 16)
	case 'U':
		return escapedNumber(s, 8, 8, 16)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		value, length = escapedNumber("o"+s, 1, 3, 8)
		return value, length - 1
	default:
		_, size := utf8.DecodeRuneInString(s)
		return []byte(s[:size]), size
	}
}

// escapedNumber reads between least and most digits after the letter in s.
// \x and octal numbers are bytes, \u and \U are characters.
func escapedNumber(s string, least, most, base int) (value []byte, length int) {
	end := 1
	for end < len(s) && end <= most {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint(s[1:end], base, 32)
	switch {
	case end-1 < least || err != nil:
		return nil, -1
	case least == 1 && n > 0xff:
		return nil, -1
	case least == 1:
		return []byte{byte(n)}, end
	case !utf8.ValidRune(rune(n)):
		return nil, -1
	}
	return utf8.AppendRune(nil, rune(n)), end
}

// quoteName returns name as a quoted SQL name.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText returns s as an SQL string.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
