package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// A SQLPrinter is what SQLText needs of sql.Engine.
type SQLPrinter interface {
	Trees(ctx context.Context, s *sql.Session, script sql.Script) ([]json.RawMessage, error)
	Format(ctx context.Context, s *sql.Session, script sql.Script) (string, error)
}

// SQLText serves /v1/sql/parse and /v1/sql/format, which look at statements
// and do not run them.
type SQLText struct{ Engine SQLPrinter }

var _ Protocol = (*SQLText)(nil)

// Register adds the routes.
func (a *SQLText) Register(r chi.Router) {
	for path, h := range map[string]HandlerFunc{"/v1/sql/parse": a.parse, "/v1/sql/format": a.format} {
		r.Get(path, a.handle(h))
		r.Post(path, a.handle(h))
	}
}

// handle answers errors in the form of /v1/sql.
func (a *SQLText) handle(h HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		HandleWith(h, func(w http.ResponseWriter, r *http.Request, status int, err error) {
			w.Header().Set("x-greptime-execution-time", millis(start))
			WriteJSON(w, status, sqlError{Code(fault.KindOf(err)), Message(r, err), time.Since(start).Milliseconds()})
		})(w, r)
	}
}

// parse answers the trees of the statements, in a list.
func (a *SQLText) parse(w http.ResponseWriter, r *http.Request) error {
	script, err := readScript(r)
	if err != nil {
		return err
	}
	trees, err := a.Engine.Trees(r.Context(), &sql.Session{}, script)
	if err != nil {
		return err
	}
	WriteJSON(w, http.StatusOK, trees)
	return nil
}

// format answers the statements in one style.
func (a *SQLText) format(w http.ResponseWriter, r *http.Request) error {
	script, err := readScript(r)
	if err != nil {
		return err
	}
	text, err := a.Engine.Format(r.Context(), &sql.Session{}, script)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", jsonType)
	answer := append([]byte(`{"formatted":`), query.AppendJSONString(nil, text)...) // WriteJSON would escape < and >
	_, err = w.Write(append(answer, '}', '\n'))
	return err
}

// maxLookedAt bounds the text that is parsed or formatted: trees are many
// times as large and are held whole.
const maxLookedAt = 1 << 20

func readScript(r *http.Request) (sql.Script, error) {
	p, err := readSQLParams(r)
	if err != nil {
		return nil, err
	}
	text := p.text("sql")
	if len(text) > maxLookedAt {
		return nil, fault.Errorf(fault.TooLarge, "a text to be parsed or formatted may have %d bytes, not %d", maxLookedAt, len(text))
	}
	return sql.Parse(text)
}
