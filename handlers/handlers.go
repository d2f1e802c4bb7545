// Package handlers speaks the protocols: one file decodes a protocol's
// parameters, calls one method of the packages below, and encodes the answer.
//
// A protocol is a type with a Register method. Its handlers return errors
// instead of writing them; Handle turns an error into the one status that its
// fault kind maps to, and a protocol with an error form of its own gives its
// ErrorWriter to HandleWith.
package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/varvedb/varve/fault"
)

// A Protocol adds its routes to a router.
type Protocol interface {
	Register(r chi.Router)
}

// A HandlerFunc answers a request, or returns an error before the first byte
// of the answer.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// An ErrorWriter answers a request with an error in its protocol's form. The
// status is already chosen (see Status); Message gives the text that may be
// shown.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, status int, err error)

// Handle adapts a handler whose errors are answered as {"error": "..."}.
func Handle(h HandlerFunc) http.HandlerFunc { return HandleWith(h, writeError) }

// HandleWith adapts a handler whose errors have a form of their own. Headers
// that every error carries are set before write is called. An error after the
// first byte of the answer cuts the connection, so that no client takes the
// part for the whole.
func HandleWith(h HandlerFunc, write ErrorWriter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r)
		rw := x.track(w)
		err := h(rw, r)
		if err == nil {
			return
		}
		err = whoseFault(r.Context(), err)
		x.err = err
		if rw.started {
			panic(http.ErrAbortHandler)
		}
		drain(r, x.bodyBegun)
		status := StatusOf(err)
		setErrorHeaders(rw.Header(), r, status, err)
		write(rw, r, status, err)
	}
}

func setErrorHeaders(h http.Header, r *http.Request, status int, err error) {
	h.Del("Content-Length")
	h.Set("x-greptime-err-code", strconv.Itoa(Code(fault.KindOf(err))))
	h.Set("x-greptime-err-msg", headerText(Message(r, err)))
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
}

// headerText makes a text fit for a header: one line of bounded length.
func headerText(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, s)
	return s[:min(len(s), 512)]
}

func writeError(w http.ResponseWriter, r *http.Request, status int, err error) {
	WriteJSON(w, status, map[string]string{"error": Message(r, err)})
}

// WriteJSON answers with a small JSON document.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("handlers: %T cannot be JSON: %v", v, err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that is gone needs no answer
}

// RequestID returns the id under which the request is logged.
func RequestID(r *http.Request) string { return exchangeOf(r).id }

// withoutCatalog takes the catalog off a database's name such as
// greptime-public, unless check knows a database of just that name.
func withoutCatalog(name string, check func(name string) error) string {
	if rest, ok := strings.CutPrefix(name, "greptime-"); ok && rest != "" && check(name) != nil {
		return rest
	}
	return name
}

// SetDatabase names the database of the request in the access log.
func SetDatabase(r *http.Request, name string) { exchangeOf(r).database = name }

// An exchange is what the middleware and the handlers share about one request.
// Only the request's goroutine touches it.
type exchange struct {
	id        string
	database  string
	statement string // SQL, as far as the log may have it
	err       error  // the error that was answered
	reply     *reply
	bodies    *bodyBudget
	bodyBegun bool         // whether some of the body may have been read
	metrics   *httpMetrics // nil outside of a Router
	hidden    string       // a path that no client is told
}

type exchangeKey struct{}

// exchangeOf returns the request's exchange; outside a Router, where handlers
// are tested alone, it is a new one without a budget.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{id: "none", bodies: &bodyBudget{}}
}

// metricsOf returns the metrics of the Router that ctx comes from; nil if none.
func metricsOf(ctx context.Context) *httpMetrics {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x.metrics
	}
	return nil
}

func (x *exchange) into(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
}

func (x *exchange) track(w http.ResponseWriter) *reply {
	if x.reply == nil {
		x.reply = &reply{ResponseWriter: w}
	}
	return x.reply
}

// A reply knows whether the status line of the answer is decided.
type reply struct {
	http.ResponseWriter
	started bool
}

// WriteHeader starts the answer, unless the status is informational.
func (w *reply) WriteHeader(status int) {
	w.started = w.started || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

// Write starts the answer.
func (w *reply) Write(p []byte) (int, error) {
	w.started = true
	return w.ResponseWriter.Write(p)
}

// Flush sends what is buffered.
func (w *reply) Flush() {
	w.started = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a lost client shows at the next Write
}

// Unwrap serves http.ResponseController.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }
