package sql

import (
	"strconv"
	"strings"

	"github.com/varvedb/varve/fault"
)

// mysqlVersion is the MySQL whose behaviour clients may count on.
const mysqlVersion = "8.4.2"

// maxQueryBytes bounds the text of a query, because parse trees take many times
// that and are in no memory limit. Rows of VALUES in an INSERT are no query.
const maxQueryBytes = 4 << 20

// rewrite returns a query as DuckDB's parser takes it: `names` in double
// quotes, DIV as //, and @@variables, version(), database() and their like as
// the constants that they are.
func rewrite(text string, s *Session, version string) (string, error) {
	if len(text) > maxQueryBytes {
		return "", fault.Errorf(fault.TooLarge, "the text of a query may have %d bytes, not %d", maxQueryBytes, len(text))
	}
	tokens, err := tokenize(text)
	if err != nil {
		return "", err
	}
	r := rewriter{src: text, tokens: tokens, session: s, version: version}
	var b strings.Builder
	from := 0
	for i := 0; i < len(tokens); {
		r.enter(r.text(i))
		replacement, n, err := r.replace(i)
		if err != nil {
			return "", err
		}
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[from:tokens[i].start])
		b.WriteString(replacement)
		from = tokens[i+n-1].end
		i += n
	}
	if from == 0 {
		return text, nil
	}
	b.WriteString(text[from:])
	return b.String(), nil
}

func tokenize(text string) ([]token, error) {
	l := lexer{src: text}
	var tokens []token
	for {
		t, err := l.next()
		if err != nil || t.kind == endToken {
			return tokens, err
		}
		tokens = append(tokens, t)
	}
}

// A rewriter looks at the tokens of one query.
type rewriter struct {
	src     string
	tokens  []token
	session *Session
	version string
	depth   int // of parentheses around the current token
}

func (r *rewriter) enter(text string) {
	switch text {
	case "(", "[", "{":
		r.depth++
	case ")", "]", "}":
		r.depth--
	}
}

// replace returns what stands for the n tokens at i; n is 0 if they stay.
func (r *rewriter) replace(i int) (replacement string, n int, err error) {
	t := r.tokens[i]
	switch {
	case t.kind == quotedToken && r.src[t.start] == '`':
		name, _ := stringValue(r.src, t)
		return quoteName(name), 1, nil
	case t.kind == variableToken:
		value, err := r.variable(r.text(i))
		return r.named(value, i, 1), 1, err
	case t.kind != wordToken:
		return "", 0, nil
	case strings.EqualFold(r.text(i), "DIV") && r.endsOperand(i-1) && r.startsOperand(i+1):
		return "//", 1, nil
	case r.text(i+1) == "(" && r.text(i+2) == ")" && r.text(i-1) != ".":
		if value, ok := r.function(strings.ToLower(r.text(i))); ok {
			return r.named(value, i, 3), 3, nil
		}
	}
	return "", 0, nil
}

// text returns token i, or "" outside the query.
func (r *rewriter) text(i int) string {
	if i < 0 || i >= len(r.tokens) {
		return ""
	}
	return r.src[r.tokens[i].start:r.tokens[i].end]
}

func (r *rewriter) endsOperand(i int) bool {
	if i < 0 {
		return false
	}
	l := lexer{src: r.src, last: r.tokens[i]}
	return l.afterOperand()
}

// clauses are the keywords that can follow an alias, so that "div" in front of
// one is a name.
var clauses = map[string]bool{"FROM": true, "WHERE": true, "GROUP": true, "HAVING": true, "QUALIFY": true, "WINDOW": true,
	"ORDER": true, "LIMIT": true, "OFFSET": true, "UNION": true, "EXCEPT": true, "INTERSECT": true, "USING": true, "ON": true,
	"JOIN": true, "INNER": true, "LEFT": true, "RIGHT": true, "FULL": true, "CROSS": true, "NATURAL": true, "ASOF": true}

func (r *rewriter) startsOperand(i int) bool {
	text := r.text(i)
	switch {
	case text == "":
		return false
	case r.tokens[i].kind == opToken:
		return strings.Contains("(-+$?", text)
	case r.tokens[i].kind == wordToken:
		return !clauses[strings.ToUpper(text)]
	default:
		return true
	}
}

// named gives a constant that is a column of its own the name that it had as
// n tokens at i.
func (r *rewriter) named(value string, i, n int) string {
	before, after := strings.ToUpper(r.text(i-1)), strings.ToUpper(r.text(i+n))
	if r.depth > 0 || before != "SELECT" && before != "," {
		return value
	}
	switch after {
	case "", ",", "FROM", "LIMIT":
		return value + " AS " + quoteName(r.src[r.tokens[i].start:r.tokens[i+n-1].end])
	}
	return value
}

// function returns the constant that a function without arguments is.
func (r *rewriter) function(name string) (value string, ok bool) {
	switch name {
	case "version":
		return quoteText(r.version), true
	case "database", "schema", "current_database", "current_schema":
		return quoteText(r.session.database()), true
	case "timezone":
		return quoteText(r.session.zone().String()), true
	case "connection_id":
		return "0", true
	}
	return "", false
}

// variable returns the value of @@name, @@session.name or @@global.name. These
// are the ones that clients ask for when they connect.
func (r *rewriter) variable(text string) (string, error) {
	name := strings.ToLower(strings.TrimPrefix(text, "@@"))
	name = strings.TrimPrefix(strings.TrimPrefix(name, "session."), "global.")
	switch name {
	case "version":
		return quoteText(mysqlVersion + "-varve-" + r.version), nil
	case "version_comment":
		return quoteText("Varve"), nil
	case "time_zone":
		return quoteText(r.session.zone().String()), nil
	case "system_time_zone":
		return quoteText("UTC"), nil
	case "autocommit", "auto_increment_increment":
		return "1", nil
	case "max_allowed_packet":
		return strconv.Itoa(64 << 20), nil
	case "interactive_timeout", "wait_timeout":
		return "28800", nil
	case "net_write_timeout", "net_read_timeout":
		return "60", nil
	case "lower_case_table_names", "max_execution_time", "performance_schema", "tx_read_only", "transaction_read_only":
		return "0", nil
	case "sql_mode", "init_connect", "license":
		return "''", nil
	case "tx_isolation", "transaction_isolation":
		return quoteText("REPEATABLE-READ"), nil
	case "character_set_client", "character_set_connection", "character_set_results", "character_set_server":
		return quoteText("utf8mb4"), nil
	case "collation_server", "collation_connection":
		return quoteText("utf8mb4_bin"), nil
	}
	return "", fault.Errorf(fault.Plan, "there is no variable %s", text)
}
