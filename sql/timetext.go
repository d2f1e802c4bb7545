package sql

import (
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // names of zones must work where the system knows none

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// parseTime reads a date or a date with a time, as ISO 8601 and SQL write it:
//
//	2026-01-02
//	2026-01-02 15:04[:05[.999999999]]
//	2026-01-02T15:04:05Z, …+08:00, …+0800, …+08, … Europe/Berlin
//
// Without an offset it is a time of zone.
func parseTime(s string, zone *time.Location) (time.Time, bool) {
	r := timeReader{s: strings.TrimSpace(s)}
	year, month, day := r.digits(4, 4), 0, 0
	r.char("-")
	month = r.digits(1, 2)
	r.char("-")
	day = r.digits(1, 2)
	var hour, minute, second, nanos int
	if r.s != "" && r.char("T t") {
		hour = r.digits(1, 2)
		r.char(":")
		minute = r.digits(2, 2)
		if r.s != "" && r.s[0] == ':' {
			r.char(":")
			second = r.digits(2, 2)
			nanos = r.fraction()
		}
		zone = r.zone(zone)
	}
	if r.bad || r.s != "" || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone)
	if day > 28 && day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return time.Time{}, false
	}
	return t, true
}

// A timeReader takes a time's text apart. Once something does not fit, bad
// stays set.
type timeReader struct {
	s   string
	bad bool
}

// digits reads a number of least to most digits.
func (r *timeReader) digits(least, most int) (n int) {
	i := 0
	for ; i < len(r.s) && i < most && isDigit(r.s[i]); i++ {
		n = n*10 + int(r.s[i]-'0')
	}
	r.bad = r.bad || i < least
	r.s = r.s[i:]
	return n
}

// char reads one of the characters in set.
func (r *timeReader) char(set string) bool {
	if r.s == "" || strings.IndexByte(set, r.s[0]) < 0 {
		r.bad = true
		return false
	}
	r.s = r.s[1:]
	return true
}

// fraction reads an optional .123456789 as nanoseconds. More digits are bad
// unless they are zeros.
func (r *timeReader) fraction() (nanos int) {
	if r.s == "" || r.s[0] != '.' {
		return 0
	}
	r.s = r.s[1:]
	i := 0
	for scale := 100_000_000; i < len(r.s) && isDigit(r.s[i]); i++ {
		d := int(r.s[i] - '0')
		r.bad = r.bad || scale == 0 && d != 0
		nanos += d * scale
		scale /= 10
	}
	r.bad = r.bad || i == 0
	r.s = r.s[i:]
	return nanos
}

// zone reads an optional offset or the name of a zone.
func (r *timeReader) zone(zone *time.Location) *time.Location {
	text := strings.TrimLeft(r.s, " ")
	if text == "" {
		r.s = ""
		return zone
	}
	z, err := ParseTimeZone(text)
	if r.s = ""; err != nil {
		r.bad = true
		return zone
	}
	return z
}

// ParseTimeZone returns the time zone of an offset such as +08:00, +8, or
// -0330, or of a name of the IANA data base such as Asia/Shanghai.
func ParseTimeZone(s string) (*time.Location, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "" || strings.EqualFold(s, "local"):
	case strings.EqualFold(s, "utc"), strings.EqualFold(s, "z"), strings.EqualFold(s, "system"):
		return time.UTC, nil
	case s[0] == '+' || s[0] == '-':
		if offset, ok := parseOffset(s[1:]); ok {
			if s[0] == '-' {
				offset = -offset
			}
			return time.FixedZone(fmt.Sprintf("%c%02d:%02d", s[0], abs(offset)/3600, abs(offset)/60%60), offset), nil
		}
	default:
		if zone, err := time.LoadLocation(s); err == nil {
			return zone, nil
		}
	}
	return nil, fault.Errorf(fault.Invalid, "%q is not a time zone; write an offset such as +08:00 or a name such as Asia/Shanghai", s)
}

func abs(n int) int { return max(n, -n) }

// parseOffset reads h, hh, hh:mm or hhmm as seconds.
func parseOffset(s string) (int, bool) {
	r := timeReader{s: s}
	hours := r.digits(1, 2)
	minutes := 0
	if r.s != "" {
		if r.s[0] == ':' {
			r.char(":")
		}
		minutes = r.digits(2, 2)
	}
	return hours*3600 + minutes*60, !r.bad && r.s == "" && hours <= 15 && minutes <= 59
}

// timeIn returns t as a number of typ's units. exact is false where a part of
// a unit was cut off, ok where the time is too far away for the type.
func timeIn(t time.Time, typ table.Type) (n int64, exact, ok bool) {
	unit := typ.UnitNanos()
	perSecond := 1_000_000_000 / unit
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	if seconds < math.MinInt64/perSecond || seconds > math.MaxInt64/perSecond-1 {
		return 0, false, false
	}
	return seconds*perSecond + nanos/unit, nanos%unit == 0, true
}

// timeOf returns the time that n units of typ are.
func timeOf(n int64, typ table.Type) time.Time {
	if typ == table.Date {
		return time.Unix(n*86400, 0).UTC()
	}
	unit := typ.UnitNanos()
	perSecond := 1_000_000_000 / unit
	seconds, rest := n/perSecond, n%perSecond
	return time.Unix(seconds, rest*unit).UTC()
}

// formatTime returns the time as text that parseTime reads as the same time.
func formatTime(n int64, typ table.Type) string {
	if typ == table.Date {
		return timeOf(n, typ).Format(time.DateOnly)
	}
	return timeOf(n, typ).Format("2006-01-02 15:04:05.999999999-0700")
}
