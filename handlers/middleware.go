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
// never get into the log: they may hold secrets.
func (rt *Router) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{id: requestID(r), bodies: rt.bodies, log: rt.log}
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
	route := chi.RouteContext(r.Context()).RoutePattern()
	if route == "" || route == "/*" {
		route = "other"
	}
	rt.metrics.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Observe(d.Seconds())
	level := slog.LevelInfo
	if quietRoutes[route] {
		level = slog.LevelDebug
	}
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
	if x.err != nil && fault.KindOf(x.err) != fault.Internal { // those have a line of their own
		attrs = append(attrs, slog.String("error", headerText(x.err.Error())))
	}
	rt.log.LogAttrs(r.Context(), level, "request", attrs...)
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
			rt.log.Error("panic", "request_id", x.id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if rw.started {
				panic(http.ErrAbortHandler)
			}
			err := fault.Errorf(fault.Internal, "panic: %v", p)
			setErrorHeaders(rw.Header(), r, http.StatusInternalServerError, err)
			writeError(rw, r, http.StatusInternalServerError, err)
		}()
		next.ServeHTTP(rw, r)
	})
}

// httpMetrics are the router's own metrics.
type httpMetrics struct {
	requests *prometheus.HistogramVec
	inFlight prometheus.Gauge
	panics   prometheus.Counter
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
	}
	reg.MustRegister(m.requests, m.inFlight, m.panics)
	return m
}
