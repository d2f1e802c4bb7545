package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest"
	"github.com/varvedb/varve/ingest/lineprotocol"
)

// influxVersion is the version of InfluxDB whose behaviour clients may expect;
// they choose features by it.
const influxVersion = "1.8.10"

// Influx serves InfluxDB's ways to write: the line protocol over the v1 and v2
// addresses, and what agents ask before they write.
type Influx struct {
	Ingester *ingest.Ingester
	Catalog  *catalog.Catalog
}

// Register adds the routes, with GreptimeDB's prefix and bare, as clients send
// them that cannot be given a prefix.
func (i *Influx) Register(r chi.Router) {
	r = r.With(influxHeaders)
	for _, prefix := range []string{"", "/v1/influxdb"} {
		r.Post(prefix+"/write", HandleWith(i.write, writeInfluxV1Error))
		r.Post(prefix+"/api/v2/write", HandleWith(i.write, writeInfluxV2Error))
		r.Get(prefix+"/ping", Handle(i.ping))
		r.Head(prefix+"/ping", Handle(i.ping))
		r.Get(prefix+"/query", HandleWith(i.query, writeInfluxV1Error))
		r.Post(prefix+"/query", HandleWith(i.query, writeInfluxV1Error))
	}
	r.Get("/v1/influxdb/health", Handle(i.health))
}

// influxHeaders sets what clients recognise an InfluxDB by.
func influxHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Influxdb-Version", influxVersion)
		h.Set("X-Influxdb-Build", "Varve")
		h.Set("Request-Id", RequestID(r))
		next.ServeHTTP(w, r)
	})
}

// write serves POST /write and /api/v2/write. Lines that cannot be written are
// an error of the request, as InfluxDB has it, but the others are written.
func (i *Influx) write(w http.ResponseWriter, r *http.Request) error {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.Errorf(fault.Invalid, "parse the query string: %w", err)
	}
	precision, err := lineprotocol.ParsePrecision(params.Get("precision"))
	if err != nil {
		return err
	}
	db := withoutCatalog(influxDatabase(r, params), func(name string) error {
		_, err := i.Catalog.Database(name)
		return err
	})
	SetDatabase(r, db)
	if _, err := i.Catalog.Database(db); err != nil {
		return influxError(err) // before the body is read: it may be large
	}
	body, err := ReadBody(r, 0)
	if err != nil {
		return err
	}
	defer body.Close()
	if bytes.HasPrefix(body.Bytes(), gzipMagic) {
		return fault.Errorf(fault.Invalid, "the body is compressed: it needs the header Content-Encoding: gzip")
	}
	report, err := i.Ingester.LineProtocol(r.Context(), db, body.Bytes(), precision)
	if err != nil {
		return influxError(err)
	}
	metricsOf(r.Context()).countLines("influxdb", report.Rows, report.Dropped)
	if report.Dropped > 0 {
		return fault.Wrap(fault.Invalid, &partialWrite{report, lostNewlines(body.Bytes())})
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// influxDatabase returns the database that a request names. A bucket may carry
// a retention policy behind a slash, which has no meaning here.
func influxDatabase(r *http.Request, params url.Values) string {
	if name := r.Header.Get("X-Greptime-Db-Name"); name != "" {
		return name
	}
	if name := params.Get("db"); name != "" {
		return name
	}
	if name, _, _ := strings.Cut(params.Get("bucket"), "/"); name != "" {
		return name
	}
	return catalog.Public
}

// influxError gives a missing database the status that makes agents create it.
func influxError(err error) error {
	if fault.KindOf(err) == fault.DatabaseMissing {
		return WithStatus(http.StatusNotFound, err)
	}
	return err
}

var gzipMagic = []byte{0x1f, 0x8b}

// lostNewlines reports whether a body that could not be decoded looks like
// lines that curl -d has made one: a line has at most two spaces outside of
// strings.
func lostNewlines(body []byte) bool {
	return !bytes.ContainsAny(body, "\n\"\\") && bytes.Count(body, []byte(" ")) > 2
}

// A partialWrite says which lines of a request were not written.
type partialWrite struct {
	*ingest.Report
	joined bool // the lines look like several without newlines
}

// Error returns InfluxDB's wording, which agents look for, with the first bad
// lines.
func (p *partialWrite) Error() string {
	var s strings.Builder
	s.WriteString("partial write: ")
	for n, e := range p.Errors {
		if n > 0 {
			s.WriteString("; ")
		}
		if e.Line > 0 {
			fmt.Fprintf(&s, "line %d: ", e.Line)
		}
		s.WriteString(e.Reason)
	}
	if p.joined {
		s.WriteString("; are these several lines? curl -d takes newlines out, --data-binary keeps them")
	}
	fmt.Fprintf(&s, " dropped=%d", p.Dropped)
	return s.String()
}

func writeInfluxV1Error(w http.ResponseWriter, r *http.Request, status int, err error) {
	message := Message(r, err)
	w.Header().Set("X-Influxdb-Error", headerText(message))
	WriteJSON(w, status, map[string]string{"error": message})
}

func writeInfluxV2Error(w http.ResponseWriter, r *http.Request, status int, err error) {
	answer := struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Line    int    `json:"line,omitempty"` // the first bad one
	}{Code: influxCode(status), Message: Message(r, err)}
	var partial *partialWrite
	if errors.As(err, &partial) && len(partial.Errors) > 0 {
		answer.Line = partial.Errors[0].Line
	}
	w.Header().Set("X-Influx-Error", headerText(answer.Message))
	WriteJSON(w, status, answer)
}

