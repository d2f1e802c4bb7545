package lineprotocol

import (
	"fmt"
	"math"

	"github.com/varvedb/varve/table"
)

// A timescale converts the timestamps of a request to the unit of a table's
// time index.
type timescale struct {
	multiply, divide int64 // one of them is 1
	low, high        int64 // what the table's time index may hold
	now              int64 // for lines without a timestamp, in the table's unit
	precision        Precision
	column           *table.Column
}

// newTimescale prepares conversions. now is cut to the coarser of the two
// units: nobody sent it, so nothing is lost.
func newTimescale(p Precision, column *table.Column, now int64) timescale {
	unit := column.Type.UnitNanos()
	s := timescale{multiply: 1, divide: 1, precision: p, column: column}
	if int64(p) >= unit {
		s.multiply = int64(p) / unit
	} else {
		s.divide = unit / int64(p)
	}
	s.low, s.high = column.Type.Range()
	s.now = floor(floor(now, int64(p)), unit) / unit
	return s
}

// floor returns the largest multiple of unit that is not over n.
func floor(n, unit int64) int64 {
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	return n - rest
}

// convert returns t in the table's unit, if nothing of it is lost.
func (s *timescale) convert(t int64) (_ int64, ok bool) {
	if s.divide != 1 {
		if t%s.divide != 0 {
			return 0, false
		}
		t /= s.divide
	} else if s.multiply != 1 {
		if t > math.MaxInt64/s.multiply || t < math.MinInt64/s.multiply {
			return 0, false
		}
		t *= s.multiply
	}
	return t, s.low <= t && t <= s.high
}

// problem says why convert did not take t.
func (s *timescale) problem(t int64) string {
	if rest := t % s.divide; rest != 0 {
		return fmt.Sprintf("timestamp %d %s does not fit column %q %s: %d %s would be lost",
			t, s.precision, s.column.Name, s.column.Type.SQL(), max(rest, -rest), s.precision)
	}
	return fmt.Sprintf("timestamp %d %s is out of the range of column %q %s",
		t, s.precision, s.column.Name, s.column.Type.SQL())
}
