// Package server owns the process: it opens what the configuration asks for in
// the order in which things need each other, and closes it in reverse.
//
//  1. The data directory is locked.
//  2. The listener opens; /health, /status, /metrics and /ready answer, every
//     other address says 503.
//  3. The catalog and the engine recover; then the protocols are served.
//  4. On the end of the context the listener closes, running requests end, and
//     the engine flushes.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/handlers"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/server/config"
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
	served   chan error // what Serve ended with; Start's goroutine sends one
	parts    parts
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
	log.Info("stopping")
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
	var err error
	if s.home, err = openHome(objectstore.OSDisk(), cfg.DataHome); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.home.Close())
	}
	b := s.budget
	log.Info("starting", "addr", s.Addr(), "data_home", s.home.dir, "version", telemetry.Build().Version,
		"memory", config.Size(b.Total).String(), "memory_from", b.Source)
	return s, nil
}

func (s *Server) listen() (err error) {
	if s.listener, err = net.Listen("tcp", s.cfg.HTTP.Addr); err != nil {
		return fmt.Errorf("listen on http.addr: %w", err)
	}
	s.router = handlers.NewRouter(handlers.RouterOptions{
		BodyLimit:   int64(s.cfg.HTTP.BodyLimit),
		BodiesInMem: s.budget.Bodies,
		Logger:      s.log,
		Registry:    s.registry,
		Admin:       &handlers.Admin{Started: time.Now(), Registry: s.registry, Config: s.cfg.TOML()},
	})
	s.http = &http.Server{
		Handler:           s.router,
		ReadHeaderTimeout: time.Duration(s.cfg.HTTP.ReadHeaderTimeout),
		ReadTimeout:       time.Duration(s.cfg.HTTP.ReadTimeout),
		IdleTimeout:       time.Duration(s.cfg.HTTP.IdleTimeout),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	go func() { s.served <- s.http.Serve(s.listener) }()
	return nil
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

// Close stops listening, lets running requests end within the shutdown
// timeout, flushes what is in memory and gives up the data directory.
func (s *Server) Close() error {
	s.router.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.cfg.HTTP.ShutdownTimeout))
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests did not end in time and are cut", "error", err)
		_ = s.http.Close() // the listener is closed already; only connections are left
	}
	var err error
	if e := <-s.served; !errors.Is(e, http.ErrServerClosed) {
		err = fmt.Errorf("serve HTTP: %w", e)
	}
	return errors.Join(err, s.parts.close(), s.home.Close())
}
