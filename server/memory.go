package server

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// A Budget is how the memory of the process is shared out, in bytes.
// docs/operations/memory.md explains it to operators.
type Budget struct {
	Total     int64
	Source    string // what set Total: memory.limit, cgroup or machine
	Machine   int64  // what there is in all: the cgroup's or the machine's
	Memtables int64
	Caches    int64
	Bodies    int64 // requests being read
	Writes    int64 // rows on their way into memtables
	Decoders  int64 // what idle decoders keep of the series they have seen
	DuckDB    int64
	Native    int64 // C allocations beside DuckDB: threads, cgo, the allocator's own
	Go        int64 // GOMEMLIMIT
}

const (
	// nativeBytes is kept for C allocations outside of DuckDB's own account:
	// its code and metadata, thread stacks, allocator slack.
	nativeBytes = 96 << 20
	// machinePercent of the memory of a machine are taken where nothing sets a
	// limit: the rest is for the kernel, the page cache and other programs.
	machinePercent = 80
	// fallbackTotal is assumed where nothing tells how much memory there is.
	fallbackTotal = 2 << 30
)

// newBudget shares out limit; if limit is 0, what the cgroup allows or most of
// what the machine has. root is the root of the file system, where /proc and /sys are.
func newBudget(limit int64, root fs.FS) Budget {
	b := Budget{Total: limit, Source: "memory.limit"}
	available, source := available(root)
	b.Machine = available
	if limit == 0 {
		b.Total, b.Source = available, source
	}
	if b.Source == "machine" {
		b.Total = (available / 100 * machinePercent) &^ (1<<20 - 1) // whole MiB, which are easier to read
	}
	b.Memtables = b.Total / 8
	b.Caches = b.Total / 4
	b.Bodies = b.Total / 16
	b.Writes = b.Total * 3 / 64
	b.Decoders = b.Total / 64
	b.DuckDB = b.Total / 4
	b.Native = min(nativeBytes, b.Total/16)
	b.Go = b.Total - b.DuckDB - b.Native
	return b
}

// apply makes the Go runtime keep to its share. A smaller GOMEMLIMIT of the
// environment stays.
func (b Budget) apply() {
	if current := debug.SetMemoryLimit(-1); b.Go < current {
		debug.SetMemoryLimit(b.Go)
	}
}

// minDecoder is the least that is worth keeping of a decoder.
const minDecoder = 1 << 20

// idleDecoders returns how many idle decoders are kept, at most two for each of
// the processors, and how many bytes each may keep.
func (b Budget) idleDecoders(processors int) (n, bytes int) {
	n = min(2*processors, max(1, int(b.Decoders/minDecoder)))
	return n, int(min(b.Decoders/int64(n), 32<<20))
}

// register shows the budget as varve_memory_budget_bytes{part}.
func (b Budget) register(reg prometheus.Registerer) {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_memory_budget_bytes",
		Help: "How the memory of the process is shared out; total is the sum that must not be passed.",
	}, []string{"part"})
	for part, bytes := range map[string]int64{
		"total": b.Total, "memtables": b.Memtables, "caches": b.Caches, "bodies": b.Bodies,
		"writes": b.Writes, "decoders": b.Decoders,
		"duckdb": b.DuckDB, "native": b.Native, "go": b.Go,
	} {
		g.WithLabelValues(part).Set(float64(bytes))
	}
	reg.MustRegister(g)
}

// available returns the smaller of what the cgroup allows and the machine has.
func available(root fs.FS) (bytes int64, source string) {
	bytes, source = fallbackTotal, "fallback"
	if total, ok := machineMemory(root); ok {
		bytes, source = total, "machine"
	}
	if limit, ok := cgroupLimit(root); ok && limit < bytes {
		bytes, source = limit, "cgroup"
	}
	return bytes, source
}

func machineMemory(root fs.FS) (int64, bool) {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}

// cgroupLimit returns the smallest limit of this process's cgroup and those
// above it: memory.max of version 2, memory.limit_in_bytes of version 1.
func cgroupLimit(root fs.FS) (int64, bool) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	limit := int64(math.MaxInt64)
	for scan := bufio.NewScanner(strings.NewReader(string(text))); scan.Scan(); {
		parts := strings.SplitN(scan.Text(), ":", 3) // id:controllers:path
		if len(parts) != 3 {
			continue
		}
		base, name := "sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			base, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		// A container sees its own group at the mount's root, so the walk ends there.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if n, ok := readLimit(root, path.Join(base, dir, name)); ok {
				limit = min(limit, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit, limit < math.MaxInt64
}

func readLimit(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
	return n, err == nil && n > 0 && n < 1<<60                          // version 1 says 2^63-4096 for none
}
