package wal

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
)

// A writer is what the committer alone uses.
type writer struct {
	current *segment // nil: the next group begins one
	file    objectstore.File
	next    uint64 // number of the next segment
	dirty   bool   // bytes are written that are not synced (Sync Interval)
	group   []byte // a group of several records, put together

	requests []*request // the group that is being committed

	previous       uint64 // the segment before the next one
	previousLength int64

	closeErr error // of the last sync; read after the committer has ended
}

// Stats counts what a Log has done since it was opened.
type Stats struct {
	Records, Groups, Syncs int64
	StoredBytes            int64         // written for records, headers included
	SyncTime               time.Duration // spent in syncs
	Abandoned              int64         // segments given up after a failed write or sync
	Refused                int64         // records refused
}

type stats struct {
	records, groups, syncs, storedBytes, syncNanos, abandoned, refused atomic.Int64
}

// Stats returns the counts so far.
func (l *Log) Stats() Stats {
	s := &l.stats
	return Stats{
		Records: s.records.Load(), Groups: s.groups.Load(), Syncs: s.syncs.Load(),
		StoredBytes: s.storedBytes.Load(), SyncTime: time.Duration(s.syncNanos.Load()),
		Abandoned: s.abandoned.Load(), Refused: s.refused.Load(),
	}
}

// run is the committer. It ends after Close, when the queue is empty.
func (l *Log) run() {
	defer close(l.stopped)
	var tick <-chan time.Time
	if l.opts.Sync == Interval {
		t := time.NewTicker(l.opts.Interval)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-tick:
			_ = l.syncWritten() // which has logged an error
		case <-l.wake:
			if ended := l.commitNext(); ended {
				return
			}
		}
	}
}

// commitNext commits one group. With nothing left to commit after Close, it
// ends the log.
func (l *Log) commitNext() (ended bool) {
	w := &l.writer
	group, again := l.take(w.requests[:0])
	w.requests = group
	if len(group) == 0 {
		if again {
			w.closeErr = l.syncWritten()
			l.endSegment()
		}
		return again
	}
	err := l.commit(group)
	for _, q := range group {
		q.done <- err
	}
	if again {
		l.nudge()
	}
	return false
}

// nudge makes sure that the committer looks at the queue once more.
func (l *Log) nudge() {
	select {
	case l.wake <- struct{}{}:
	default: // a token is there already
	}
}

// take moves to group what is queued, as much as fits one segment. It reports
// whether there is more to do: what did not fit, or to close.
func (l *Log) take(group []*request) (taken []*request, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, int64(0)
	for _, q := range l.mu.queue {
		if bytes += int64(len(q.buf)); n > 0 && bytes > l.opts.SegmentBytes {
			break
		}
		n++
	}
	group = append(group, l.mu.queue[:n]...)
	rest := copy(l.mu.queue, l.mu.queue[n:])
	clear(l.mu.queue[rest:])
	l.mu.queue = l.mu.queue[:rest]
	return group, l.mu.closing || rest > 0
}

// commit makes a group durable. A group whose write fails gets one more try,
// in a new segment.
func (l *Log) commit(group []*request) error {
	var bytes int64
	for _, q := range group {
		bytes += int64(len(q.buf))
	}
	l.rotateFor(bytes)
	fresh := l.writer.current == nil
	err := l.tryCommit(group)
	if err != nil && !fresh {
		l.opts.Logger.Warn("wal: a segment is abandoned; its last records go to a new one", "error", err)
		err = l.tryCommit(group)
	}
	if err != nil {
		l.stats.refused.Add(int64(len(group)))
		return fault.Errorf(fault.Unavailable, "append to wal: %w", err)
	}
	l.stats.groups.Add(1)
	l.stats.records.Add(int64(len(group)))
	l.stats.storedBytes.Add(bytes)
	return nil
}

