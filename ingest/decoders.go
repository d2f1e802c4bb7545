package ingest

import (
	"runtime"
	"slices"
	"sync"

	"github.com/varvedb/varve/ingest/lineprotocol"
)

// A decoderPool keeps decoders with what they have seen, which a sync.Pool
// would throw away at every garbage collection.
type decoderPool struct {
	opts lineprotocol.Options
	max  int // decoders that are kept

	mu struct {
		sync.Mutex
		idle []idleDecoder // the one used last at the end
	}
}

type idleDecoder struct {
	db      string
	decoder *lineprotocol.Decoder
}

func (p *decoderPool) init(keep int, opts lineprotocol.Options) {
	if keep == 0 {
		keep = 2 * runtime.GOMAXPROCS(0) // decoders wait for the disk half of the time
	}
	p.max, p.opts = keep, opts
}

// get returns a decoder that has worked for db, or a new one.
func (p *decoderPool) get(db string) *lineprotocol.Decoder {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, d := range slices.Backward(p.mu.idle) {
		if d.db == db {
			p.mu.idle = slices.Delete(p.mu.idle, i, i+1)
			return d.decoder
		}
	}
	return lineprotocol.NewDecoder(p.opts)
}

func (p *decoderPool) put(db string, d *lineprotocol.Decoder) {
	d.Trim()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.idle) == p.max {
		p.mu.idle = slices.Delete(p.mu.idle, 0, 1)
	}
	p.mu.idle = append(p.mu.idle, idleDecoder{db, d})
}
