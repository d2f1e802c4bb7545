package handlers

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/fault"
)

// RouterOptions tunes a Router. A zero field means its default.
type RouterOptions struct {
	BodyLimit   int64                // bytes of one body after decompression; 64 MiB
	BodiesInMem int64                // bytes of all bodies being worked on; unbounded
	Logger      *slog.Logger         // slog.Default()
	Registry    *prometheus.Registry // a new one
	LogAll      bool                 // log requests that succeed at info; at debug
	Slow        time.Duration        // requests that take as long are logged at warn; never
	HiddenPath  string               // of the data directory, which clients are not told; none
	Admin       Protocol             // routes that answer before the server is ready; none
}

// A Router answers from the moment the listener opens. Until Serve it knows
// only the administrative routes, and asks for patience on every other.
type Router struct {
	log     *slog.Logger
	logAll  bool
	slow    time.Duration
	hidden  string
	bodies  *bodyBudget
	metrics *httpMetrics
	admin   Protocol
	current atomic.Pointer[chi.Mux]
	ready   atomic.Bool
}

// NewRouter returns a Router that is not ready.
func NewRouter(opts RouterOptions) *Router {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Registry == nil {
		opts.Registry = prometheus.NewRegistry()
	}
	rt := &Router{
		log:     opts.Logger,
		logAll:  opts.LogAll,
		slow:    opts.Slow,
		hidden:  opts.HiddenPath,
		bodies:  newBodyBudget(opts.BodiesInMem, opts.BodyLimit),
		metrics: newHTTPMetrics(opts.Registry),
		admin:   opts.Admin,
	}
	starting := rt.newMux()
	starting.NotFound(Handle(func(http.ResponseWriter, *http.Request) error {
		return fault.Errorf(fault.Unavailable, "the server is starting")
	}))
	rt.current.Store(starting)
	return rt
}

// Serve adds the protocols and makes the Router ready.
func (rt *Router) Serve(protocols ...Protocol) {
	mux := rt.newMux()
	for _, p := range protocols {
		p.Register(mux)
	}
	rt.current.Store(mux)
	rt.ready.Store(true)
}

// Drain makes /ready fail, so that load balancers look elsewhere while the
// last requests are answered.
func (rt *Router) Drain() { rt.ready.Store(false) }

// Ready reports whether requests are answered.
func (rt *Router) Ready() bool { return rt.ready.Load() }

// ServeHTTP answers one request.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt.current.Load().ServeHTTP(w, r)
}

func (rt *Router) newMux() *chi.Mux {
	mux := chi.NewRouter()
	mux.Use(rt.observe, compress(), rt.recoverPanics, middleware.GetHead)
	mux.NotFound(Handle(func(_ http.ResponseWriter, r *http.Request) error {
		return fault.Errorf(fault.NotFound, "no such address: %s", r.URL.Path)
	}))
	mux.MethodNotAllowed(Handle(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowedMethods(mux, r.URL.Path))
		return WithStatus(http.StatusMethodNotAllowed,
			fault.Errorf(fault.Invalid, "%s does not take %s", r.URL.Path, r.Method))
	}))
	mux.Get("/ready", Handle(rt.serveReady))
	mux.Post("/ready", Handle(rt.serveReady))
	if rt.admin != nil {
		rt.admin.Register(mux)
	}
	return mux
}

// serveReady answers 200 once recovery is done and until the server drains.
func (rt *Router) serveReady(w http.ResponseWriter, _ *http.Request) error {
	if !rt.Ready() {
		return fault.Errorf(fault.Unavailable, "the server is starting or stopping")
	}
	WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

func allowedMethods(mux *chi.Mux, path string) string {
	var allowed []string
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
		if mux.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	return strings.Join(allowed, ", ")
}

// compress gzips answers of 1 KiB and more, where the client takes gzip.
// Streamed answers keep their flushes.
func compress() func(http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.EnableZstd(false), gzhttp.CompressionLevel(1))
	if err != nil {
		panic(err) // only wrong options fail
	}
	return func(next http.Handler) http.Handler { return wrap(next) }
}
