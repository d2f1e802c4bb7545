package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/sql"
)

// maxLoggedStatement bounds the text of a statement in the log.
const maxLoggedStatement = 1 << 10

// noteStatement keeps the text of the request's SQL for the access log, which
// has it if the request fails or is slow.
func noteStatement(r *http.Request, text string) { exchangeOf(r).statement = loggedStatement(text) }

// loggedStatement cuts a text to what the log may have of it: of INSERT not the
// values, which are data.
func loggedStatement(text string) string {
	text = strings.TrimSpace(text)
	head := text[:min(len(text), maxLoggedStatement)]
	upper := upperASCII(head)
	if insert := strings.Index(upper, "INSERT"); insert >= 0 {
		if values := strings.Index(upper[insert:], "VALUES"); values >= 0 {
			head = head[:insert+values+len("VALUES")]
		}
	}
	if len(head) < len(text) {
		return strings.ToValidUTF8(head, "") + " …"
	}
	return text
}

// upperASCII keeps every byte where it is, as strings.ToUpper does not.
func upperASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// logLevel says how much a request matters to those who read the log. What
// clients got wrong is theirs to see; what the server did not do is ours.
func (rt *Router) logLevel(route string, status int, took time.Duration) slog.Level {
	switch {
	case route == "/ready" && status == http.StatusServiceUnavailable:
		return slog.LevelDebug // it is asked all the time, and this is its purpose
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return slog.LevelWarn
	case status >= http.StatusInternalServerError:
		return slog.LevelError
	case rt.isSlow(took):
		return slog.LevelWarn
	case status >= http.StatusBadRequest:
		return slog.LevelInfo
	case rt.logAll && !quietRoutes[route]:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func (rt *Router) isSlow(took time.Duration) bool { return rt.slow > 0 && took >= rt.slow }

// runObserved runs a script and counts its statements, by what they do and how
// they end.
func runObserved(ctx context.Context, e SQLEngine, s *sql.Session, script sql.Script, yield func(sql.Result) error) error {
	m := metricsOf(ctx)
	done := 0
	err := e.Run(ctx, s, script, func(result sql.Result) error {
		err := yield(result)
		if err == nil && done < len(script) {
			m.countStatement(script[done].Text, 0)
			done++
		}
		return err
	})
	if err == nil {
		return nil
	}
	err = whoseFault(ctx, err)
	if done < len(script) {
		m.countStatement(script[done].Text, Code(fault.KindOf(err)))
	}
	return err
}

// countStatement counts a statement that ended with a code; 0 is success.
func (m *httpMetrics) countStatement(text string, code int) {
	if m != nil {
		m.statements.WithLabelValues(statementKind(text), strconv.Itoa(code)).Inc()
	}
}

// countLines counts the lines of one request.
func (m *httpMetrics) countLines(protocol string, written, dropped int) {
	if m == nil {
		return
	}
	m.lines.WithLabelValues(protocol, "written").Add(float64(written))
	m.lines.WithLabelValues(protocol, "dropped").Add(float64(dropped))
	if dropped > 0 {
		m.partial.WithLabelValues(protocol).Inc()
	}
}

// statementKinds are the first words that the metric tells apart.
var statementKinds = map[string]bool{
	"select": true, "with": true, "insert": true, "create": true, "drop": true, "alter": true, "delete": true, "truncate": true,
	"show": true, "describe": true, "desc": true, "explain": true, "use": true, "set": true, "admin": true, "tql": true, "copy": true,
}

func statementKind(text string) string {
	word := strings.ToLower(strings.TrimLeft(text[:min(len(text), 64)], " \t\r\n("))
	if end := strings.IndexFunc(word, func(c rune) bool { return c < 'a' || c > 'z' }); end >= 0 {
		word = word[:end]
	}
	if !statementKinds[word] {
		return "other"
	}
	return word
}
