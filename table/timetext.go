package table

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // names of zones must work where the system knows none

	"github.com/varvedb/varve/fault"
)

// ParseTime reads a date, or a date with a time of day, as ISO 8601 and SQL
// write it:
//
//	2026-01-02
//	2026-01-02 15:04[:05[.999999999]]
//	2026-01-02T15:04:05Z, …+08:00, …+0800, …+08, …+8, … Europe/Berlin
//
// Years have four to six digits and may be negative. Digits after the ninth of
// a fraction must be zeros. Without an offset it is a time of zone.
//
// It is the one reader of time literals: a text means the same time in INSERT
// and in WHERE.
func ParseTime(s string, zone *time.Location) (time.Time, bool) {
	r := timeReader{s: strings.TrimSpace(s)}
	year := r.year()
	r.must('-')
	month := r.digits(1, 2)
	r.must('-')
	day := r.digits(1, 2)
	var hour, minute, second, nanos int
	if r.skip('T') || r.skip('t') || r.skip(' ') {
		hour = r.digits(1, 2)
		r.must(':')
		minute = r.digits(1, 2)
		if r.skip(':') {
			second = r.digits(1, 2)
			nanos = r.fraction()
		}
		zone = r.zone(zone)
	}
	if r.bad || r.s != "" || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, zone).UTC(), true
}

// FormatTime returns a value of a timestamp type or of Date as text that
// ParseTime reads as the same time.
func FormatTime(raw int64, t Type) string {
	at := t.Time(raw)
	sign, year := "", at.Year()
	if year < 0 {
		sign, year = "-", -year
	}
	layout := "-01-02 15:04:05.999999999-0700"
	if t == Date {
		layout = "-01-02"
	}
	return fmt.Sprintf("%s%04d", sign, year) + at.Format(layout)
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// ParseZone returns the time zone of an offset such as +08:00, +8, or -0330,
// or of a name of the IANA data base such as Asia/Shanghai.
func ParseZone(s string) (*time.Location, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "" || strings.EqualFold(s, "local"):
	case strings.EqualFold(s, "utc"), strings.EqualFold(s, "z"), strings.EqualFold(s, "system"):
		return time.UTC, nil
	case s[0] == '+' || s[0] == '-':
		if offset, ok := parseOffset(s[1:]); ok {
			name := fmt.Sprintf("%c%02d:%02d", s[0], offset/3600, offset/60%60)
			if s[0] == '-' {
				offset = -offset
			}
			return time.FixedZone(name, offset), nil
		}
	default:
		if zone, err := time.LoadLocation(s); err == nil {
			return zone, nil
		}
	}
	return nil, fault.Errorf(fault.Invalid, "%q is not a time zone; write an offset such as +08:00 or a name such as Asia/Shanghai", s)
}

// parseOffset reads h, hh, hh:mm or hhmm as seconds.
func parseOffset(s string) (int, bool) {
	r := timeReader{s: s}
	hours, minutes := r.digits(1, 2), 0
	if r.skip(':') || r.s != "" {
		minutes = r.digits(2, 2)
	}
	return hours*3600 + minutes*60, !r.bad && r.s == "" && hours <= 15 && minutes <= 59
}

// A timeReader takes a time's text apart. Once something does not fit, bad
// stays set.
type timeReader struct {
	s   string
	bad bool
}

func (r *timeReader) year() int {
	if r.skip('-') {
		return -r.digits(4, 6)
	}
	return r.digits(4, 6)
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

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (r *timeReader) skip(c byte) bool {
	if r.s == "" || r.s[0] != c {
		return false
	}
	r.s = r.s[1:]
	return true
}

func (r *timeReader) must(c byte) { r.bad = !r.skip(c) || r.bad }

// fraction reads an optional .123456789 as nanoseconds.
func (r *timeReader) fraction() (nanos int) {
	if !r.skip('.') {
		return 0
	}
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
func (r *timeReader) zone(otherwise *time.Location) *time.Location {
	text := strings.TrimLeft(r.s, " ")
	r.s = ""
	if text == "" || r.bad {
		return otherwise
	}
	z, err := ParseZone(text)
	if err != nil {
		r.bad = true
		return otherwise
	}
	return z
}
