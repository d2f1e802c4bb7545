// Package server owns the process: it opens what the configuration asks for in
// the order in which things need each other, and closes it in reverse.
//
//  1. The data directory is locked.
//  2. The listener opens; /health, /status, /metrics and /ready answer, every
//     other address says 503.
//  3. The catalog and the engine recover; then the protocols are served.
//  4. On the end of the context /ready says 503; http.drain_delay later the
//     listener closes, running requests end within http.shutdown_timeout, what
//     is left of them is answered with 503, and the engine flushes.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/handlers"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/server/config"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/telemetry"
)

// A Server is a running server. Start makes it, Close ends it.
type Server struct {
	cfg      config.Config
	log      *slog.Logger
	budget   Budget
	registry *prometheus.Registry
	home     *home
	router   *handlers.Router
	listener net.Listener
	http     *http.Server
	cut      context.CancelCauseFunc // ends the contexts of all requests
	served   chan error              // what Serve ended with; Start's goroutine sends one
	parts    parts
	engine   atomic.Pointer[storage.Engine] // nil until it is open
}

// Run serves until ctx ends, or until something fails that a server cannot
// live without. It returns nil after an orderly stop.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	s, err := Start(cfg, log)
	if err != nil {
		return err
	}
	err = s.Recover(ctx)
	if err == nil {
		log.Info("ready", "addr", s.Addr(), "data_home", s.home.dir)
		err = s.wait(ctx)
	}
	if ctx.Err() != nil {
		err = nil // asked to stop, maybe in the middle of recovery
	}
	log.Info("stopping", "drain_delay", cfg.HTTP.DrainDelay.String(), "shutdown_timeout", cfg.HTTP.ShutdownTimeout.String())
	if err == nil && s.router.Ready() {
		s.Drain()
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// Start locks the data directory and opens the listener.
func Start(cfg config.Config, log *slog.Logger) (*Server, error) {
	s := &Server{
		cfg:      cfg,
		log:      log,
		budget:   newBudget(int64(cfg.Memory.Limit), os.DirFS("/")),
		registry: telemetry.NewRegistry(),
		served:   make(chan error, 1),
	}
	s.budget.apply()
	s.budget.register(s.registry)
	registerDisk(s.registry, cfg.DataHome)
	var err error
	if s.home, err = openHome(objectstore.OSDisk(), cfg.DataHome); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.home.Close())
	}
	b := s.budget
	if b.Total > b.Machine {
		log.Warn("memory.limit is more than there is; the kernel may kill this process before it reaches the limit",
			"memory", config.Size(b.Total).String(), "there_is", config.Size(b.Machine).String())
	}
	log.Info("starting", "addr", s.Addr(), "data_home", s.home.dir, "version", telemetry.Build().Version,
		"memory", config.Size(b.Total).String(), "memory_from", b.Source)
	return s, nil
}

func (s *Server) listen() error {
	listener, err := net.Listen("tcp", s.cfg.HTTP.Addr)
	if err != nil {
		return fmt.Errorf("listen on http.addr: %w", err)
	}
	s.listener = stallListener{listener, time.Duration(s.cfg.HTTP.StallTimeout)}
	s.router = handlers.NewRouter(handlers.RouterOptions{
		BodyLimit:   s.bodyLimit(),
		BodiesInMem: s.budget.Bodies,
		Logger:      s.log,
		Registry:    s.registry,
		LogAll:      s.cfg.Log.Requests == "all",
		Slow:        time.Duration(s.cfg.Log.SlowRequests),
		HiddenPath:  s.home.dir,
		Admin:       &handlers.Admin{Started: time.Now(), Registry: s.registry, Config: s.cfg.TOML(), Damaged: s.damagedFiles},
	})
	base, cut := context.WithCancelCause(context.Background())
	s.cut = cut
	s.http = &http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		Handler:           s.router,
		ReadHeaderTimeout: time.Duration(s.cfg.HTTP.ReadHeaderTimeout),
		ReadTimeout:       time.Duration(s.cfg.HTTP.ReadTimeout),
		IdleTimeout:       time.Duration(s.cfg.HTTP.IdleTimeout),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	go func() { s.served <- s.http.Serve(s.listener) }()
	return nil
}

// damagedFiles returns how many damaged files were met since the start.
func (s *Server) damagedFiles() int {
	if e := s.engine.Load(); e != nil {
		return len(e.Damaged())
	}
	return 0
}

// bodyLimit returns the largest body that is taken. One that needs more than
// all bodies may have would wait for memory that never comes, and its client
// would be told to try again for ever.
func (s *Server) bodyLimit() int64 {
	limit, fits := int64(s.cfg.HTTP.BodyLimit), s.budget.Bodies-1 // reading takes one byte more, to see the end
	if limit <= fits {
		return limit
	}
	s.log.Warn("http.body_limit is more than the memory for bodies, which bounds it", "http.body_limit", config.Size(limit).String(),
		"bodies", config.Size(s.budget.Bodies).String(), "memory", config.Size(s.budget.Total).String())
	return fits
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Recover opens the data and serves the protocols.
func (s *Server) Recover(ctx context.Context) error {
	protocols, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.router.Serve(protocols...)
	return nil
}

// wait returns when ctx ends or the listener fails.
func (s *Server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		s.served <- err // Close reads it too
		return fmt.Errorf("serve HTTP: %w", err)
	}
}

// Drain makes /ready say 503, and goes on serving for the drain delay, so that
// load balancers look elsewhere before the listener closes.
func (s *Server) Drain() {
	s.router.Drain()
	s.http.SetKeepAlivesEnabled(false) // clients come back by way of the load balancer
	time.Sleep(time.Duration(s.cfg.HTTP.DrainDelay))
}

// cutTime is what requests get to answer that they are cut.
const cutTime = 2 * time.Second

// Close stops listening, lets running requests end within the shutdown
// timeout, flushes what is in memory and gives up the data directory.
func (s *Server) Close() error {
	s.router.Drain()
	if err := s.shutdown(time.Duration(s.cfg.HTTP.ShutdownTimeout)); err != nil {
		s.log.Warn("requests did not end in time and are cut", "error", err)
		s.cut(handlers.ErrStopping)
		if s.shutdown(cutTime) != nil {
			_ = s.http.Close() // the listener is closed already; only connections are left
		}
	}
	s.cut(handlers.ErrStopping)
	var err error
	if e := <-s.served; !errors.Is(e, http.ErrServerClosed) {
		err = fmt.Errorf("serve HTTP: %w", e)
	}
	return errors.Join(err, s.parts.close(), s.home.Close())
}

// shutdown closes the listener and waits for the requests to end.
func (s *Server) shutdown(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.http.Shutdown(ctx)
}