// influxCode returns InfluxDB 2's name for a status.
func influxCode(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not found"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusUnauthorized:
		return "unauthorized"
	case http.StatusRequestEntityTooLarge:
		return "request too large"
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "unavailable"
	}
	if status >= http.StatusInternalServerError {
		return "internal error"
	}
	return "invalid"
}

// ping serves GET and HEAD /ping.
func (i *Influx) ping(w http.ResponseWriter, r *http.Request) error {
	switch r.URL.Query().Get("verbose") {
	case "", "0", "false":
		w.WriteHeader(http.StatusNoContent)
	default:
		WriteJSON(w, http.StatusOK, map[string]string{"version": influxVersion})
	}
	return nil
}

// health serves GET /v1/influxdb/health.
func (i *Influx) health(w http.ResponseWriter, _ *http.Request) error {
	WriteJSON(w, http.StatusOK, map[string]any{
		"name": "influxdb", "message": "ready for queries and writes", "status": "pass",
		"checks": []string{}, "version": influxVersion,
	})
	return nil
}

// query serves GET and POST /query: the few statements that agents send before
// they write.
func (i *Influx) query(w http.ResponseWriter, r *http.Request) error {
	q, err := influxStatement(r)
	if err != nil {
		return err
	}
	statements, err := parseInfluxQL(q)
	if err != nil {
		return err
	}
	answer := struct {
		Results []influxResult `json:"results"`
	}{make([]influxResult, 0, len(statements))}
	for id, s := range statements {
		result, err := i.run(r.Context(), s)
		if err != nil {
			return err
		}
		result.StatementID = id
		answer.Results = append(answer.Results, result)
	}
	WriteJSON(w, http.StatusOK, answer)
	return nil
}

// influxStatement returns the parameter q, from the URL or a form.
func influxStatement(r *http.Request) (string, error) {
	params, err := parseForm(r.URL.RawQuery)
	if err != nil {
		return "", fault.Errorf(fault.Invalid, "parse the query string: %w", err)
	}
	if q := params.Get("q"); q != "" {
		return q, nil
	}
	if r.Method == http.MethodPost {
		body, err := ReadBody(r, maxStatementBytes)
		if err != nil {
			return "", err
		}
		defer body.Close()
		form, err := parseForm(string(body.Bytes()))
		if err != nil {
			return "", fault.Errorf(fault.Invalid, "parse the form: %w", err)
		}
		if q := form.Get("q"); q != "" {
			return q, nil
		}
	}
	return "", fault.Errorf(fault.Invalid, "missing required parameter \"q\"")
}

// maxStatementBytes bounds the form of a query.
const maxStatementBytes = 1 << 20

// An influxResult is what one statement answers.
type influxResult struct {
	StatementID int            `json:"statement_id"`
	Series      []influxSeries `json:"series,omitempty"`
}

type influxSeries struct {
	Name    string     `json:"name"`
	Columns []string   `json:"columns"`
	Values  [][]string `json:"values"`
}

func (i *Influx) run(ctx context.Context, s influxQL) (influxResult, error) {
	if s.createDatabase != "" {
		return influxResult{}, i.Catalog.CreateDatabase(ctx, s.createDatabase, true, nil)
	}
	series := influxSeries{Name: "databases", Columns: []string{"name"}}
	for _, db := range i.Catalog.Databases() {
		series.Values = append(series.Values, []string{db.Name})
	}
	return influxResult{Series: []influxSeries{series}}, nil
}
