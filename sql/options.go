package sql

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/fault"
)

// optionChecks are the options that a table may have in WITH, each with the
// check of its value.
var optionChecks = map[string]func(value string) bool{
	"append_mode": isBool,
	"merge_mode":  isOneOf("last_row", "last_non_null"),
	"ttl":         isTTL,
	"comment":     isAnything,
	"skip_wal":    isBool,

	"compaction.type":                      isOneOf("twcs"),
	"compaction.override":                  isBool,
	"compaction.twcs.time_window":          isDuration,
	"compaction.twcs.trigger_file_num":     isCount,
	"compaction.twcs.max_output_file_size": isSize,

	"write_buffer_size":       isSize,
	"auto_flush_interval":     isDuration,
	"max_row_group_row_count": isCount,
	"sst_format":              isOneOf("flat"),
	"table_data_model":        isAnything,
}

// databaseOptions are those that a database may have, for its new tables.
var databaseOptions = []string{"append_mode", "merge_mode", "ttl", "skip_wal", "sst_format",
	"compaction.type", "compaction.twcs.time_window", "compaction.twcs.trigger_file_num", "compaction.twcs.max_output_file_size"}

func checkTableOptions(options []option) error {
	if err := checkOptions("table", options, func(key string) bool { return optionChecks[key] != nil }); err != nil {
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
		case !optionChecks[o.key](o.value):
			return fault.Errorf(fault.Invalid, "the option %q cannot be %q", o.key, o.value)
		}
		seen[o.key] = true
		if o.key == "append_mode" || o.key == "merge_mode" {
			options[i].value = strings.ToLower(o.value)
		}
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

func isAnything(string) bool { return true }

func isBool(s string) bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "false") }

func isOneOf(words ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(words, strings.ToLower(s)) }
}

func isCount(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && n > 0
}

func isDuration(s string) bool {
	d, ok := ParseDuration(s)
	return ok && d > 0
}

// isTTL accepts a duration, or a word or zero for keeping rows for ever.
func isTTL(s string) bool {
	switch strings.ToLower(s) {
	case "", "forever", "0":
		return true
	}
	d, ok := ParseDuration(s)
	return ok && d >= 0
}

func isSize(s string) bool {
	digits := strings.TrimRight(strings.ToUpper(s), "KMGTIB ")
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil || n == 0 {
		return false
	}
	switch strings.TrimSpace(strings.ToUpper(s[len(digits):])) {
	case "", "B", "K", "KB", "KIB", "M", "MB", "MIB", "G", "GB", "GIB", "T", "TB", "TIB":
		return true
	}
	return false
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
