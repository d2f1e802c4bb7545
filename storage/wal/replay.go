package wal

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/varvedb/varve/objectstore"
)

// A Report says what Replay found.
type Report struct {
	Segments int
	Records  int64
	Bytes    int64 // of payloads, as they were given

	// Damage is what is lost of acknowledged records, or may be.
	Damage []Damage

	// Torn is what a crash or a full disk left behind the last acknowledged
	// record of a segment. In the newest segment that cannot be told from
	// damage to its last records.
	Torn []Damage

	// Missing are segments that the one after them names and that are not
	// there. Those whose records are all flushed or relocated are deleted, so
	// only the sequences of the records say whether anything is lost.
	Missing []uint64
}

// Segments returns the paths of the segments in dir, oldest first.
func Segments(d objectstore.Disk, dir string) ([]string, error) {
	entries, err := d.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, ok := parseSegment(e.Name()); ok && !e.IsDir() {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	return names, nil
}

// Replay calls fn for each intact record, in the order of the log, and starts
// the log: it is called once, before the first Append. The payload is good
// until fn returns. fn may call Flushed and Forget. An error of fn ends the
// replay and is returned; the log is then of no use.
func (l *Log) Replay(ctx context.Context, fn func(Record) error) (Report, error) {
	r := replay{disk: l.disk, dir: l.dir, log: l, ctx: ctx, fn: fn}
	if err := r.run(); err != nil {
		return r.report, fmt.Errorf("replay wal: %w", err)
	}
	if err := r.settle(); err != nil {
		return r.report, fmt.Errorf("replay wal: %w", err)
	}
	r.tell()
	l.mu.Lock()
	if l.mu.replayed {
		l.mu.Unlock()
		panic("wal: replayed twice")
	}
	l.mu.replayed = true
	l.mu.Unlock()
	l.writer.previous, l.writer.previousLength, l.writer.next = r.last, r.lastEnd, r.last+1
	go l.run()
	l.sweep()
	return r.report, nil
}

// Check reads the log in dir as Replay does, and changes nothing. fn is told
// the number of the segment that holds the record; it may be nil.
func Check(ctx context.Context, d objectstore.Disk, dir string, fn func(segment uint64, r Record) error) (Report, error) {
	r := replay{disk: d, dir: dir, ctx: ctx}
	r.fn = func(rec Record) error {
		if fn == nil {
			return nil
		}
		return fn(r.current, rec)
	}
	if err := r.run(); err != nil {
		return r.report, fmt.Errorf("check wal: %w", err)
	}
	return r.report, nil
}

type replay struct {
	disk    objectstore.Disk
	dir     string
	log     *Log            // nil: only look
	ctx     context.Context // of one Replay
	fn      func(Record) error
	report  Report
	current uint64 // the segment that is being read
	last    uint64 // the newest segment and where its last intact record ends
	lastEnd int64
}

func (r *replay) run() error {
	names, err := Segments(r.disk, r.dir)
	if err != nil {
		return err
	}
	for i, name := range names {
		known := int64(-1)
		if i+1 < len(names) {
			if known, err = acknowledged(r.disk, name, names[i+1]); err != nil {
				return err
			}
		}
		if err := r.segment(name, known); err != nil {
			return err
		}
	}
	return nil
}

// tell logs what is reported.
func (r *replay) tell() {
	for _, d := range r.report.Damage {
		r.log.opts.Logger.Error("wal: damage", "dir", r.dir, "what", d.String())
	}
	for _, d := range r.report.Torn {
		r.log.opts.Logger.Info("wal: torn end", "dir", r.dir, "what", d.String())
	}
}

// settle makes durable what the newest segment was found to hold: a process
// that was killed may have written it without a sync, and from here on it
// counts.
func (r *replay) settle() (err error) {
	if r.last == 0 {
		return nil
	}
	f, err := r.disk.Open(segmentPath(r.dir, r.last))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return err
	}
	return r.disk.SyncDir(r.dir)
}

// acknowledged returns how much of the segment at name was acknowledged, as
// the next segment says, or -1 if it does not.
func acknowledged(d objectstore.Disk, name, next string) (length int64, err error) {
	number, _ := parseSegment(name)
	nextNumber, _ := parseSegment(next)
	f, err := d.Open(next)
	if err != nil {
		return -1, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := readSegmentHeader(&window{f: f}, nextNumber)
	if err != nil {
		return -1, fmt.Errorf("read segment %s: %w", next, err)
	}
	switch {
	case !info.HeaderIntact:
		return -1, nil
	case info.Previous == number:
		return info.PreviousLength, nil
	case info.Previous < number:
		return 0, nil // nothing in it was ever acknowledged
	default:
		return -1, nil // the segment between them is gone
	}
}

// segment replays one segment, of which known bytes were acknowledged; -1 says
// that nobody knows.
func (r *replay) segment(name string, known int64) error {
	s := &segment{path: name}
	s.number, _ = parseSegment(name)
	if r.log != nil {
		r.log.track(s)
	}
	r.report.Segments++
	r.current = s.number
	before := r.last
	var trailing []Damage // damage with no intact record behind it
	info, err := ReadSegment(r.disk, name, func(e Entry) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if e.Damage != nil {
			trailing = append(trailing, *e.Damage)
			return nil
		}
		r.classify(s, trailing, known, false)
		trailing = trailing[:0]
		return r.record(s, e)
	})
	if err != nil {
		return err
	}
	r.classify(s, trailing, known, true)
	if info.HeaderIntact && info.Previous > before {
		r.report.Missing = append(r.report.Missing, info.Previous)
	}
	if known > info.Size {
		r.report.Damage = append(r.report.Damage, Damage{Segment: s.number, Offset: info.Size,
			Length: known - info.Size, Reason: "the file ends before its last acknowledged record"})
	}
	if r.log != nil {
		r.log.setEnd(s, info.Size)
	}
	r.last, r.lastEnd = s.number, info.End
	return nil
}

// classify sorts damage into the report. Without knowledge of what was
// acknowledged, only damage at the end of the file passes as torn.
func (r *replay) classify(s *segment, damage []Damage, known int64, atEnd bool) {
	for _, d := range damage {
		if d.Offset >= known && (known >= 0 || atEnd) {
			r.report.Torn = append(r.report.Torn, d)
		} else {
			r.report.Damage = append(r.report.Damage, d)
			s.damaged = true
		}
	}
}

func (r *replay) record(s *segment, e Entry) error {
	r.report.Records++
	r.report.Bytes += int64(len(e.Record.Payload))
	if l := r.log; l != nil {
		l.note(s, e)
	}
	return r.fn(e.Record)
}

// note enters a replayed record into its segment.
func (l *Log) note(s *segment, e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.add(e.Record.Region, e.Record.Sequence, e.Length, l.mu.flushed[e.Record.Region])
}

func (l *Log) setEnd(s *segment, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.end = end
}
