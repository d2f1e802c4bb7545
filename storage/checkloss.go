package storage

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// Check finds what is gone without a trace of its own by sequences. A region's
// rows up to the manifest's flushed sequence are in its files; those above it
// are in the log, and a file that no manifest names has only such rows as the
// log has too.

// An orphan is a file that no manifest names.
type orphan struct {
	region table.RegionID
	key    string
}

// logged is what the log has of a region.
type logged struct {
	sequences roaring64.Bitmap
	segments  []loggedIn
}

type loggedIn struct {
	segment   uint64
	sequences roaring64.Bitmap
}

func (c *checker) loggedOf(id table.RegionID) *logged {
	l := c.logged[id]
	if l == nil {
		l = &logged{}
		c.logged[id] = l
	}
	return l
}

func (l *logged) add(segment, sequence uint64) {
	l.sequences.Add(sequence)
	if n := len(l.segments); n == 0 || l.segments[n-1].segment != segment {
		l.segments = append(l.segments, loggedIn{segment: segment})
	}
	l.segments[len(l.segments)-1].sequences.Add(sequence)
}

// segmentOf returns the first segment with the sequence, 0 if there is none.
func (l *logged) segmentOf(sequence uint64) uint64 {
	for i := range l.segments {
		if l.segments[i].sequences.Contains(sequence) {
			return l.segments[i].segment
		}
	}
	return 0
}

// compare looks for sequences that neither manifests nor the log cover.
func (c *checker) compare(walDir string) error {
	for _, o := range c.orphans {
		if err := c.orphan(o); err != nil {
			return err
		}
	}
	var ids []table.RegionID
	for id := range c.logged {
		if !c.unknown[id] && !c.opts.Dropped(id.Table()) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.gaps(walDir, id)
	}
	return nil
}

// orphan judges a file that no manifest names. A flush that a crash ended
// leaves one whose rows are logged; so does one that was tried again.
func (c *checker) orphan(o orphan) error {
	first, last, err := sst.Sequences(c.ctx, c.bucket, o.key)
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	switch {
	case err != nil:
		c.problem(o.key, "no manifest names it, and it cannot be read: %v", err)
	case c.unknown[o.region]: // the manifest is a problem already
		c.report.Orphans = append(c.report.Orphans, o.key)
	case c.covered(o.region, first) && c.covered(o.region, last):
		c.report.Orphans = append(c.report.Orphans, o.key)
	default:
		c.problem(o.key, "it has rows of sequences %d to %d, no manifest names it, and the log does not have them all: "+
			"the region's newest manifest edits may be lost, and these rows with them", first, last)
	}
	return nil
}

func (c *checker) covered(id table.RegionID, sequence uint64) bool {
	return sequence <= c.flushed[id] || c.loggedOf(id).sequences.Contains(sequence)
}

// gaps reports unflushed sequences that the log lacks where a segment is gone.
// Without that, a gap is a write that was refused.
func (c *checker) gaps(walDir string, id table.RegionID) {
	l := c.logged[id]
	last := c.flushed[id]
	for it := l.sequences.Iterator(); it.HasNext(); {
		s := it.Next()
		if s <= last {
			continue
		}
		if s > last+1 {
			if gone, ok := c.goneBetween(l.segmentOf(last), l.segmentOf(s)); ok {
				c.problem(walDir, "segment %d is gone, and with it what was logged of table %d, region %d, with the sequences %d to %d, or a part of it",
					gone, id.Table(), uint32(id), last+1, s-1)
			}
		}
		last = s
	}
}

// goneBetween returns a segment that is missing between two others. Records
// that were relocated stand in the wrong place, which makes the first unknown.
func (c *checker) goneBetween(left, right uint64) (uint64, bool) {
	if left > right {
		left = 0
	}
	if right == 0 {
		right = math.MaxUint64
	}
	for _, n := range c.missing {
		if left <= n && n <= right {
			return n, true
		}
	}
	return 0, false
}
