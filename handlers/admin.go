package handlers

import (
	"net/http"
	"os"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varvedb/varve/telemetry"
)

// An Admin serves what operators and their machines ask of a server,
// from the moment its listener opens.
type Admin struct {
	Started  time.Time
	Registry *prometheus.Registry
	Config   []byte     // the configuration in force as TOML, secrets masked
	Damaged  func() int // files that were found damaged; nil: none
}

// Register adds the administrative routes.
func (a *Admin) Register(r chi.Router) {
	for _, path := range []string{"/health", "/v1/health"} {
		r.Get(path, Handle(a.serveHealth))
		r.Post(path, Handle(a.serveHealth))
	}
	r.Get("/", Handle(a.serveRoot))
	r.Get("/status", Handle(a.serveStatus))
	r.Get("/config", Handle(a.serveConfig))
	r.Get("/metrics", promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{
		DisableCompression: true, // the router compresses
		EnableOpenMetrics:  true,
	}).ServeHTTP)
}

// serveRoot tells who comes by with a browser what this is.
func (a *Admin) serveRoot(w http.ResponseWriter, _ *http.Request) error {
	WriteJSON(w, http.StatusOK, struct {
		Name      string            `json:"name"`
		Version   string            `json:"version"`
		Addresses map[string]string `json:"addresses"`
	}{"varve", telemetry.Build().Version, map[string]string{
		"/v1/sql":            "SQL: GET or POST the parameter sql",
		"/v1/influxdb/write": "InfluxDB line protocol, also at /write and /api/v2/write",
		"/openapi.json":      "every address in detail",
		"/health":            "200 while the process lives",
		"/ready":             "200 while requests are served",
		"/status":            "version and uptime",
		"/metrics":           "metrics for Prometheus",
		"/config":            "the configuration in force",
	}})
	return nil
}

// serveHealth says that the process lives; /ready says whether it works.
func (a *Admin) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// serveStatus uses GreptimeDB's field names where it has them.
func (a *Admin) serveStatus(w http.ResponseWriter, _ *http.Request) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b, damaged := telemetry.Build(), 0
	if a.Damaged != nil {
		damaged = a.Damaged()
	}
	WriteJSON(w, http.StatusOK, struct {
		Version   string  `json:"version"`
		Commit    string  `json:"commit"`
		GoVersion string  `json:"go_version"`
		Hostname  string  `json:"hostname"`
		Started   string  `json:"started"`
		Uptime    float64 `json:"uptime_seconds"`
		Damaged   int     `json:"damaged_files"`
	}{b.Version, b.Commit, b.GoVersion, host, a.Started.UTC().Format(time.RFC3339), time.Since(a.Started).Seconds(), damaged})
	return nil
}

func (a *Admin) serveConfig(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/toml; charset=utf-8")
	_, err := w.Write(a.Config)
	return err
}
