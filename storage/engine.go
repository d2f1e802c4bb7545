// Package storage is the engine: it makes written rows durable and keeps them
// sorted for reading.
//
// # The life of a row
//
//  1. Write gives its batch the next sequence of the region and logs it.
//  2. When the log has it, and every smaller sequence is done, the rows go to
//     the memtables of their time windows, and Write returns.
//  3. A flush seals all memtables of a region, which hold every row up to the
//     applied sequence, writes them out as SSTs, and enters these and that
//     sequence in the manifest with one edit. Then the log may forget them.
//  4. After a crash, records above the manifest's flushed sequence are applied
//     again; the others are in SSTs.
//
// A region is in one of three places of the code: write.go puts rows in,
// flush.go moves them to files, snapshot.go shows them.
package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/table"
)

// Options says what an Engine works on and tunes it. A zero field means its
// default; those without one must be set.
type Options struct {
	Disk    objectstore.Disk   // of the log
	DataDir string             // the log is in its subfolder wal
	Bucket  objectstore.Bucket // of SSTs and manifests
	Prefix  string             // of the keys in the bucket; "table"
	Tables  table.Resolver

	// NextTable is an id that no table of the catalog has ever had, nor any
	// larger one; 0: not known. Data of such a table shows that the catalog has
	// lost its newest edits, and then Open fails.
	NextTable table.ID

	FlushBytes     int64         // size in memory at which a region is flushed; 64 MiB
	FlushAge       time.Duration // age at which an idle region is flushed, plus up to a quarter; 1h
	FlushBackoff   time.Duration // wait after a failed flush, doubled each time up to a minute; 1s
	MemtableBytes  int64         // budget of all memtables; at half of it the largest are flushed, over it writes wait; 512 MiB
	WriteWait      time.Duration // how long a write waits for memory; 10s
	PageCacheBytes int64         // decoded pages of SSTs and, an eighth, how these overlap; 256 MiB
	SeriesRows     int           // rows a series must have on average for a file to get a series index; 8; negative: none gets one
	FooterBytes    int64         // decoded footers of SSTs; 64 MiB
	ShutdownWait   time.Duration // how long Close may flush; 30s
	WAL            wal.Options

	Now        func() time.Time      // time.Now
	Rand       io.Reader             // names of files; crypto/rand
	Logger     *slog.Logger          // slog.Default()
	Registerer prometheus.Registerer // nil: the metrics are not published
}

func (o Options) withDefaults() Options {
	orElse(&o.Prefix, "table")
	orElse(&o.FlushBytes, 64<<20)
	orElse(&o.FlushAge, time.Hour)
	orElse(&o.FlushBackoff, time.Second)
	orElse(&o.MemtableBytes, 512<<20)
	orElse(&o.WriteWait, 10*time.Second)
	orElse(&o.PageCacheBytes, 256<<20)
	orElse(&o.FooterBytes, 64<<20)
	orElse(&o.ShutdownWait, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func orElse[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// An Engine keeps the regions of all tables. It is a table.Writer, a
// table.Reader and a table.Maintainer.
type Engine struct {
	opts    Options
	log     *wal.Log
	pages   *cache.Cache
	readers lru[*sst.Reader]     // by key
	opening singleflight.Group   // of readers
	overlap lru[[][]run.Stretch] // what fileStretches found, by the numbers of the files
	metrics *metrics
	random  lockedReader
	damaged damage

	// unrecovered are the regions whose manifests could not be read by Open,
	// and why. They stay closed until the next Open, even if the manifest is
	// mended: their logged writes are not in memory, and the sequences of these
	// must not be given to others. Only Open writes to it.
	unrecovered map[table.RegionID]error

	recovered relief // what Open did about memory; for tests

	memBytes     atomic.Int64 // of all memtables
	room         roomSignal   // told when memBytes shrinks
	maxTableRows int          // of one memtable; memtable.MaxRows but in tests

	background errgroup.Group
	deletes    sync.WaitGroup  // of files, begun while the engine is not closed
	ctx        context.Context // of background work; ends with Close
	stop       context.CancelFunc
	kick       chan struct{} // holds a token while the flusher has something to look at; never closed
	slots      chan struct{} // a token for each flush that may run
	relocating atomic.Bool

	mu struct {
		sync.Mutex
		regions map[table.RegionID]*slot
		dropped map[table.ID]bool // by Drop since Open
		closed  bool
	}
}

var (
	_ table.Writer     = (*Engine)(nil)
	_ table.Reader     = (*Engine)(nil)
	_ table.Maintainer = (*Engine)(nil)
)

// parallelFlushes is how many regions are flushed at a time. Encoding is bound
// by the processor, which queries and writes want too.
const parallelFlushes = 2

// errClosed reports a call on an engine that is shutting down.
var errClosed = fault.Errorf(fault.Unavailable, "the storage engine is shutting down")

// Open recovers what the log holds and starts the flusher, which runs until
// Close.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	opts = opts.withDefaults()
	e := &Engine{
		opts:  opts,
		pages: cache.New(opts.PageCacheBytes - opts.PageCacheBytes/8),
		kick:  make(chan struct{}, 1),
		slots: make(chan struct{}, parallelFlushes),

		unrecovered:  make(map[table.RegionID]error),
		maxTableRows: memtable.MaxRows,
	}
	e.random.r = opts.Rand
	e.readers.limit = opts.FooterBytes
	e.overlap.limit = opts.PageCacheBytes / 8
	e.mu.regions = make(map[table.RegionID]*slot)
	e.mu.dropped = make(map[table.ID]bool)
	e.ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.metrics = newMetrics(e)
	err := e.checkCatalog(ctx)
	if err == nil {
		err = e.recover(ctx)
	}
	if err != nil {
		e.stop()
		_ = e.background.Wait()
		return nil, fmt.Errorf("open storage: %w", err)
	}
	if err := e.metrics.register(opts.Registerer); err != nil {
		e.stop()
		return nil, errors.Join(fmt.Errorf("open storage: register metrics: %w", err), e.log.Close())
	}
	e.background.Go(e.runFlusher)
	e.wakeFlusher()
	e.background.Go(func() error {
		if err := e.RemoveDropped(e.ctx); err != nil && e.ctx.Err() == nil {
			e.opts.Logger.Warn("storage: files of dropped tables stay until the next start", "error", err)
		}
		return nil
	})
	return e, nil
}

// ErrUnflushed says that an engine was closed before all rows were in files.
// They are in the log, unless their table has none, and the next Open will have
// them.
var ErrUnflushed = errors.New("not all rows were flushed; those that were logged will be recovered")

// Close flushes what is in memory and waits for background work to end. What
// cannot be flushed within ShutdownWait is reported as ErrUnflushed.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return nil
	}
	e.mu.closed = true
	e.mu.Unlock()
	e.stop()
	err := e.background.Wait()
	e.deletes.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), e.opts.ShutdownWait)
	defer cancel()
	flushErr := e.flushAll(ctx, "shutdown")
	if flushErr != nil {
		flushErr = fmt.Errorf("%w: %w", ErrUnflushed, flushErr)
	}
	e.metrics.unregister(e.opts.Registerer)
	return errors.Join(err, flushErr, e.log.Close())
}

// deleteLater runs f, which deletes files, in the background, or returns false
// if the engine is closed.
func (e *Engine) deleteLater(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.closed {
		e.deletes.Go(f)
	}
	return !e.mu.closed
}

// lockedReader serializes reads.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return io.ReadFull(l.r, p)
}
