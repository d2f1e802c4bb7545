package server

import (
	"testing"
	"testing/fstest"
)

func TestBudgetSource(t *testing.T) {
	f := func(limit int64, files map[string]string, total int64, source string) {
		t.Helper()
		root := fstest.MapFS{}
		for name, text := range files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if b := newBudget(limit, root); b.Total != total || b.Source != source {
			t.Errorf("got %d from %s, want %d from %s", b.Total, b.Source, total, source)
		}
	}
	const machine = "MemFree: 1 kB\nMemTotal:       8388608 kB\n"
	f(1<<30, map[string]string{"proc/meminfo": machine}, 1<<30, "memory.limit")
	const most = 6553 << 20
	f(0, map[string]string{"proc/meminfo": machine}, most, "machine")
	f(0, nil, fallbackTotal, "fallback")

	v2 := map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n"}
	v2["sys/fs/cgroup/a/b/memory.max"] = "max\n"
	f(0, v2, most, "machine")
	v2["sys/fs/cgroup/a/memory.max"] = "1073741824\n"
	f(0, v2, 1<<30, "cgroup")
	v2["sys/fs/cgroup/memory.max"] = "536870912\n"
	f(0, v2, 512<<20, "cgroup")

	v1 := map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "3:cpu:/x\n4:memory:/docker/abc\n"}
	v1["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "2147483648\n"
	f(0, v1, 2<<30, "cgroup")
	v1["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712\n"
	f(0, v1, most, "machine")
}

// Idle decoders keep to their share whatever the number of processors.
func TestIdleDecoders(t *testing.T) {
	for _, total := range []int64{64 << 20, 256 << 20, 2 << 30, 64 << 30} {
		for _, processors := range []int{1, 2, 64} {
			b := newBudget(total, fstest.MapFS{})
			n, bytes := b.idleDecoders(processors)
			if n < 1 || n > 2*processors || bytes < 1 || int64(n)*int64(bytes) > b.Decoders {
				t.Errorf("%d bytes, %d processors: %d decoders of %d bytes, of %d", total, processors, n, bytes, b.Decoders)
			}
		}
	}
}

func TestBudgetAddsUp(t *testing.T) {
	for _, total := range []int64{256 << 20, 2 << 30, 64 << 30} {
		b := newBudget(total, fstest.MapFS{})
		if b.Go+b.DuckDB+b.Native != total {
			t.Errorf("%d: Go %d, DuckDB %d and native %d are not the total", total, b.Go, b.DuckDB, b.Native)
		}
		if inGo := b.Memtables + b.Caches + b.Bodies + b.Writes + b.Decoders; inGo > b.Go*3/4 {
			t.Errorf("%d: %d of Go's %d are given away, too little is left to work with", total, inGo, b.Go)
		}
	}
}
