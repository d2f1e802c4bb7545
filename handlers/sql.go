package handlers

import (
	"cmp"
	"context"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/table"
)

// A SQLEngine is what SQL needs of sql.Engine.
type SQLEngine interface {
	Run(ctx context.Context, s *sql.Session, script sql.Script, yield func(sql.Result) error) error
	CheckDatabase(name string) error
}

// SQL serves /v1/sql.
type SQL struct {
	Engine  SQLEngine
	Timeout time.Duration // of a request that does not give its own; none
	Strict  bool          // whether missing rows are an error, if a request does not say
}

var _ Protocol = (*SQL)(nil)

// Register adds the route.
func (a *SQL) Register(r chi.Router) {
	r.Get("/v1/sql", a.serve)
	r.Post("/v1/sql", a.serve)
}

// serve measures the time of the request, which answers and errors carry.
func (a *SQL) serve(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	HandleWith(
		func(w http.ResponseWriter, r *http.Request) error { return a.run(w, r, start) },
		func(w http.ResponseWriter, r *http.Request, status int, err error) {
			w.Header().Set("x-greptime-execution-time", millis(start))
			WriteJSON(w, status, sqlError{Code(fault.KindOf(err)), Message(r, err), time.Since(start).Milliseconds()})
		},
	)(w, r)
}

// A sqlError is the form of an error at /v1/sql.
type sqlError struct {
	Code     int    `json:"code"`
	Error    string `json:"error"`
	Duration int64  `json:"execution_time_ms"`
}

func millis(start time.Time) string { return strconv.FormatInt(time.Since(start).Milliseconds(), 10) }

// run runs the statements of the request and streams their results.
func (a *SQL) run(w http.ResponseWriter, r *http.Request, start time.Time) error {
	p, err := readSQLParams(r)
	if err != nil {
		return err
	}
	session, err := a.session(r, p)
	if err != nil {
		return err
	}
	SetDatabase(r, session.Database)
	format, err := formatOf(p.text)
	if err != nil {
		return err
	}
	limit, err := p.limit()
	if err != nil {
		return err
	}
	timeout, err := a.timeout(r)
	if err != nil {
		return err
	}
	strict, err := a.strict(r, p)
	if err != nil {
		return err
	}
	noteStatement(r, p.text("sql"))
	script, err := sql.Parse(p.text("sql"))
	if err != nil {
		metricsOf(r.Context()).countStatement(p.text("sql"), Code(fault.KindOf(err)))
		return err
	}
	if len(script) > 1 && !format.several {
		return fault.Errorf(fault.Invalid, "the format %s has room for one statement, not %d", format.name, len(script))
	}
	ctx := r.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out := newAnswer(w, format, limit, start)
	defer out.release()
	out.strict = strict
	enc := format.encoder(out)
	err = runObserved(ctx, a.Engine, session, script, func(result sql.Result) error { return enc.result(ctx, result) })
	if err == nil {
		enc.end()
		return out.finish()
	}
	if timeout > 0 && fault.KindOf(err) == fault.Timeout {
		err = fault.Errorf(fault.Timeout, "the request ran longer than %s: %w", timeout, err)
	}
	if !enc.fail(r, err) {
		return err
	}
	noteError(r, err)
	_ = out.finish() // a client that is gone needs no error
	return nil
}

// noteError lets the access log have an error that is part of an answer.
func noteError(r *http.Request, err error) { exchangeOf(r).err = err }

func (a *SQL) session(r *http.Request, p sqlParams) (*sql.Session, error) {
	database := withoutCatalog(cmp.Or(r.Header.Get("x-greptime-db-name"), p.text("db"), catalog.Public), a.Engine.CheckDatabase)
	if err := a.Engine.CheckDatabase(database); err != nil {
		return nil, err
	}
	s := &sql.Session{Database: database}
	if zone := cmp.Or(r.Header.Get("x-greptime-timezone"), p.text("timezone")); zone != "" {
		var err error
		if s.TimeZone, err = table.ParseZone(zone); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (a *SQL) timeout(r *http.Request) (time.Duration, error) {
	text := r.Header.Get("x-greptime-timeout")
	if text == "" {
		return a.Timeout, nil
	}
	d, ok := sql.ParseDuration(text)
	if !ok || d <= 0 {
		return 0, fault.Errorf(fault.Invalid, "x-greptime-timeout: %q is not a duration such as 30s", text)
	}
	return d, nil
}

// strict reports whether rows that damaged files lack are an error and not a
// warning.
func (a *SQL) strict(r *http.Request, p sqlParams) (bool, error) {
	text := cmp.Or(r.Header.Get("x-varve-strict"), p.text("strict"))
	if text == "" {
		return a.Strict, nil
	}
	strict, err := strconv.ParseBool(text)
	if err != nil {
		return false, fault.Errorf(fault.Invalid, "strict must be true or false, not %q", text)
	}
	return strict, nil
}

// sqlParams are the parameters of a request; those in the URL win over those
// in the body.
type sqlParams struct{ url, body url.Values }

func readSQLParams(r *http.Request) (sqlParams, error) {
	p := sqlParams{}
	var err error
	if p.url, err = parseForm(r.URL.RawQuery); err != nil {
		return p, fault.Errorf(fault.Invalid, "read the parameters in the URL: %w", err)
	}
	if r.Method == http.MethodPost {
		if p.body, err = readForm(r); err != nil {
			return p, err
		}
	}
	if p.text("sql") == "" {
		return p, fault.Errorf(fault.Invalid, "the parameter sql is missing")
	}
	return p, nil
}

// readForm reads the parameters in the body, which may be empty.
func readForm(r *http.Request) (url.Values, error) {
	body, err := ReadBody(r, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if len(body.Bytes()) == 0 {
		return nil, nil
	}
	contentType := r.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(contentType); media != "application/x-www-form-urlencoded" {
		return nil, WithStatus(http.StatusUnsupportedMediaType,
			fault.Errorf(fault.Invalid, "the body must be application/x-www-form-urlencoded, not %q", contentType))
	}
	form, err := parseForm(string(body.Bytes()))
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "read the parameters in the body: %w", err)
	}
	return form, nil
}

// parseForm is url.ParseQuery, but leaves a semicolon be what it is in SQL:
// curl -d 'sql=SELECT 1;' does not escape it.
func parseForm(s string) (url.Values, error) {
	form := url.Values{}
	for pair := range strings.SplitSeq(s, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err != nil {
			return nil, err
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, err
		}
		form.Add(key, value)
	}
	return form, nil
}

func (p sqlParams) text(name string) string { return cmp.Or(p.url.Get(name), p.body.Get(name)) }

// limit returns how many rows of each result are wanted.
func (p sqlParams) limit() (int64, error) {
	text := p.text("limit")
	if text == "" {
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Errorf(fault.Invalid, "the parameter limit must be a number of rows, not %q", text)
	}
	return n, nil
}
