package storage

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varvedb/varve/storage/manifest"
)

// metrics are what /metrics shows of an engine.
type metrics struct {
	all []prometheus.Collector

	rows          prometheus.Counter
	bytes         prometheus.Counter
	writeRows     prometheus.Histogram
	stalls        prometheus.Counter
	flushes       *prometheus.CounterVec
	flushSeconds  prometheus.Histogram
	flushBytes    prometheus.Counter
	flushFailures prometheus.Counter
	damagedFiles  prometheus.Counter
}

func newMetrics(e *Engine) *metrics {
	m := &metrics{
		rows:          counter("storage_rows_written_total", "Rows acknowledged."),
		bytes:         counter("storage_bytes_written_total", "Bytes of the rows acknowledged, as they lie in memory."),
		stalls:        counter("storage_write_stalls_total", "Writes that had to wait for memory."),
		flushBytes:    counter("storage_flushed_bytes_total", "Bytes of the files that flushes wrote."),
		flushFailures: counter("storage_flush_failures_total", "Flushes that failed and are tried again."),
		damagedFiles:  counter("storage_damaged_files_total", "Files that were found damaged."),
		writeRows: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "varve_storage_write_rows", Help: "Rows of one write.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 9)}),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "varve_storage_flush_seconds", Help: "Time of one flush.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 10)}),
		flushes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "varve_storage_flushes_total", Help: "Flushes, by what caused them."},
			[]string{"reason"}),
	}
	m.all = []prometheus.Collector{m.rows, m.bytes, m.stalls, m.flushBytes, m.flushFailures, m.damagedFiles, m.writeRows, m.flushSeconds, m.flushes,
		gauge("storage_memtable_bytes", "Bytes in memtables.", func() float64 { return float64(e.memBytes.Load()) }),
		gauge("storage_regions", "Regions that are open.", func() float64 { return float64(len(e.openRegions())) }),
		gauge("storage_files", "Files of the regions that are open.", e.countFiles),
		gauge("wal_bytes", "Bytes of all segments of the log.", func() float64 { return float64(e.log.Bytes()) }),
		total("wal_records_total", "Records that were committed to the log.", func() float64 { return float64(e.log.Stats().Records) }),
		total("wal_syncs_total", "Syncs of the log.", func() float64 { return float64(e.log.Stats().Syncs) }),
		total("wal_sync_seconds_total", "Time spent in syncs of the log.", func() float64 { return e.log.Stats().SyncTime.Seconds() }),
		total("cache_pages_hits_total", "Pages that were found decoded.", func() float64 { return float64(e.pages.Stats().Hits) }),
		total("cache_pages_misses_total", "Pages that had to be read.", func() float64 { return float64(e.pages.Stats().Misses) }),
		gauge("cache_pages_bytes", "Bytes of decoded pages.", func() float64 { return float64(e.pages.Stats().Bytes) }),
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "varve_" + name, Help: help})
}

func gauge(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "varve_" + name, Help: help}, f)
}

func total(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "varve_" + name, Help: help}, f)
}

func (e *Engine) countFiles() float64 {
	n := 0
	for _, r := range e.openRegions() {
		n += len(r.manifest.Version().Files)
	}
	return float64(n)
}

func (m *metrics) register(to prometheus.Registerer) error {
	if to == nil {
		return nil
	}
	var errs []error
	for _, c := range m.all {
		errs = append(errs, to.Register(c))
	}
	return errors.Join(errs...)
}

func (m *metrics) unregister(from prometheus.Registerer) {
	if from == nil {
		return
	}
	for _, c := range m.all {
		from.Unregister(c)
	}
}

func (m *metrics) wrote(rows int, bytes int64) {
	m.rows.Add(float64(rows))
	m.bytes.Add(float64(bytes))
	m.writeRows.Observe(float64(rows))
}

func (m *metrics) flushed(reason string, edit *manifest.Edit, took time.Duration) {
	m.flushes.WithLabelValues(reason).Inc()
	m.flushSeconds.Observe(took.Seconds())
	for _, f := range edit.Add {
		m.flushBytes.Add(float64(f.Size))
	}
}
