package sql

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
)

// optionValues are the options that a table may have in WITH, each with what
// makes its value canonical, so that its readers need to know one spelling.
var optionValues = map[string]func(value string) (canonical string, ok bool){
	"append_mode": boolean,
	"merge_mode":  oneOf("last_row", "last_non_null"),
	"ttl":         ttl,
	"comment":     anything,
	"skip_wal":    boolean,

	"compaction.type":                      oneOf("twcs"),
	"compaction.override":                  boolean,
	"compaction.twcs.time_window":          duration,
	"compaction.twcs.trigger_file_num":     count,
	"compaction.twcs.max_output_file_size": size,

	"write_buffer_size":       size,
	"auto_flush_interval":     duration,
	"max_row_group_row_count": count,
	"sst_format":              oneOf("flat"),
	"table_data_model":        anything,
}

// databaseOptions are those that a database may have, for its new tables.
var databaseOptions = []string{"append_mode", "merge_mode", "ttl", "skip_wal", "sst_format",
	"compaction.type", "compaction.twcs.time_window", "compaction.twcs.trigger_file_num", "compaction.twcs.max_output_file_size"}

func checkTableOptions(options []option) error {
	if err := checkOptions("table", options, func(key string) bool { return optionValues[key] != nil }); err != nil {
		return err
	}
	if optionValue(options, "append_mode") == "true" && optionValue(options, "merge_mode") == "last_non_null" {
		return fault.Errorf(fault.Invalid, "append_mode = 'true' keeps every row and cannot be combined with merge_mode = 'last_non_null'")
	}
	return nil
}

func checkDatabaseOptions(options []option) error {
	return checkOptions("database", options, func(key string) bool { return slices.Contains(databaseOptions, key) })
}

func checkOptions(what string, options []option, known func(string) bool) error {
	seen := map[string]bool{}
	for i, o := range options {
		switch {
		case strings.HasPrefix(o.key, "greptime.semantic."):
			continue // notes for tools, kept as they are
		case !known(o.key):
			return fault.Errorf(fault.Invalid, "a %s has no option %q", what, o.key)
		case seen[o.key]:
			return fault.Errorf(fault.Invalid, "the option %q is given twice", o.key)
		}
		value, ok := optionValues[o.key](o.value)
		if !ok {
			return fault.Errorf(fault.Invalid, "the option %q cannot be %q", o.key, o.value)
		}
		seen[o.key], options[i].value = true, value
	}
	return nil
}

// optionValue returns the value of the option key, or "".
func optionValue(options []option, key string) string {
	if i := slices.IndexFunc(options, func(o option) bool { return o.key == key }); i >= 0 {
		return options[i].value
	}
	return ""
}

func anything(s string) (string, bool) { return s, true }

var boolean = oneOf("true", "false")

func oneOf(words ...string) func(string) (string, bool) {
	return func(s string) (string, bool) {
		s = strings.ToLower(s)
		return s, slices.Contains(words, s)
	}
}

func count(s string) (string, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return strconv.FormatUint(n, 10), err == nil && n > 0
}

// duration accepts whole milliseconds from a second on.
func duration(s string) (string, bool) {
	d, ok := ParseDuration(s)
	return formatDuration(d), ok && d >= time.Second && d%time.Millisecond == 0
}

// ttl accepts a duration, or a word or zero for keeping rows for ever.
func ttl(s string) (string, bool) {
	d, ok := ParseDuration(s)
	if word := strings.ToLower(s); word == "" || word == "forever" || word == "0" || ok && d == 0 {
		return "forever", true
	}
	return duration(s)
}

func size(s string) (string, bool) {
	upper := strings.ToUpper(strings.TrimSpace(s))
	digits := strings.TrimRight(upper, "KMGTIB ")
	n, err := strconv.ParseUint(digits, 10, 40)
	unit := strings.TrimSpace(upper[len(digits):])
	switch unit {
	case "", "B", "K", "KB", "KIB", "M", "MB", "MIB", "G", "GB", "GIB", "T", "TB", "TIB":
		return strconv.FormatUint(n, 10) + unit, err == nil && n > 0
	}
	return "", false
}

// formatDuration writes a duration with the units d, h, m, s, ms, us and ns.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b []byte
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", 1}} {
		if n := d / u.size; n > 0 {
			b = append(strconv.AppendInt(b, int64(n), 10), u.name...)
			d -= n * u.size
		}
	}
	return string(b)
}

// durationUnits are the units of a duration. A month is 30.44 days and a year
// 365.25, as in humantime.
var durationUnits = map[string]time.Duration{
	"ns": 1, "nsec": 1, "us": time.Microsecond, "usec": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day, "w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	"M": 2_630_016 * time.Second, "month": 2_630_016 * time.Second, "months": 2_630_016 * time.Second,
	"y": 31_557_600 * time.Second, "year": 31_557_600 * time.Second, "years": 31_557_600 * time.Second,
}

const day = 24 * time.Hour

// ParseDuration parses whole numbers with units, such as "90s", "1h 30m" or
// "7 days".
func ParseDuration(s string) (time.Duration, bool) {
	var total time.Duration
	s = strings.TrimSpace(s)
	for parts := 0; ; parts++ {
		if s = strings.TrimLeft(s, " "); s == "" {
			return total, parts > 0
		}
		digits := strings.TrimLeft(s, "0123456789")
		n, err := strconv.ParseInt(s[:len(s)-len(digits)], 10, 64)
		s = strings.TrimLeft(digits, " ")
		end := 0
		for end < len(s) && isLetter(s[end]) {
			end++
		}
		unit, ok := durationUnits[s[:end]]
		s = s[end:]
		if err != nil || !ok || n > math.MaxInt64/int64(unit) || total > math.MaxInt64-time.Duration(n)*unit {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
}
