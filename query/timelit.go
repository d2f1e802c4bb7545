package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/table"
)

// parseTime reads a time as statements write it: a date, or a date and a time
// of day with T or a space between them, up to nine digits of a second, and an
// offset (Z, +08, +08:00, +0800). Without an offset it is a time in zone.
func parseTime(s string, zone *time.Location) (time.Time, bool) {
	p := timeParser{rest: strings.TrimSpace(s)}
	sign := 1
	if p.skip("-") {
		sign = -1
	}
	year := sign * p.number(1, 6)
	p.must("-")
	month := p.number(1, 2)
	p.must("-")
	day := p.number(1, 2)
	var hour, minute, second, nanos int
	if p.skip("T") || p.skip("t") || p.skip(" ") {
		hour, minute, second, nanos = p.clock()
	}
	if p.failed || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	zone = p.zone(zone)
	if p.failed || p.rest != "" {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone).UTC(), true
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

type timeParser struct {
	rest   string
	failed bool
}

func (p *timeParser) skip(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

func (p *timeParser) must(s string) { p.failed = !p.skip(s) || p.failed }

// number reads a number of low to high digits.
func (p *timeParser) number(low, high int) int {
	n := 0
	for n < len(p.rest) && n < high && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	v, _ := strconv.Atoi(p.rest[:n])
	p.failed = n < low || p.failed
	p.rest = p.rest[n:]
	return v
}

func (p *timeParser) clock() (hour, minute, second, nanos int) {
	hour = p.number(1, 2)
	p.must(":")
	minute = p.number(1, 2)
	if !p.skip(":") {
		return hour, minute, 0, 0
	}
	second = p.number(1, 2)
	if p.skip(".") {
		before := len(p.rest)
		nanos = p.number(1, 9)
		for range 9 - (before - len(p.rest)) {
			nanos *= 10
		}
	}
	return hour, minute, second, nanos
}

// zone reads the offset, if there is one.
func (p *timeParser) zone(otherwise *time.Location) *time.Location {
	p.rest = strings.TrimSpace(p.rest)
	sign := 1
	switch {
	case p.rest == "":
		return otherwise
	case strings.EqualFold(p.rest, "z") || strings.EqualFold(p.rest, "utc"):
		p.rest = ""
		return time.UTC
	case p.skip("-"):
		sign = -1
	default:
		p.must("+")
	}
	seconds := p.number(2, 2) * 3600
	if p.skip(":") || p.rest != "" {
		seconds += p.number(2, 2) * 60
	}
	return time.FixedZone("", sign*seconds)
}

// The times that DuckDB can read and compare without overflow. All units but
// nanoseconds go through microseconds on their way.
var (
	minNanos  = time.Unix(0, math.MinInt64+2).UTC()
	maxNanos  = time.Unix(0, math.MaxInt64-1).UTC()
	minMicros = time.Date(-290307, 1, 1, 0, 0, 0, 0, time.UTC)
	maxMicros = time.Date(294246, 12, 31, 23, 59, 59, 999999999, time.UTC)
)

// inUnit returns t in the unit of a timestamp type, rounded down. exact says
// that nothing was lost. Beyond what the unit can hold, beyond is -1 or 1.
func inUnit(t time.Time, typ table.Type) (raw int64, exact bool, beyond int) {
	low, high := minMicros, maxMicros
	if typ == table.TimestampNanosecond {
		low, high = minNanos, maxNanos
	}
	switch {
	case t.Before(low):
		return math.MinInt64, false, -1
	case t.After(high):
		return math.MaxInt64, false, 1
	}
	unit := typ.UnitNanos()
	nanos := int64(t.Nanosecond())
	return t.Unix()*(1e9/unit) + nanos/unit, nanos%unit == 0, 0
}

// fromUnit is the time that a raw value of a timestamp type stands for.
func fromUnit(raw int64, typ table.Type) time.Time {
	unit := typ.UnitNanos()
	per := 1e9 / unit
	sec := raw / per
	if raw%per < 0 {
		sec--
	}
	return time.Unix(sec, (raw-sec*per)*unit).UTC()
}

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
