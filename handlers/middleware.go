package handlers

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/fault"
)

// observe gives the request its id and its exchange, and when it is over
// writes the access log and the metrics. Bodies, query strings and headers
// never get into the log, for they may hold secrets; but the SQL of requests
// that fail or are slow does, without the values of INSERT.
func (rt *Router) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{id: requestID(r), bodies: rt.bodies, metrics: rt.metrics, hidden: rt.hidden}
		w.Header().Set("X-Request-Id", x.id)
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		rt.metrics.inFlight.Inc()
		defer func() { // also while a panic cuts the connection
			rt.metrics.inFlight.Dec()
			rt.record(ww, r, x, time.Since(start))
		}()
		next.ServeHTTP(ww, x.into(r))
	})
}

func (rt *Router) record(w middleware.WrapResponseWriter, r *http.Request, x *exchange, d time.Duration) {
	status := w.Status()
	if status == 0 {
		status = http.StatusOK
	}
	if x.err != nil && status < http.StatusBadRequest {
		status = StatusOf(x.err) // it came after the first byte, and counts as what it is
	}
	route := chi.RouteContext(r.Context()).RoutePattern()
	if route == "" || route == "/*" {
		route = "other"
	}
	rt.metrics.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Observe(d.Seconds())
	level := rt.logLevel(route, status, d)
	if !rt.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", x.id), slog.String("method", r.Method), slog.String("route", route),
		slog.Int("status", status), slog.Int("bytes", w.BytesWritten()), slog.Duration("duration", d),
		slog.String("remote", r.RemoteAddr),
	}
	if x.database != "" {
		attrs = append(attrs, slog.String("db", x.database))
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", logText(x.err)), slog.Int("code", Code(fault.KindOf(x.err))))
	}
	if x.statement != "" && (x.err != nil || rt.isSlow(d)) {
		attrs = append(attrs, slog.String("sql", x.statement))
	}
	rt.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// logText bounds what one error may take of the log, if it is ours to mend
// more.
func logText(err error) string {
	if fault.KindOf(err) != fault.Internal {
		return headerText(err.Error())
	}
	text := err.Error()
	return text[:min(len(text), 8<<10)]
}

// quietRoutes are polled by machines, and say nothing by being asked.
var quietRoutes = map[string]bool{"/health": true, "/v1/health": true, "/ready": true, "/metrics": true}

// methodLabel keeps made-up methods from making series.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return m
	default:
		return "other"
	}
}

// requestID takes the client's id if it is a plain short one, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 || headerText(id) != id {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		id = hex.EncodeToString(b[:])
	}
	return id
}

// recoverPanics answers a panic with 500 and the request id, under which the
// stack is logged. It works inside of compression, so that no half of an
// answer leaves as a whole one.
func (rt *Router) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r)
		rw := x.track(w)
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			rt.metrics.panics.Inc()
			x.err = fault.Errorf(fault.Internal, "panic: %v", p)
			rt.log.Error("panic", "request_id", x.id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if rw.started {
				panic(http.ErrAbortHandler)
			}
			setErrorHeaders(rw.Header(), r, http.StatusInternalServerError, x.err)
			writeError(rw, r, http.StatusInternalServerError, x.err)
		}()
		next.ServeHTTP(rw, r)
	})
}

// httpMetrics are the router's own metrics.
type httpMetrics struct {
	requests   *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	panics     prometheus.Counter
	statements *prometheus.CounterVec
	lines      *prometheus.CounterVec
	partial    *prometheus.CounterVec
}

func newHTTPMetrics(reg prometheus.Registerer) *httpMetrics {
	m := &httpMetrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "varve_http_request_duration_seconds",
			Help:    "Time from the request's header to the end of the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"route", "method", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "varve_http_requests_in_flight", Help: "Requests being worked on.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "varve_http_panics_total", Help: "Requests that ended in a panic.",
		}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "varve_sql_statements_total",
			Help: "SQL statements by their first word and the code they ended with, 0 for success.",
		}, []string{"kind", "code"}),
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "varve_ingest_lines_total",
			Help: "Lines of requests that were answered, by whether they were written or can never be.",
		}, []string{"protocol", "result"}),
		partial: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "varve_ingest_partial_writes_total", Help: "Requests of which some lines could not be written.",
		}, []string{"protocol"}),
	}
	reg.MustRegister(m.requests, m.inFlight, m.panics, m.statements, m.lines, m.partial)
	return m
}
