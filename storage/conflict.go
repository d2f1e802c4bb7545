package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// # Where rows must be merged
//
// Two rows can have one identity only if they are of one series. In a source,
// the rows of a series have a range of times; where the ranges of one series
// in two sources overlap, the rows of both in the overlap may meet, and only
// those. A series that has repeats or tombstones in a source is mixed, and
// there the whole range is as if a second source had it.
//
// So the times at which a series must be merged are those that at least two
// ranges cover. For each source they are cut to the source's own range: its
// stretches. Every row of a stretch is merged with those of the others'
// stretches; all other rows stand alone.

// A contender is one series of one source that may have to be merged.
type contender struct {
	series uint32
	times  table.TimeRange
	mixed  bool
	group  uint32 // of the contenders with its key
}

// A keyGroup is the contenders with one key.
type keyGroup struct {
	hash     uint64
	key      []byte
	first    contender // most groups have one member
	more     []contender
	from, to uint32 // in conflictFinder.merged
}

// A conflictFinder groups the contenders of several sources by key.
type conflictFinder struct {
	groups []keyGroup
	slots  []uint32 // group + 1 by hash; a power of two
	keys   []byte
	lists  [][]contender     // by source
	merged []table.TimeRange // the times at which groups must be merged
}

var conflictSeed = maphash.MakeSeed()

// add adds a series of the source that is number len(lists)-1.
func (f *conflictFinder) add(key []byte, c contender) {
	c.group = f.find(key)
	g := &f.groups[c.group]
	if g.first.times.Empty() {
		g.first = c
	} else {
		g.more = append(g.more, c)
	}
	last := len(f.lists) - 1
	f.lists[last] = append(f.lists[last], c)
}

func (f *conflictFinder) find(key []byte) uint32 {
	if 2*len(f.groups) >= len(f.slots) {
		f.grow()
	}
	h, mask := maphash.Bytes(conflictSeed, key), uint64(len(f.slots)-1)
	i := h & mask
	for ; f.slots[i] != 0; i = (i + 1) & mask {
		if g := &f.groups[f.slots[i]-1]; g.hash == h && bytes.Equal(g.key, key) {
			return f.slots[i] - 1
		}
	}
	f.slots[i] = uint32(len(f.groups)) + 1
	at := len(f.keys)
	f.keys = append(f.keys, key...)
	none := contender{times: table.TimeRange{Min: 1, Max: 0}}
	f.groups = append(f.groups, keyGroup{hash: h, key: f.keys[at:len(f.keys):len(f.keys)], first: none})
	return f.slots[i] - 1
}

func (f *conflictFinder) grow() {
	f.slots = make([]uint32, max(256, 2*len(f.slots)))
	mask := uint64(len(f.slots) - 1)
	for g := range f.groups {
		i := f.groups[g].hash & mask
		for f.slots[i] != 0 {
			i = (i + 1) & mask
		}
		f.slots[i] = uint32(g) + 1
	}
}

// stretches returns what each source has to have merged.
func (f *conflictFinder) stretches() [][]run.Stretch {
	var ranges []table.TimeRange
	for i := range f.groups {
		g := &f.groups[i]
		g.from = uint32(len(f.merged))
		if len(g.more) == 0 && g.first.mixed {
			f.merged = append(f.merged, g.first.times)
		} else if len(g.more) > 0 {
			ranges = ranges[:0]
			for _, c := range append([]contender{g.first}, g.more...) {
				ranges = append(ranges, c.times)
				if c.mixed {
					ranges = append(ranges, c.times)
				}
			}
			f.merged = appendCoveredTwice(f.merged, ranges)
		}
		g.to = uint32(len(f.merged))
	}
	out := make([][]run.Stretch, len(f.lists))
	for i, list := range f.lists {
		for _, c := range list {
			g := &f.groups[c.group]
			for _, t := range f.merged[g.from:g.to] {
				if t = t.Intersect(c.times); !t.Empty() {
					out[i] = append(out[i], run.Stretch{Series: c.series, Times: t})
				}
			}
		}
	}
	return out
}

// appendCoveredTwice appends, in order and disjoint, the times that at least
// two of ranges cover, which it sorts.
func appendCoveredTwice(dst, ranges []table.TimeRange) []table.TimeRange {
	slices.SortFunc(ranges, func(a, b table.TimeRange) int { return cmp.Compare(a.Min, b.Min) })
	from, end := len(dst), ranges[0].Max
	for _, r := range ranges[1:] {
		if twice := (table.TimeRange{Min: r.Min, Max: min(r.Max, end)}); !twice.Empty() {
			dst = appendTimes(dst, from, twice)
		}
		end = max(end, r.Max)
	}
	return dst
}

// appendTimes appends r to the disjoint ranges dst[from:], none of which begins
// after it, joining what overlaps.
func appendTimes(dst []table.TimeRange, from int, r table.TimeRange) []table.TimeRange {
	if n := len(dst); n > from && dst[n-1].Max >= r.Min {
		dst[n-1].Max = max(dst[n-1].Max, r.Max)
		return dst
	}
	return append(dst, r)
}

