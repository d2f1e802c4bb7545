package server

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// registerDisk shows how full the disk under the data directory is. A number
// that cannot be had is NaN.
func registerDisk(reg prometheus.Registerer, dir string) {
	gauge := func(name, help string, value func(free, total uint64) uint64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			free, total, err := diskSpace(dir)
			if err != nil {
				return math.NaN()
			}
			return float64(value(free, total))
		}))
	}
	gauge("varve_data_disk_free_bytes", "Bytes that this process may still write to the disk of the data directory.",
		func(free, _ uint64) uint64 { return free })
	gauge("varve_data_disk_size_bytes", "Size of the disk of the data directory.",
		func(_, total uint64) uint64 { return total })
}
