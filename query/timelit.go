package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeText writes a time as DuckDB reads it.
func timeText(t time.Time) string {
	year, era := t.Year(), ""
	if year <= 0 {
		year, era = 1-year, " (BC)"
	}
	s := fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second())
	if t.Nanosecond() != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%09d", t.Nanosecond()), "0")
	}
	return s + era
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// An interval is a span of time whose months and days are not of one length.
type interval struct {
	months, days int
	nanos        int64
}

// addTo adds the interval n times; a day that a month does not have becomes its
// last.
func (i interval) addTo(t time.Time, n int) time.Time {
	if i.months != 0 {
		first := time.Date(t.Year(), t.Month()+time.Month(n*i.months), 1, 0, 0, 0, 0, time.UTC)
		day := min(t.Day(), daysIn(first.Year(), int(first.Month())))
		t = time.Date(first.Year(), first.Month(), day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	}
	t = t.AddDate(0, 0, n*i.days)
	return t.Add(time.Duration(n) * time.Duration(i.nanos))
}

func (i interval) plus(j interval, n int) interval {
	return interval{i.months + n*j.months, i.days + n*j.days, i.nanos + int64(n)*j.nanos}
}

// intervalUnits are the units that an interval is written in.
var intervalUnits = map[string]interval{
	"ns": {nanos: 1}, "nanosecond": {nanos: 1},
	"us": {nanos: 1e3}, "microsecond": {nanos: 1e3}, "usec": {nanos: 1e3},
	"ms": {nanos: 1e6}, "millisecond": {nanos: 1e6}, "msec": {nanos: 1e6},
	"s": {nanos: 1e9}, "sec": {nanos: 1e9}, "second": {nanos: 1e9},
	"m": {nanos: 60e9}, "min": {nanos: 60e9}, "minute": {nanos: 60e9},
	"h": {nanos: 3600e9}, "hr": {nanos: 3600e9}, "hour": {nanos: 3600e9},
	"d": {days: 1}, "day": {days: 1},
	"w": {days: 7}, "week": {days: 7},
	"mon": {months: 1}, "month": {months: 1},
	"quarter": {months: 3},
	"y":       {months: 12}, "year": {months: 12}, "yr": {months: 12},
}

// parseInterval reads whole amounts with units, such as "1 day 2 hours", "5m"
// or "-1 week". What it does not know is left to DuckDB.
func parseInterval(s string) (i interval, ok bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	for s != "" {
		digits := strings.IndexFunc(s, func(r rune) bool { return r != '-' && r != '+' && (r < '0' || r > '9') })
		if digits <= 0 {
			return i, false
		}
		n, err := strconv.ParseInt(s[:digits], 10, 32)
		if err != nil {
			return i, false
		}
		s = strings.TrimLeft(s[digits:], " ")
		end := strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
		if end < 0 {
			end = len(s)
		}
		unit, known := intervalUnits[s[:end]]
		if !known {
			if unit, known = intervalUnits[strings.TrimSuffix(s[:end], "s")]; !known {
				return i, false
			}
		}
		if unit.nanos != 0 && (n > math.MaxInt64/unit.nanos/4 || n < math.MinInt64/unit.nanos/4) {
			return i, false
		}
		i = i.plus(unit, int(n))
		s = strings.TrimLeft(s[end:], " ,")
		ok = true
	}
	return i, ok
}
