package query

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/duckdb"
)

// Options tunes an Engine. A zero field means its default.
type Options struct {
	TempDir     string // where large statements spill to; required
	MemoryLimit int64  // bytes that DuckDB may use; 1 GiB
	TempLimit   int64  // bytes of TempDir that it may use; 16 times MemoryLimit
	Threads     int    // of DuckDB; GOMAXPROCS
	MaxRunning  int    // statements that run at once; Threads
	MaxQueued   int    // statements that wait to run; 128 per running one

	// ProcessLimit is the memory of the process over which statements are
	// ended; 0: they are not.
	ProcessLimit int64
	CloseTimeout time.Duration         // what Close waits for statements; 3 s
	Logger       *slog.Logger          // slog.Default()
	Registerer   prometheus.Registerer // nil: the metrics are not published
}

func (o Options) withDefaults() Options {
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = 1 << 30
	}
	if o.TempLimit <= 0 {
		o.TempLimit = 16 * o.MemoryLimit
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.MaxRunning <= 0 {
		o.MaxRunning = o.Threads
	}
	if o.MaxQueued <= 0 {
		o.MaxQueued = 128 * o.MaxRunning
	}
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 3*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// An Engine runs statements. Any number of goroutines may use it.
type Engine struct {
	opts    Options
	slots   *slots
	watch   *watch
	sources sync.Map // id → *source, while a statement may bind it
	nextID  atomic.Int64

	mu struct {
		sync.Mutex
		closed   bool
		instance *instance
	}
}

// Open starts an Engine, which runs until Close.
func Open(opts Options) (*Engine, error) {
	if opts.TempDir == "" {
		return nil, errors.New("query: Options.TempDir is missing")
	}
	e := &Engine{opts: opts.withDefaults()}
	e.slots = newSlots(e.opts.MaxRunning, e.opts.MaxQueued)
	in, err := e.openInstance()
	if err != nil {
		return nil, err
	}
	e.mu.instance = in
	e.watch = newWatch(e.opts)
	return e, nil
}

// Close refuses new statements, waits for the results that are open to be
// closed, and ends the engine. After CloseTimeout it leaves what still runs,
// and DuckDB with it, to the end of the process.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.mu.closed
	e.mu.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	drained := e.slots.drain(e.opts.CloseTimeout)
	e.watch.close()
	if !drained {
		e.opts.Logger.Warn("query: statements still run at the end", "statements", e.watch.texts())
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.instance.close()
	return nil
}

// An instance is one DuckDB database and its idle connections. After an error
// that DuckDB calls fatal it answers nothing any more, and is replaced.
type instance struct {
	db *duckdb.Database

	mu struct {
		sync.Mutex
		broken bool
		idle   []*conn
		open   int
	}
}

// A conn is a connection with the two statements that every query needs.
type conn struct {
	*duckdb.Conn
	in        *instance
	serialize *duckdb.Stmt
	print     *duckdb.Stmt
}

// settings keep DuckDB inside its memory and its process. It is not locked
// further (lock_configuration) since no statement that could change a setting
// gets past the rewriter.
func (e *Engine) settings() []duckdb.Setting {
	return []duckdb.Setting{
		{Name: "temp_directory", Value: e.opts.TempDir},
		{Name: "memory_limit", Value: strconv.FormatInt(e.opts.MemoryLimit, 10) + "B"},
		{Name: "autoload_known_extensions", Value: "false"},
		{Name: "autoinstall_known_extensions", Value: "false"},
		{Name: "allow_community_extensions", Value: "false"},
	}
}

func (e *Engine) openInstance() (*instance, error) {
	db, err := duckdb.Open(e.opts.Threads, e.settings())
	if err != nil {
		return nil, err
	}
	in := &instance{db: db}
	c, err := db.Connect()
	if err != nil {
		db.Close()
		return nil, err
	}
	defer c.Close()
	err = errors.Join(c.Register(scanFunction, e.source), c.RegisterGuards())
	limit := fmt.Sprintf("SET GLOBAL max_temp_directory_size = '%dB'", e.opts.TempLimit)
	for _, sql := range append([]string{limit}, setup...) {
		if err == nil {
			err = c.Exec(sql)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("query: set up DuckDB: %w", err)
	}
	return in, nil
}

// source finds what a scan reads from, for DuckDB.
func (e *Engine) source(id int64) (duckdb.Source, error) {
	if s, ok := e.sources.Load(id); ok {
		return s.(*source), nil
	}
	return nil, fmt.Errorf("scan %d does not exist", id)
}

// connect returns an idle connection, or a new one.
func (e *Engine) connect() (*conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.closed {
		return nil, fault.Errorf(fault.Unavailable, "the query engine is shutting down")
	}
	if c, ok := e.mu.instance.take(); ok {
		return c, nil
	}
	if e.mu.instance.isBroken() {
		in, err := e.openInstance()
		if err != nil {
			return nil, err
		}
		e.mu.instance = in
	}
	return e.mu.instance.connect()
}

func (in *instance) take() (*conn, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := len(in.mu.idle)
	if n == 0 || in.mu.broken {
		return nil, false
	}
	c := in.mu.idle[n-1]
	in.mu.idle = in.mu.idle[:n-1]
	return c, true
}

func (in *instance) isBroken() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.broken
}

func (in *instance) connect() (*conn, error) {
	dc, err := in.db.Connect()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: dc, in: in}
	// json() is twice as fast as a cast to JSON.
	if c.serialize, err = dc.Prepare("SELECT json_serialize_sql(?::VARCHAR)"); err == nil {
		c.print, err = dc.Prepare("SELECT json_deserialize_sql(json(?::VARCHAR))")
	}
	if err != nil {
		c.close()
		return nil, err
	}
	in.mu.Lock()
	in.mu.open++
	in.mu.Unlock()
	return c, nil
}

func (c *conn) close() {
	if c.serialize != nil {
		c.serialize.Close()
	}
	if c.print != nil {
		c.print.Close()
	}
	c.Conn.Close()
}

// release makes a connection idle again. The last one of a broken instance ends
// it.
func (c *conn) release() {
	in := c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.mu.broken {
		in.mu.idle = append(in.mu.idle, c)
		return
	}
	c.close()
	in.mu.open--
	in.closeIdleLocked()
}

// fatal marks the instance broken: the statements that come next get a new one.
func (in *instance) fatal() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.broken = true
}

// close ends an instance none of whose connections is in use.
func (in *instance) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.broken = true
	in.closeIdleLocked()
}

func (in *instance) closeIdleLocked() {
	for _, c := range in.mu.idle {
		c.close()
		in.mu.open--
	}
	in.mu.idle = nil
	if in.mu.open == 0 {
		in.db.Close()
	}
}
