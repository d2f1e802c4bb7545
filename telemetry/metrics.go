package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns the registry behind /metrics, with the metrics of the
// runtime, the process and the build in it. Every metric of our own is called
// varve_*.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	b := Build()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "varve_build_info",
		Help:        "Always 1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.GoVersion},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