// conflicts finds the stretches of sources, which are files with series
// indexes and memtables. Of files only the series are looked at whose times
// overlap with those of others, by the number of the source.
func (p *planner) conflicts(sources []*source, others func(i int) []table.TimeRange) [][]run.Stretch {
	f := new(conflictFinder)
	var key []byte
	for i, s := range sources {
		f.lists = append(f.lists, nil)
		near := others(i)
		overlap := func(t table.TimeRange) bool {
			return slices.ContainsFunc(near, func(o table.TimeRange) bool { return o.Overlaps(t) })
		}
		if s.memory != nil {
			s.memory.EachSeries(p.request(), func(x memtable.Series) {
				if x.Mixed || overlap(x.Times) {
					f.add(x.Key, contender{series: x.ID, times: x.Times, mixed: x.Mixed})
				}
			})
			continue
		}
		count := s.index.Len()
		for i := run.NextBit(s.match, 0, count); i < count; i = run.NextBit(s.match, i+1, count) {
			n := uint32(i)
			if t := s.index.Times(n); s.index.Mixed(n) || overlap(t) {
				key = s.index.AppendKey(key[:0], n)
				f.add(key, contender{series: n, times: t, mixed: s.index.Mixed(n)})
			}
		}
	}
	return f.stretches()
}

// timesOf returns the times of the sources whose numbers are wanted, as few
// disjoint ranges.
func timesOf(sources []*source, wanted func(i int) bool) []table.TimeRange {
	var ranges []table.TimeRange
	for i, s := range sources {
		if wanted(i) {
			ranges = append(ranges, s.times)
		}
	}
	slices.SortFunc(ranges, func(a, b table.TimeRange) int { return cmp.Compare(a.Min, b.Min) })
	out := ranges[:0]
	for _, r := range ranges {
		out = appendTimes(out, 0, r)
	}
	return out
}

// findStretches sets the stretches of a cluster's sources.
func (p *planner) findStretches(sources []*source) {
	var files, memory []*source
	for _, s := range sources {
		if s.memory != nil {
			memory = append(memory, s)
		} else {
			files = append(files, s)
		}
	}
	all := append(files[:len(files):len(files)], memory...)
	if p.selective(files) {
		p.setStretches(all, func(i int) []table.TimeRange {
			return timesOf(all, func(n int) bool { return n != i })
		})
		return
	}
	if len(files) > 0 {
		for i, list := range p.fileStretches(files) {
			files[i].stretches = list
		}
	}
	if len(memory) == 0 {
		return
	}
	recent := timesOf(memory, func(int) bool { return true })
	p.setStretches(all, func(i int) []table.TimeRange {
		if i < len(files) {
			return recent
		}
		return timesOf(all, func(n int) bool { return n != i })
	})
}

func (p *planner) setStretches(sources []*source, others func(i int) []table.TimeRange) {
	for i, list := range p.conflicts(sources, others) {
		sources[i].stretches = joinStretches(sources[i].stretches, list)
	}
}

// selective reports whether the predicates on tags leave so few series that
// what is known of all of them does not help.
func (p *planner) selective(files []*source) bool {
	left, all := 0, 0
	for _, s := range files {
		all += s.index.Len()
		if s.match == nil {
			return false
		}
		left += countBits(s.match)
	}
	return left <= all/8
}

// joinStretches returns the union of two lists.
func joinStretches(a, b []run.Stretch) []run.Stretch {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b run.Stretch) int {
		return cmp.Or(cmp.Compare(a.Series, b.Series), cmp.Compare(a.Times.Min, b.Times.Min))
	})
	out := all[:1]
	for _, x := range all[1:] {
		if last := &out[len(out)-1]; last.Series == x.Series && last.Times.Max >= x.Times.Min {
			last.Times.Max = max(last.Times.Max, x.Times.Max)
			continue
		}
		out = append(out, x)
	}
	return out
}

// fileStretches returns the stretches of files without regard to predicates.
// Who asks must know a stretch of a series that he does not want from others.
// They are the same for every scan that needs these files.
func (p *planner) fileStretches(files []*source) [][]run.Stretch {
	var set []byte
	for _, s := range files {
		set = binary.BigEndian.AppendUint64(set, s.file.number)
	}
	if known, ok := p.e.overlap.get(string(set)); ok {
		return known
	}
	whole := make([]*source, len(files))
	for i, s := range files {
		whole[i] = new(source)
		*whole[i] = *s
		whole[i].match = nil
	}
	found := p.conflicts(whole, func(i int) []table.TimeRange {
		return timesOf(whole, func(n int) bool { return n != i })
	})
	size := int64(len(set))
	for _, list := range found {
		size += int64(cap(list)) * int64(unsafe.Sizeof(run.Stretch{}))
	}
	p.e.overlap.put(string(set), found, size)
	return found
}
