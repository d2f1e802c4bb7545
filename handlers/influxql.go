package handlers

import (
	"strings"

	"github.com/varvedb/varve/fault"
)

// An influxQL is one statement: CREATE DATABASE with a name, or without one
// SHOW DATABASES.
type influxQL struct{ createDatabase string }

// parseInfluxQL parses statements separated by semicolons.
func parseInfluxQL(q string) ([]influxQL, error) {
	tokens, err := influxTokens(q)
	if err != nil {
		return nil, err
	}
	var statements []influxQL
	for len(tokens) > 0 {
		var words []influxToken
		for len(tokens) > 0 && !tokens[0].is(";") {
			words, tokens = append(words, tokens[0]), tokens[1:]
		}
		if len(tokens) > 0 {
			tokens = tokens[1:] // the semicolon
		}
		if len(words) == 0 {
			continue
		}
		s, err := influxWords(words)
		if err != nil {
			return nil, err
		}
		statements = append(statements, s)
	}
	if len(statements) == 0 {
		return nil, fault.Errorf(fault.Invalid, "parameter \"q\" holds no statement")
	}
	return statements, nil
}

func influxWords(words []influxToken) (influxQL, error) {
	switch {
	case len(words) == 2 && words[0].is("SHOW") && words[1].is("DATABASES"):
		return influxQL{}, nil
	case len(words) == 3 && words[0].is("CREATE") && words[1].is("DATABASE") && words[2].name():
		return influxQL{createDatabase: words[2].text}, nil
	}
	var text []string
	for _, w := range words {
		text = append(text, w.text)
	}
	return influxQL{}, fault.Errorf(fault.Unsupported,
		"InfluxQL is limited to CREATE DATABASE name and SHOW DATABASES; not supported: %.100s", strings.Join(text, " "))
}

// An influxToken is a word, a quoted identifier, or another character.
type influxToken struct {
	text   string
	quoted bool
}

func (t influxToken) is(keyword string) bool { return !t.quoted && strings.EqualFold(t.text, keyword) }

func (t influxToken) name() bool { return t.text != "" && (t.quoted || influxWordByte(t.text[0])) }

func influxWordByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func influxTokens(q string) ([]influxToken, error) {
	var tokens []influxToken
	for i := 0; i < len(q); {
		start := i
		switch c := q[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
		case c == '"':
			var name strings.Builder
			for i++; i < len(q) && q[i] != '"'; i++ {
				if q[i] == '\\' && i+1 < len(q) && (q[i+1] == '"' || q[i+1] == '\\') {
					i++
				}
				name.WriteByte(q[i])
			}
			if i == len(q) {
				return nil, fault.Errorf(fault.Invalid, "error parsing query: the identifier at char %d has no closing quote", start+1)
			}
			i++
			if name.Len() == 0 {
				return nil, fault.Errorf(fault.Invalid, "error parsing query: empty identifier at char %d", start+1)
			}
			tokens = append(tokens, influxToken{name.String(), true})
		case influxWordByte(c):
			for i < len(q) && influxWordByte(q[i]) {
				i++
			}
			tokens = append(tokens, influxToken{text: q[start:i]})
		default:
			i++
			tokens = append(tokens, influxToken{text: q[start:i]})
		}
	}
	return tokens, nil
}
