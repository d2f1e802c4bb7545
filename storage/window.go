package storage

import (
	"math"
	"strconv"
	"time"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

const (
	day = 24 * time.Hour

	defaultWindow = day // until the first flush has seen the data's rate

	// windowRows is how many rows a window should have at least: merging,
	// expiry and pruning work by window, so that fewer are not worth a file.
	windowRows = 4_000_000

	windowOption  = "compaction.twcs.time_window"
	skipWALOption = "skip_wal"
)

// windowChoices are the widths that are inferred.
var windowChoices = [...]time.Duration{time.Hour, 2 * time.Hour, 12 * time.Hour, day, 7 * day}

// inferWindow returns the smallest width whose windows get windowRows rows, if
// rows over span are the rate of all data.
func inferWindow(rows int64, span time.Duration) time.Duration {
	perNano := float64(rows) / float64(max(span, time.Minute))
	for _, w := range windowChoices {
		if perNano*float64(w) >= windowRows {
			return w
		}
	}
	return windowChoices[len(windowChoices)-1]
}

// span returns the length of times, whose unit is unitNanos, saturated.
func span(times table.TimeRange, unitNanos int64) time.Duration {
	d := uint64(times.Max) - uint64(times.Min)
	if d > uint64(math.MaxInt64/unitNanos) {
		return math.MaxInt64
	}
	return time.Duration(int64(d) * unitNanos)
}

// windowIndex returns the number of the window that t is in; windows are
// counted from time 0 and negative before it.
func windowIndex(t, width int64) int64 {
	i := t / width
	if t%width < 0 {
		i--
	}
	return i
}

// windowRange returns the times of window i, cut off where they leave the
// range of times.
func windowRange(i, width int64) table.TimeRange {
	r := table.AllTime
	if first := i * width; first/width == i {
		r.Min = first
	}
	if r.Min <= math.MaxInt64-(width-1) && (i >= 0 || r.Min != math.MinInt64) {
		r.Max = r.Min + width - 1
	} else if i < 0 {
		r.Max = (i+1)*width - 1
	}
	return r
}

// givenWindow returns the width that the table's options ask for, 0 if none.
func givenWindow(info *table.Info) (time.Duration, error) {
	text, ok := info.Options[windowOption]
	if !ok || text == "" {
		return 0, nil
	}
	d, err := parseSpan(text)
	if err != nil || d < time.Second {
		return 0, fault.Errorf(fault.Invalid, "table option %s=%q is not a duration of at least one second", windowOption, text)
	}
	return d, nil
}

// spanUnits are the units of parseSpan, longest name first.
var spanUnits = []struct {
	name string
	d    time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour},
	{"d", day}, {"w", 7 * day}, {"y", 365 * day},
}

// parseSpan parses a duration such as 1d or 1h30m.
func parseSpan(text string) (time.Duration, error) {
	total, rest := time.Duration(0), text
	for rest != "" {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, fault.Errorf(fault.Invalid, "%q is not a duration", text)
		}
		rest = rest[digits:]
		unit, size := time.Duration(0), 0
		for _, u := range spanUnits {
			if len(rest) >= len(u.name) && rest[:len(u.name)] == u.name {
				unit, size = u.d, len(u.name)
				break
			}
		}
		if unit == 0 || n > int64(math.MaxInt64-total)/int64(unit) {
			return 0, fault.Errorf(fault.Invalid, "%q is not a duration", text)
		}
		total, rest = total+time.Duration(n)*unit, rest[size:]
	}
	return total, nil
}
