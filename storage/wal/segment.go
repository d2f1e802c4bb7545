package wal

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"slices"

	"github.com/varvedb/varve/table"
)

// A segment is one file of the log. Its fields are guarded by the log's mutex,
// except that end of the current segment is written by the committer under it
// and read by the committer without.
type segment struct {
	number   uint64
	path     string
	open     bool  // the committer writes to it
	removing bool  // somebody is removing the file
	damaged  bool  // the file is kept, under another name, when it is not needed any more
	end      int64 // where the last acknowledged record ends

	regions map[table.RegionID]*span
	live    int // regions that are not flushed
}

// A span is what a segment holds of one region.
type span struct {
	min, max uint64 // sequences
	bytes    int64
	flushed  bool // all of it is durable elsewhere
}

// add notes a record of the segment; flushed is the region's flushed sequence.
func (s *segment) add(region table.RegionID, sequence uint64, bytes int64, flushed uint64) {
	p := s.regions[region]
	if p == nil {
		if s.regions == nil {
			s.regions = map[table.RegionID]*span{}
		}
		p = &span{min: math.MaxUint64, flushed: true}
		s.regions[region] = p
	}
	p.min, p.max, p.bytes = min(p.min, sequence), max(p.max, sequence), p.bytes+bytes
	if p.flushed && sequence > flushed {
		p.flushed = false
		s.live++
	}
}

// drop notes that what the segment holds of a region is not needed any more.
func (s *segment) drop(region table.RegionID) {
	if p := s.regions[region]; p != nil && !p.flushed {
		p.flushed = true
		s.live--
	}
}

// track puts a new segment into the list.
func (l *Log) track(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.segments = append(l.mu.segments, s)
}

// release notes that the committer has ended s.
func (l *Log) release(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.open = false
}

func (l *Log) isFlushed(s *segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.live == 0
}

// enter notes a committed group, before its callers are woken.
func (l *Log) enter(s *segment, group []*request, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range group {
		s.add(q.region, q.sequence, int64(len(q.buf)), l.mu.flushed[q.region])
	}
	s.end = end
}

// Flushed says that all records of the region up to and including sequence
// are durable elsewhere. Segments that nobody needs any more are deleted.
func (l *Log) Flushed(region table.RegionID, sequence uint64) {
	l.mu.Lock()
	if sequence > l.mu.flushed[region] {
		l.mu.flushed[region] = sequence
		for _, s := range l.mu.segments {
			if p := s.regions[region]; p != nil && p.max <= sequence {
				s.drop(region)
			}
		}
	}
	l.mu.Unlock()
	l.sweep()
}

// Forget says that a region does not exist any more. It is called after the
// region's last Append has returned.
func (l *Log) Forget(region table.RegionID) {
	l.mu.Lock()
	delete(l.mu.flushed, region)
	for _, s := range l.mu.segments {
		s.drop(region)
	}
	l.mu.Unlock()
	l.sweep()
}

// damagedSuffix is added to the name of a segment that held damage, so that it
// is out of the way and can still be looked at.
const damagedSuffix = ".damaged"

// sweep deletes the segments that nobody needs. One that cannot be deleted is
// tried again by the next sweep.
func (l *Log) sweep() {
	found := l.unneeded()
	for _, s := range found {
		err := l.remove(s)
		if err != nil {
			l.opts.Logger.Warn("wal: a segment cannot be deleted", "segment", s.path, "error", err)
		}
		l.swept(s, err == nil)
	}
	if len(found) == 0 {
		return
	}
	// A deleted segment that comes back holds only what is flushed, but its
	// number may have been used again by then.
	if err := l.disk.SyncDir(l.dir); err != nil {
		l.opts.Logger.Warn("wal: deleted segments may come back", "dir", l.dir, "error", err)
	}
}

func (l *Log) remove(s *segment) error {
	if s.damaged {
		return l.disk.Rename(s.path, s.path+damagedSuffix)
	}
	err := l.disk.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unneeded returns the segments to delete and marks them.
func (l *Log) unneeded() []*segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.replayed {
		return nil
	}
	var found []*segment
	for _, s := range l.mu.segments {
		if !s.open && !s.removing && s.live == 0 {
			s.removing = true
			found = append(found, s)
		}
	}
	return found
}

func (l *Log) swept(s *segment, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.removing = false
	if gone {
		l.mu.segments = slices.DeleteFunc(l.mu.segments, func(o *segment) bool { return o == s })
	}
}

// A Pressure says how large the log is and what keeps its oldest segment.
type Pressure struct {
	Bytes    int64 // of all segments
	MaxBytes int64 // Options.MaxBytes

	// Segment is the oldest segment that is not written to any more, 0 if
	// there is none. It goes when each of Regions is flushed or relocated.
	Segment uint64
	Regions []Backlog // largest first
}

// Over reports whether the log is larger than it should be.
func (p Pressure) Over() bool { return p.Bytes > p.MaxBytes }

// A Backlog is what a segment holds of one region.
type Backlog struct {
	Region   table.RegionID
	Sequence uint64 // no smaller sequence of the region in it is unflushed
	Bytes    int64  // of the region's records, as stored
}

// Bytes returns the size of all segments.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytesLocked()
}

func (l *Log) bytesLocked() (n int64) {
	for _, s := range l.mu.segments {
		n += s.end
	}
	return n
}

// Pressure returns the log's size and what keeps its oldest segment. Over
// MaxBytes, the caller flushes the regions of the oldest segment that are
// large, and relocates those that are small and cold.
func (l *Log) Pressure() Pressure {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := Pressure{Bytes: l.bytesLocked(), MaxBytes: l.opts.MaxBytes}
	for _, s := range l.mu.segments {
		if s.open || s.live == 0 {
			continue
		}
		p.Segment = s.number
		for region, held := range s.regions {
			if !held.flushed {
				first := max(held.min, l.mu.flushed[region]+1)
				p.Regions = append(p.Regions, Backlog{Region: region, Sequence: first, Bytes: held.bytes})
			}
		}
		break
	}
	slices.SortFunc(p.Regions, func(a, b Backlog) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Region, b.Region))
	})
	return p
}
