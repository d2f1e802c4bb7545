package run

import (
	"sort"

	"github.com/varvedb/varve/table"
)

// A Selection narrows a Request to some rows of one Source that numbers its
// series. The numbers are the Source's own.
type Selection struct {
	Series    table.Bitmap // the series that are wanted; nil: all
	Stretches []Stretch    // by series, then time; those of a series do not overlap

	// Except says that the rows of Stretches are not wanted; without it they
	// are the only ones that are.
	Except bool
}

// A Stretch is the rows of one series in a range of times.
type Stretch struct {
	Series uint32
	Times  table.TimeRange
}

// Of returns the stretches of one series.
func (s *Selection) Of(series uint32) []Stretch {
	lo := sort.Search(len(s.Stretches), func(i int) bool { return s.Stretches[i].Series >= series })
	hi := lo
	for hi < len(s.Stretches) && s.Stretches[hi].Series == series {
		hi++
	}
	return s.Stretches[lo:hi]
}

// Keep appends the parts of within, in ascending order, whose rows of a series
// are wanted; stretches are those of the series.
func (s *Selection) Keep(dst []table.TimeRange, series uint32, stretches []Stretch, within table.TimeRange) []table.TimeRange {
	if within.Empty() || !s.Series.Get(int(series)) {
		return dst
	}
	if !s.Except {
		for _, x := range stretches {
			if t := x.Times.Intersect(within); !t.Empty() {
				dst = append(dst, t)
			}
		}
		return dst
	}
	for _, x := range stretches {
		switch {
		case x.Times.Max < within.Min:
			continue
		case x.Times.Min > within.Max:
			return append(dst, within)
		case x.Times.Min > within.Min:
			dst = append(dst, table.TimeRange{Min: within.Min, Max: x.Times.Min - 1})
		}
		if x.Times.Max >= within.Max {
			return dst
		}
		within.Min = x.Times.Max + 1
	}
	return append(dst, within)
}
