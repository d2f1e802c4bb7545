// Package config is the configuration of a server: flags over environment over
// TOML file over defaults. A key that nobody knows is an error that names it.
package config

import (
	"fmt"
	"net"
	"time"

	"github.com/varvedb/varve/fault"
)

// A Config is the configuration of a standalone server. The koanf tags are the
// keys of the TOML file; config.example.toml says what each one means.
type Config struct {
	DataHome string  `koanf:"data_home"`
	HTTP     HTTP    `koanf:"http"`
	Memory   Memory  `koanf:"memory"`
	WAL      WAL     `koanf:"wal"`
	Storage  Storage `koanf:"storage"`
	Query    Query   `koanf:"query"`
	Log      Log     `koanf:"log"`
}

// HTTP configures the HTTP listener.
type HTTP struct {
	Addr                 string   `koanf:"addr"`
	AllowUnauthenticated bool     `koanf:"allow_unauthenticated"`
	BodyLimit            Size     `koanf:"body_limit"`
	ReadHeaderTimeout    Duration `koanf:"read_header_timeout"`
	ReadTimeout          Duration `koanf:"read_timeout"`
	IdleTimeout          Duration `koanf:"idle_timeout"`
	StallTimeout         Duration `koanf:"stall_timeout"`
	DrainDelay           Duration `koanf:"drain_delay"`
	ShutdownTimeout      Duration `koanf:"shutdown_timeout"`
}

// Memory configures the memory budget.
type Memory struct {
	Limit Size `koanf:"limit"`
}

// WAL configures the write-ahead log.
type WAL struct {
	Sync         string   `koanf:"sync"`
	SyncInterval Duration `koanf:"sync_interval"`
	MaxBytes     Size     `koanf:"max_bytes"`
}

// Storage configures the engine.
type Storage struct {
	FlushBytes Size     `koanf:"flush_bytes"`
	FlushAge   Duration `koanf:"flush_age"`
}

// Query configures SQL.
type Query struct {
	Timeout       Duration `koanf:"timeout"`
	MaxConcurrent int      `koanf:"max_concurrent"`
	MaxQueued     int      `koanf:"max_queued"`
	Strict        bool     `koanf:"strict"`
}

// Log configures the server's own log.
type Log struct {
	Level        string   `koanf:"level"`
	Format       string   `koanf:"format"`
	Requests     string   `koanf:"requests"`
	SlowRequests Duration `koanf:"slow_requests"`
}

// Default returns the configuration of a server that is told nothing.
func Default() Config {
	return Config{
		DataHome: "./varve-data",
		HTTP: HTTP{
			Addr:              "127.0.0.1:4000",
			BodyLimit:         64 << 20,
			ReadHeaderTimeout: Duration(10 * time.Second),
			ReadTimeout:       Duration(5 * time.Minute),
			IdleTimeout:       Duration(3 * time.Minute),
			StallTimeout:      Duration(30 * time.Second),
			ShutdownTimeout:   Duration(15 * time.Second),
		},
		WAL: WAL{
			Sync:         "commit",
			SyncInterval: Duration(time.Second),
			MaxBytes:     4 << 30,
		},
		Storage: Storage{
			FlushBytes: 64 << 20,
			FlushAge:   Duration(time.Hour),
		},
		Query: Query{
			Timeout: Duration(5 * time.Minute),
		},
		Log: Log{Level: "info", Format: "text", Requests: "failed", SlowRequests: Duration(5 * time.Second)},
	}
}

// check refuses values that are well formed but make no sense.
func (c *Config) check() error {
	switch {
	case c.DataHome == "":
		return bad("data_home", "is empty")
	case c.WAL.Sync != "commit" && c.WAL.Sync != "interval":
		return bad("wal.sync", `is %q; it is "commit" or "interval"`, c.WAL.Sync)
	case c.WAL.Sync == "interval" && c.WAL.SyncInterval <= 0:
		return bad("wal.sync_interval", "must be over zero")
	case c.WAL.MaxBytes < 16<<20:
		return bad("wal.max_bytes", "is %v; the least is 16MiB", c.WAL.MaxBytes)
	case c.Storage.FlushBytes < 1<<20:
		return bad("storage.flush_bytes", "is %v; the least is 1MiB", c.Storage.FlushBytes)
	case c.Storage.FlushAge < Duration(time.Second):
		return bad("storage.flush_age", "is %v; the least is 1s", c.Storage.FlushAge)
	case c.HTTP.StallTimeout <= 0:
		return bad("http.stall_timeout", "must be over zero")
	case c.HTTP.BodyLimit < 1<<10:
		return bad("http.body_limit", "is %v; the least is 1KiB", c.HTTP.BodyLimit)
	case c.Memory.Limit != 0 && c.Memory.Limit < 256<<20:
		return bad("memory.limit", "is %v; the least is 256MiB", c.Memory.Limit)
	case c.Query.MaxConcurrent < 0 || c.Query.MaxQueued < 0:
		return bad("query", "max_concurrent and max_queued cannot be negative")
	case c.Log.Format != "text" && c.Log.Format != "json":
		return bad("log.format", `is %q; it is "text" or "json"`, c.Log.Format)
	case c.Log.Requests != "failed" && c.Log.Requests != "all":
		return bad("log.requests", `is %q; it is "failed" or "all"`, c.Log.Requests)
	}
	return c.checkBind()
}

// checkBind refuses to serve strangers unless told to: nothing asks who a
// client is yet.
func (c *Config) checkBind() error {
	host, _, err := net.SplitHostPort(c.HTTP.Addr)
	if err != nil {
		return bad("http.addr", "is %q: %v", c.HTTP.Addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() || c.HTTP.AllowUnauthenticated {
		return nil
	}
	return bad("http.addr", "is %q, which other machines can reach, and there is no access control yet: "+
		"bind to 127.0.0.1, or accept that anyone who reaches it may read and write everything "+
		"with --allow-unauthenticated (http.allow_unauthenticated)", c.HTTP.Addr)
}

func bad(key, format string, args ...any) error {
	return fault.Errorf(fault.Invalid, "configuration: %s %s", key, fmt.Sprintf(format, args...))
}