// rotateFor ends the segment if the next bytes do not fit, or if everything in
// it is flushed and it is large enough to be worth deleting.
func (l *Log) rotateFor(bytes int64) {
	w := &l.writer
	if w.current == nil || w.current.end == segmentHeaderSize {
		return
	}
	full := w.current.end+bytes > l.opts.SegmentBytes
	if !full && (w.current.end < l.opts.SegmentBytes/8 || !l.isFlushed(w.current)) {
		return
	}
	if l.syncWritten() == nil {
		l.endSegment()
	}
	l.sweep()
}

// tryCommit appends a group to the current segment or a new one, and abandons
// the segment if that fails.
func (l *Log) tryCommit(group []*request) error {
	w := &l.writer
	if w.current == nil {
		if err := l.beginSegment(); err != nil {
			return err
		}
	}
	end, err := l.write(group)
	if err == nil && l.opts.Sync == Always {
		err = l.syncFile()
	}
	if err != nil {
		if l.syncWritten() == nil { // which abandons it if it fails
			l.abandon()
		}
		return err
	}
	w.dirty = l.opts.Sync != Always
	l.enter(w.current, group, end)
	return nil
}

// write writes a group with one call and returns where the file ends then.
func (l *Log) write(group []*request) (end int64, err error) {
	w := &l.writer
	end = w.current.end
	for _, q := range group {
		seal(q.buf, w.current.number, end)
		end += int64(len(q.buf))
	}
	buf := group[0].buf
	if len(group) > 1 {
		w.group = w.group[:0]
		for _, q := range group {
			w.group = append(w.group, q.buf...)
		}
		buf = w.group
	}
	if cap(w.group) > maxGroupBytes {
		w.group = nil
	}
	if _, err := w.file.Write(buf); err != nil {
		return 0, fmt.Errorf("write segment %d: %w", w.current.number, err)
	}
	return end, nil
}

// maxGroupBytes is the largest buffer kept to put the next group together.
const maxGroupBytes = 16 << 20

func (l *Log) syncFile() error {
	start := time.Now()
	err := l.writer.file.Sync()
	l.stats.syncs.Add(1)
	l.stats.syncNanos.Add(int64(time.Since(start)))
	if err != nil {
		return fmt.Errorf("sync segment %d: %w", l.writer.current.number, err)
	}
	l.writer.dirty = false
	return nil
}

// syncWritten makes durable what was acknowledged without a sync. If that
// fails, nothing can be done for those records but to say so: they are safe
// once they are flushed, or if the machine stays up.
func (l *Log) syncWritten() error {
	if !l.writer.dirty {
		return nil
	}
	err := l.syncFile()
	if err != nil {
		l.opts.Logger.Error("wal: acknowledged records may not survive a crash", "error", err)
		l.abandon()
	}
	return err
}

// beginSegment makes the next segment the current one.
func (l *Log) beginSegment() error {
	w := &l.writer
	s := &segment{number: w.next, open: true, end: segmentHeaderSize}
	s.path = segmentPath(l.dir, s.number)
	w.next++ // a number is never tried twice: its name may be taken
	f, err := l.disk.Create(s.path)
	if err != nil {
		return fmt.Errorf("begin segment %d: %w", s.number, err)
	}
	w.current, w.file = s, f
	l.track(s)
	h := segmentHeader{number: s.number, previous: w.previous, previousLength: uint64(w.previousLength)}
	_, err = f.Write(h.encode())
	if err == nil {
		err = l.disk.SyncDir(l.dir)
	}
	if err != nil {
		l.abandon()
		return fmt.Errorf("begin segment %d: %w", s.number, err)
	}
	return nil
}

// abandon ends the current segment after a failure. What was acknowledged in
// it stays readable; a segment without any such record is removed.
func (l *Log) abandon() {
	l.stats.abandoned.Add(1)
	l.endSegment()
	l.sweep()
}

// endSegment closes the current segment. Its bytes are synced, or lost and
// reported, so an error of Close says nothing new.
func (l *Log) endSegment() {
	w := &l.writer
	if w.current == nil {
		return
	}
	_ = w.file.Close()
	if w.current.end > segmentHeaderSize {
		w.previous, w.previousLength = w.current.number, w.current.end
	}
	l.release(w.current)
	w.current, w.file, w.dirty = nil, nil, false
}
