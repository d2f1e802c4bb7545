package table

import (
	"math"
	"time"
)

// The years that DATE and every timestamp but nanoseconds may be in. They are
// whole years that DuckDB holds in microseconds, which it converts all of them
// to: a single value beyond would make a query fail that reads it.
const (
	minYear = -290_307
	maxYear = 294_246
)

var (
	minSecond = time.Date(minYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	maxSecond = time.Date(maxYear, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

const secondsPerDay = 86_400

// Range returns the smallest and the largest value that a column of t may
// hold, for types whose layout is Ints. That of UInt64 ends where int64 does.
//
// Every path by which values get into tables refuses those outside. DuckDB's
// infinities are outside: -2^63+1 and 2^63-1 in any unit.
func (t Type) Range() (low, high int64) {
	switch t {
	case Int8:
		return math.MinInt8, math.MaxInt8
	case Int16:
		return math.MinInt16, math.MaxInt16
	case Int32:
		return math.MinInt32, math.MaxInt32
	case UInt8:
		return 0, math.MaxUint8
	case UInt16:
		return 0, math.MaxUint16
	case UInt32:
		return 0, math.MaxUint32
	case UInt64:
		return 0, math.MaxInt64
	case Date:
		return minSecond / secondsPerDay, maxSecond / secondsPerDay
	case TimestampSecond, TimestampMillisecond, TimestampMicrosecond:
		perSecond := 1e9 / t.UnitNanos()
		return minSecond * perSecond, maxSecond*perSecond + perSecond - 1
	case TimestampNanosecond:
		return math.MinInt64 + 2, math.MaxInt64 - 1
	default:
		return math.MinInt64, math.MaxInt64
	}
}

// Holds reports whether n is in the Range of t.
func (t Type) Holds(n int64) bool {
	low, high := t.Range()
	return low <= n && n <= high
}

// Time returns the time that a value of a timestamp type or of Date stands
// for, in UTC.
func (t Type) Time(raw int64) time.Time {
	if t == Date {
		return time.Unix(raw*secondsPerDay, 0).UTC()
	}
	unit := t.UnitNanos()
	seconds, rest := floorDiv(raw, 1e9/unit)
	return time.Unix(seconds, rest*unit).UTC()
}

// FromTime returns at as a value of a timestamp type or of Date, rounded down.
// exact says that nothing was cut off. beyond is -1 or 1, and raw the smallest
// or largest int64, if at is outside of the type's Range.
func (t Type) FromTime(at time.Time) (raw int64, exact bool, beyond int) {
	low, high := t.Range()
	// Within a second of the ends a time may be in range or not, and the
	// multiplication below may overflow only beyond them.
	switch seconds := at.Unix(); {
	case seconds < t.Time(low).Unix():
		return math.MinInt64, false, -1
	case seconds > t.Time(high).Unix():
		return math.MaxInt64, false, 1
	}
	nanos := int64(at.Nanosecond())
	switch t {
	case Date:
		days, rest := floorDiv(at.Unix(), secondsPerDay)
		return days, rest == 0 && nanos == 0, 0
	case TimestampNanosecond:
		return nanosFromTime(at, low, high)
	}
	unit := t.UnitNanos()
	return at.Unix()*(1e9/unit) + nanos/unit, nanos%unit == 0, 0
}

func nanosFromTime(at time.Time, low, high int64) (raw int64, exact bool, beyond int) {
	switch {
	case at.Before(time.Unix(0, low)):
		return math.MinInt64, false, -1
	case at.After(time.Unix(0, high)):
		return math.MaxInt64, false, 1
	}
	return at.UnixNano(), true, 0
}

// floorDiv returns n / d rounded down, and what is left over.
func floorDiv(n, d int64) (quotient, rest int64) {
	quotient, rest = n/d, n%d
	if rest < 0 {
		quotient, rest = quotient-1, rest+d
	}
	return quotient, rest
}
