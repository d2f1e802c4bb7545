package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/handlers"
	"github.com/varvedb/varve/ingest"
	"github.com/varvedb/varve/ingest/lineprotocol"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/telemetry"
)

// parts are the things that are open, in the order in which they were opened.
type parts []part

type part struct {
	name  string
	close func() error
}

func (p *parts) add(name string, close func() error) { *p = append(*p, part{name, close}) }

// close closes everything, last opened first.
func (p *parts) close() error {
	var errs []error
	for i := len(*p) - 1; i >= 0; i-- {
		if err := (*p)[i].close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", (*p)[i].name, err))
		}
	}
	*p = nil
	return errors.Join(errs...)
}

// open opens the data and what works on it, and returns the protocols that
// serve it. What was opened before an error is closed with the server.
func (s *Server) open(ctx context.Context) ([]handlers.Protocol, error) {
	disk := objectstore.OSDisk()
	bucket, err := objectstore.OpenDir(disk, s.home.path(BucketDir))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.home.path(BucketDir), err)
	}
	s.parts.add("bucket", bucket.Close)
	cat, err := catalog.Open(ctx, bucket, CatalogPrefix, catalog.Options{Logger: s.log})
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	engine, err := storage.Open(ctx, s.storageOptions(disk, bucket, cat))
	if err != nil {
		return nil, err
	}
	s.parts.add("storage", engine.Close)
	s.engine.Store(engine)
	queries, err := s.openQuery()
	if err != nil {
		return nil, err
	}
	s.parts.add("query", queries.Close)
	idle, keep := s.budget.idleDecoders(runtime.GOMAXPROCS(0))
	writes := ingest.New(cat, engine, ingest.Options{
		InFlightBytes: s.budget.Writes,
		IdleDecoders:  idle,
		LineProtocol:  lineprotocol.Options{CacheBytes: keep},
	})
	statements := sql.New(sql.Options{
		Catalog: cat, Query: queries, Ingest: writes, Reader: engine, Maintainer: engine,
		InsertBytes: int(min(s.budget.Writes, 256<<20)), // the rows are admitted once they are there
		Version:     telemetry.Build().Version, Logger: s.log,
	})
	return []handlers.Protocol{
		&handlers.SQL{Engine: statements, Timeout: time.Duration(s.cfg.Query.Timeout), Strict: s.cfg.Query.Strict},
		&handlers.SQLText{Engine: statements},
		&handlers.OpenAPI{},
		&handlers.Influx{Ingester: writes, Catalog: cat},
	}, nil
}

func (s *Server) storageOptions(disk objectstore.Disk, bucket objectstore.Bucket, cat *catalog.Catalog) storage.Options {
	sync := wal.Always
	if s.cfg.WAL.Sync == "interval" {
		sync = wal.Interval
	}
	footers := s.budget.Caches / 8
	return storage.Options{
		Disk:           disk,
		DataDir:        s.home.dir,
		Bucket:         bucket,
		Tables:         cat,
		NextTable:      cat.View().NextID(),
		FlushBytes:     int64(s.cfg.Storage.FlushBytes),
		FlushAge:       time.Duration(s.cfg.Storage.FlushAge),
		MemtableBytes:  s.budget.Memtables,
		PageCacheBytes: s.budget.Caches - footers,
		FooterBytes:    footers,
		WAL: wal.Options{
			Sync:     sync,
			Interval: time.Duration(s.cfg.WAL.SyncInterval),
			MaxBytes: int64(s.cfg.WAL.MaxBytes),
			Logger:   s.log,
		},
		Logger:     s.log,
		Registerer: s.registry,
	}
}

// openQuery gives DuckDB an empty directory to spill to.
func (s *Server) openQuery() (*query.Engine, error) {
	dir := s.home.path(scratchDir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return nil, fmt.Errorf("empty %s: %w", dir, err)
	}
	engine, err := query.Open(query.Options{
		TempDir:     dir,
		MemoryLimit: s.budget.DuckDB,
		MaxRunning:  s.cfg.Query.MaxConcurrent,
		MaxQueued:   s.cfg.Query.MaxQueued,

		ProcessLimit: s.budget.Total / 4 * 5,
		Logger:       s.log,
		Registerer:   s.registry,
	})
	if err != nil {
		return nil, fmt.Errorf("open query engine: %w", err)
	}
	return engine, nil
}
