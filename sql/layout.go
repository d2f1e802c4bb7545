package sql

import (
	"bytes"
	"context"
	"strings"
)

// Format returns a script in one style: one statement a line, keywords in
// capitals, one space between words, no comments. A statement never changes
// its meaning by it: one whose tree would be another is left as it was.
func (e *Engine) Format(ctx context.Context, s *Session, script Script) (string, error) {
	lines := make([]string, len(script))
	for i := range script {
		line, err := e.format(ctx, s, &script[i])
		if err != nil {
			return "", inStatement(err, i, len(script))
		}
		lines[i] = line + ";"
	}
	return strings.Join(lines, "\n"), nil
}

func (e *Engine) format(ctx context.Context, s *Session, st *Statement) (string, error) {
	want, err := e.treeJSON(ctx, s, st)
	if err != nil {
		return "", err
	}
	for _, capitals := range []capitals{allCapitals, reservedCapitals, noCapitals} {
		text, err := layout(st.Text, capitals)
		if err != nil {
			return "", err
		}
		same, err := parseStatement(text)
		if err != nil {
			continue
		}
		tree, err := e.treeJSON(ctx, s, &Statement{Text: text, node: same})
		if err == nil && bytes.Equal(tree, want) {
			return text, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return st.Text, nil
}

// capitals says which words are printed in capitals.
type capitals uint8

const (
	noCapitals       capitals = iota
	reservedCapitals          // keywords that cannot be names
	allCapitals               // keywords
)

// layout prints the tokens of a statement.
func layout(text string, capitals capitals) (string, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return "", err
	}
	l := layouter{src: text, tokens: tokens}
	for i := 0; i < len(tokens); {
		n := l.length(i)
		word := l.text(i, n)
		if l.spaced(i, word) {
			l.out.WriteByte(' ')
		}
		keyword := l.isKeyword(i, word)
		if keyword && (capitals == allCapitals || capitals == reservedCapitals && l.isReserved(i, word)) {
			word = strings.ToUpper(word)
		}
		l.out.WriteString(word)
		l.open = keyword && !functions[strings.ToUpper(word)]
		l.sign = n == 1 && (word == "-" || word == "+") && !l.endsOperand(i-1)
		l.last, i = word, i+n
	}
	return l.out.String(), nil
}

// A layouter prints tokens one behind the other.
type layouter struct {
	src    string
	tokens []token
	out    strings.Builder
	last   string // what was printed last
	sign   bool   // whether that was the sign of an operand
	open   bool   // whether a space is between it and a parenthesis
}

// operators are the characters of operators that may be longer than one.
const operators = "<>=!|&@~^:-+*/%#?"

// length returns how many tokens from i on are one operator: characters of
// operators that touch. A sign behind another operator stands alone.
func (l *layouter) length(i int) int {
	n := 1
	for l.isOperator(i) && l.isOperator(i+n) && l.tokens[i+n].start == l.tokens[i+n-1].end {
		n++
	}
	text := l.text(i, n)
	if n > 1 && strings.HasSuffix(text, "-") && !strings.ContainsAny(text, "~!@#%^&|?") && text != "->" {
		n--
	}
	return n
}

func (l *layouter) isOperator(i int) bool {
	return i < len(l.tokens) && l.tokens[i].kind == opToken && strings.IndexByte(operators, l.src[l.tokens[i].start]) >= 0
}

func (l *layouter) text(i, n int) string {
	if i < 0 || i+n > len(l.tokens) {
		return ""
	}
	return l.src[l.tokens[i].start:l.tokens[i+n-1].end]
}

// spaced reports whether a space belongs in front of word, which is at i.
func (l *layouter) spaced(i int, word string) bool {
	touches := i > 0 && l.tokens[i].start == l.tokens[i-1].end
	switch {
	case l.last == "" || l.last == "(" || l.last == "[" || l.last == "." && touches || l.last == "::" || l.last == "{":
		return false
	case l.sign:
		return l.isOperator(i)
	case word == "," || word == ")" || word == "]" || word == "}" || word == "::" || word == ";":
		return false
	case word == "." || word == ":":
		return !touches
	case word == "(" || word == "[":
		return l.last == "," || l.open || !touches || isOperatorText(l.last)
	}
	return true
}

func isOperatorText(s string) bool {
	return s != "" && strings.IndexByte(operators, s[0]) >= 0
}

func (l *layouter) endsOperand(i int) bool {
	if i < 0 {
		return false
	}
	x := lexer{src: l.src, last: l.tokens[i]}
	return x.afterOperand()
}

// isKeyword reports whether the word at i is a keyword there. In front of a
// parenthesis it may be a function, behind a point or AS it is a name.
func (l *layouter) isKeyword(i int, word string) bool {
	if l.tokens[i].kind != wordToken || !keywords[strings.ToUpper(word)] {
		return false
	}
	before := strings.ToUpper(l.text(i-1, 1))
	return before != "." && l.text(i+1, 1) != "." && (before != "AS" || strings.EqualFold(word, "SELECT"))
}

// isReserved reports whether the keyword at i cannot be a name.
func (l *layouter) isReserved(i int, word string) bool {
	word = strings.ToUpper(word)
	before, after := strings.ToUpper(l.text(i-1, 1)), strings.ToUpper(l.text(i+1, 1))
	return reserved[word] || phrases[before+" "+word] || phrases[word+" "+after]
}

// phrases are pairs of words of which neither is a name.
var phrases = map[string]bool{"GROUP BY": true, "ORDER BY": true, "PRIMARY KEY": true, "TIME INDEX": true, "IF NOT": true,
	"IF EXISTS": true, "NOT EXISTS": true}

// reserved are the keywords that are never names in a query.
var reserved = wordSet(`ALL AND ANY AS ASC BETWEEN CASE CAST CREATE CROSS DEFAULT DESC DISTINCT ELSE END EXCEPT FALSE FROM FULL GROUP
	HAVING IN INNER INTERSECT INTO IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL OFFSET ON OR ORDER OUTER PRIMARY QUALIFY RIGHT SELECT
	TABLE THEN TRUE UNION USING VALUES WHEN WHERE WINDOW WITH`)

// keywords are all words that are printed in capitals, where that does not
// change the tree.
var keywords = wordSet(`ADMIN ALL ANALYZE AND ANY AS ASC ASOF BETWEEN BY CASE CAST COLLATE COLUMN COMMENT CREATE CROSS DATABASE
	DATABASES DEFAULT DELETE DESC DESCRIBE DISTINCT DROP ELSE END ENGINE ESCAPE EXCEPT EXISTS EXPLAIN FALSE FILTER FOLLOWING FROM
	FULL GROUP HAVING IF ILIKE IN INDEX INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT MATERIALIZED NATURAL NOT
	NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRECEDING PRIMARY QUALIFY RANGE RECURSIVE REPLACE RIGHT ROWS SCHEMA
	SELECT SEMI SET SHOW TABLE TABLES TABLESAMPLE THEN TIME TRUE TRUNCATE UNBOUNDED UNION USE USING VALUES VERBOSE WHEN WHERE
	WINDOW WITH ZONE`)

// functions are the keywords that a parenthesis follows as it does a function.
var functions = wordSet("CAST EXISTS IF LEFT RANGE REPLACE RIGHT TRUNCATE ANY ALL COLUMN TIME KEY INDEX")

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
