package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/varvedb/varve/table"
)

// relocateBytes is how many bytes of records are queued together, so that
// relocating many small records costs few syncs.
const relocateBytes = 4 << 20

// errPast ends the reading of a segment behind its last acknowledged record.
var errPast = errors.New("wal: behind the last acknowledged record")

// Relocate copies what a segment holds of the given regions, and is not
// flushed, to the head of the log with the same sequences, so that the segment
// can go without flushing them. Replay then returns those records later than
// newer ones, and maybe twice. After an error the segment stays; flushing the
// regions frees it too.
func (l *Log) Relocate(ctx context.Context, segment uint64, regions ...table.RegionID) error {
	name, end, ok := l.closedSegment(segment)
	if !ok {
		return nil
	}
	m := mover{log: l, ctx: ctx, regions: regions, end: end}
	_, err := ReadSegment(l.disk, name, m.entry)
	if errors.Is(err, errPast) {
		err = nil
	}
	err = errors.Join(err, m.wait())
	if errors.Is(err, fs.ErrNotExist) {
		if _, _, ok := l.closedSegment(segment); !ok {
			return nil // flushed meanwhile
		}
	}
	if err != nil {
		return fmt.Errorf("relocate from segment %d: %w", segment, err)
	}
	l.dropFrom(segment, regions)
	l.sweep()
	return nil
}

// closedSegment returns the path of a segment that is not written to, and
// where its last acknowledged record ends.
func (l *Log) closedSegment(number uint64) (name string, end int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.mu.segments {
		if s.number == number && !s.open && !s.removing {
			return s.path, s.end, true
		}
	}
	return "", 0, false
}

func (l *Log) dropFrom(number uint64, regions []table.RegionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.mu.segments {
		if s.number != number {
			continue
		}
		for _, r := range regions {
			s.drop(r)
		}
	}
}

func (l *Log) flushedOf(region table.RegionID) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.flushed[region]
}

// A mover queues the records to be moved and waits for them in batches.
type mover struct {
	log     *Log
	ctx     context.Context // of one Relocate
	regions []table.RegionID
	end     int64
	waiting []*request
	bytes   int
}

func (m *mover) entry(e Entry) error {
	switch {
	case e.Offset >= m.end:
		return errPast
	case e.Damage != nil:
		if !e.Damage.HeaderIntact || m.wanted(e.Damage.Region, e.Damage.Sequence) {
			return errors.New(e.Damage.String())
		}
		return nil
	case !m.wanted(e.Record.Region, e.Record.Sequence):
		return nil
	}
	q, err := m.log.submit(m.ctx, e.Record)
	if err != nil {
		return err
	}
	m.waiting = append(m.waiting, q)
	if m.bytes += len(q.buf); m.bytes < relocateBytes {
		return nil
	}
	return m.wait()
}

func (m *mover) wanted(region table.RegionID, sequence uint64) bool {
	return slices.Contains(m.regions, region) && sequence > m.log.flushedOf(region)
}

// wait waits for all that is queued.
func (m *mover) wait() error {
	var first error
	for _, q := range m.waiting {
		if err := q.wait(); first == nil {
			first = err
		}
	}
	m.waiting, m.bytes = m.waiting[:0], 0
	return first
}
