// Package wal is the write-ahead log: what was written since the last flush,
// in segments on a local disk.
//
// # Writing
//
//  1. The caller's goroutine encodes and compresses its record and queues it.
//  2. One committer takes all that is queued, writes it with one call, syncs
//     once, and then wakes the callers. What arrives meanwhile is the next
//     group; nobody waits for company.
//  3. After a failed write or sync the segment is abandoned, for what a later
//     sync of it says is not to be trusted, and the group is written to a new
//     one. If that fails too the group is refused with fault.Unavailable. The
//     next group tries again, so the log heals when the disk does.
//
// A new segment's name is synced before anything in it is acknowledged, and
// its header says how much of the segment before it was.
//
// # What Replay may return
//
// Every acknowledged record that is not flushed, and besides:
//   - records that were refused, whole: the caller must never use a refused
//     record's sequence for other rows;
//   - a record twice, with the same sequence: when its group was written to a
//     second segment, or when it was relocated;
//   - records of a region out of order: a relocated record comes after newer
//     ones;
//   - records that are flushed, in segments that also hold others.
//
// So the caller keeps rows by sequence, drops what it has, and drops what is
// not larger than the region's flushed sequence.
package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/table"
)

// A Record is what one write logs.
type Record struct {
	Region   table.RegionID
	Sequence uint64 // of the region; each is used for one payload only
	Payload  []byte
}

// A Sync says when a record is durable.
type Sync uint8

// The choices.
const (
	// Always: before Append returns.
	Always Sync = iota
	// Interval: within Options.Interval after Append has returned; until then
	// a record survives the end of the process but not that of the machine.
	Interval
)

// A Compression says how payloads are stored. Any log can be read whatever the
// choice is now.
type Compression uint8

// The choices.
const (
	S2   Compression = iota // if it makes the payload smaller
	None                    // for payloads that are compressed already
)

// Options tunes a Log. A zero field means its default.
type Options struct {
	SegmentBytes int64         // size at which the next segment is begun; 64 MiB
	Sync         Sync          // Always
	Interval     time.Duration // of Sync Interval; 1s
	Compression  Compression   // S2
	MaxBytes     int64         // size at which Pressure says that the log is too large; 4 GiB
	Logger       *slog.Logger  // slog.Default()
}

func (o *Options) setDefaults() {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 64 << 20
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 30
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// A Log is an open write-ahead log. Its methods may be called by any number
// of goroutines.
type Log struct {
	disk objectstore.Disk
	dir  string
	opts Options

	wake    chan struct{} // holds one token when there may be work; nobody closes it
	stopped chan struct{} // closed by the committer when it has ended

	writer writer // the committer's
	stats  stats

	mu struct {
		sync.Mutex
		queue    []*request // in the order of arrival
		replayed bool
		closing  bool
		segments []*segment // oldest first
		flushed  map[table.RegionID]uint64
	}
}

// Open opens the log in dir, which is made if it is missing. Replay must be
// called before the first Append. The caller makes sure that no other process
// has the log open.
func Open(d objectstore.Disk, dir string, opts Options) (*Log, error) {
	opts.setDefaults()
	if err := objectstore.MakeDir(d, dir); err != nil {
		return nil, fmt.Errorf("open wal: %w", err)
	}
	l := &Log{
		disk:    d,
		dir:     dir,
		opts:    opts,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	l.mu.flushed = map[table.RegionID]uint64{}
	return l, nil
}

// A request is one record on its way to the disk.
type request struct {
	region   table.RegionID
	sequence uint64
	buf      []byte     // the encoded record
	done     chan error // the committer sends one; holds it until it is read
}

// maxPooledBytes is the largest buffer that is kept for the next record.
const maxPooledBytes = 4 << 20

var requests = sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}

func (r *request) recycle() {
	if cap(r.buf) <= maxPooledBytes {
		requests.Put(r)
	}
}

// Append logs a record and returns when it is durable (see Sync). It keeps
// nothing of r. Once the record is queued, Append waits for the outcome even
// if ctx ends.
//
// After an error the record may still be found by a later Replay. The kinds
// are Unavailable, when the same may succeed later, and TooLarge.
func (l *Log) Append(ctx context.Context, r Record) error {
	q, err := l.submit(ctx, r)
	if err != nil {
		return err
	}
	return q.wait()
}

func (q *request) wait() error {
	err := <-q.done
	q.recycle()
	return err
}

// submit encodes a record and queues it.
func (l *Log) submit(ctx context.Context, r Record) (*request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(r.Payload) > maxPayload {
		return nil, fault.Errorf(fault.TooLarge, "append to wal: a record of %d bytes is over the limit of %d", len(r.Payload), maxPayload)
	}
	q := requests.Get().(*request)
	q.region, q.sequence = r.Region, r.Sequence
	q.buf = appendRecord(q.buf[:0], r, l.opts.Compression)
	if err := l.enqueue(q); err != nil {
		q.recycle()
		return nil, err
	}
	l.nudge()
	return q, nil
}

func (l *Log) enqueue(q *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.closing:
		return fault.Errorf(fault.Unavailable, "append to wal: the log is closed")
	case !l.mu.replayed:
		return errors.New("append to wal: the log has not been replayed")
	}
	l.mu.queue = append(l.mu.queue, q)
	return nil
}

// Close commits what is queued and waits for the committer to end. If
// everything is flushed, the log is empty afterwards.
func (l *Log) Close() error {
	l.mu.Lock()
	started, closing := l.mu.replayed, l.mu.closing
	l.mu.closing = true
	l.mu.Unlock()
	if !started {
		return nil
	}
	if !closing {
		l.nudge()
	}
	<-l.stopped
	l.sweep()
	return l.writer.closeErr
}
