package storagetest

import (
	"context"
	"io"
	"log/slog"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

// Small are limits at which a workload of some kilobytes rotates the log,
// comes under its pressure, and flushes by itself.
type Small struct {
	SegmentBytes, LogBytes, FlushBytes int64
}

// Open opens an engine as a server does: the log on disk under "data", files
// in bucket, and the tables and the next id of a catalog. The caller closes it.
func Open(ctx context.Context, disk objectstore.Disk, bucket objectstore.Bucket, tables table.Resolver, next table.ID, small Small) (*storage.Engine, error) {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	return storage.Open(ctx, storage.Options{
		Disk: disk, DataDir: "data", Bucket: bucket, Tables: tables, NextTable: next, FlushBytes: small.FlushBytes,
		WAL: wal.Options{SegmentBytes: small.SegmentBytes, MaxBytes: small.LogBytes, Logger: logger}, Logger: logger,
	})
}
