package query

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/varvedb/varve/table"
)

// fold evaluates an expression that is a constant point in time: now() and its
// relatives, typed literals, and both of them moved by intervals or truncated.
func (r *rewriter) fold(n node, sc *scope) (t time.Time, ok bool) {
	switch class(n) {
	case "CAST":
		return r.foldCast(n, sc)
	case "COLUMN_REF":
		if cols := names(n, "column_names"); len(cols) == 1 && sc.find(cols) == nil {
			return r.clock(cols[0])
		}
	case "FUNCTION":
		return r.foldCall(n, sc)
	}
	return t, false
}

// clock returns what the functions and the keywords for the current time mean
// in this statement.
func (r *rewriter) clock(name string) (time.Time, bool) {
	local := r.req.Now.In(r.req.TimeZone)
	switch strings.ToLower(name) {
	case "now", "current_timestamp", "transaction_timestamp", "get_current_timestamp":
		return r.req.Now.UTC(), true
	case "localtimestamp", "current_localtimestamp":
		return time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(),
			local.Nanosecond(), time.UTC), true
	case "current_date", "today":
		return time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, r.req.TimeZone).UTC(), true
	}
	return time.Time{}, false
}

// castTypes are the types that a time literal is cast to.
var castTypes = map[string]table.Type{
	"TIMESTAMP":                table.TimestampMicrosecond,
	"TIMESTAMP_S":              table.TimestampSecond,
	"TIMESTAMP_MS":             table.TimestampMillisecond,
	"TIMESTAMP_NS":             table.TimestampNanosecond,
	"TIMESTAMP WITH TIME ZONE": table.TimestampMicrosecond,
	"DATE":                     table.Date,
}

func (r *rewriter) foldCast(n node, sc *scope) (time.Time, bool) {
	typ, ok := castTypes[text(child(n, "cast_type"), "id")]
	if !ok {
		return time.Time{}, false
	}
	t, ok := time.Time{}, false
	if s, isText := stringConstant(child(n, "child")); isText {
		t, ok = table.ParseTime(s, r.req.TimeZone)
	} else {
		t, ok = r.fold(child(n, "child"), sc)
	}
	if !ok {
		return t, false
	}
	if typ == table.Date {
		l := t.In(r.req.TimeZone)
		return time.Date(l.Year(), l.Month(), l.Day(), 0, 0, 0, 0, r.req.TimeZone).UTC(), true
	}
	raw, _, beyond := typ.FromTime(t)
	return typ.Time(raw), beyond == 0
}

func (r *rewriter) foldCall(n node, sc *scope) (time.Time, bool) {
	args := list(n, "children")
	if len(args) == 0 {
		return r.clock(text(n, "function_name"))
	}
	if len(args) == 1 && strings.EqualFold(text(n, "function_name"), "ago") {
		i, ok := foldInterval(args[0].(node))
		return i.addTo(r.req.Now.UTC(), -1), ok
	}
	if len(args) != 2 {
		return time.Time{}, false
	}
	a, b := args[0].(node), args[1].(node)
	switch strings.ToLower(text(n, "function_name")) {
	case "+":
		if t, ok := r.fold(a, sc); ok {
			i, ok := foldInterval(b)
			return i.addTo(t, 1), ok
		}
		if t, ok := r.fold(b, sc); ok {
			i, ok := foldInterval(a)
			return i.addTo(t, 1), ok
		}
	case "-":
		if t, ok := r.fold(a, sc); ok {
			i, ok := foldInterval(b)
			return i.addTo(t, -1), ok
		}
	case "date_trunc", "datetrunc":
		part, ok := stringConstant(a)
		if t, isTime := r.fold(b, sc); ok && isTime {
			return truncate(t, strings.ToLower(part))
		}
	}
	return time.Time{}, false
}

// truncate is date_trunc of a constant.
func truncate(t time.Time, part string) (time.Time, bool) {
	date := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	}
	switch part {
	case "second":
		return t.Truncate(time.Second), true
	case "minute":
		return t.Truncate(time.Minute), true
	case "hour":
		return t.Truncate(time.Hour), true
	case "day":
		return date(t.Year(), t.Month(), t.Day()), true
	case "week":
		return date(t.Year(), t.Month(), t.Day()-(int(t.Weekday())+6)%7), true
	case "month":
		return date(t.Year(), t.Month(), 1), true
	case "year":
		return date(t.Year(), 1, 1), true
	}
	return t, false
}

// foldInterval evaluates a constant interval.
func foldInterval(n node) (interval, bool) {
	if text(child(n, "cast_type"), "id") == "INTERVAL" {
		if s, ok := stringConstant(child(n, "child")); ok {
			return parseInterval(s)
		}
		return foldInterval(child(n, "child"))
	}
	args := list(n, "children")
	if class(n) != "FUNCTION" || len(args) == 0 {
		return interval{}, false
	}
	name, first := strings.ToLower(text(n, "function_name")), args[0].(node)
	if unit, ok := strings.CutPrefix(name, "to_"); ok && len(args) == 1 {
		i, known := intervalUnits[strings.TrimSuffix(unit, "s")]
		amount, isNumber := foldInteger(first)
		if !known || !isNumber || amount > math.MaxInt32 || amount < math.MinInt32 || i.nanos > 3600e9 {
			return interval{}, false
		}
		return interval{}.plus(i, int(amount)), true
	}
	if len(args) == 1 && name == "-" {
		i, ok := foldInterval(first)
		return interval{}.plus(i, -1), ok
	}
	if len(args) != 2 {
		return interval{}, false
	}
	second := args[1].(node)
	switch name {
	case "+", "-":
		i, ok := foldInterval(first)
		j, also := foldInterval(second)
		sign := 1
		if name == "-" {
			sign = -1
		}
		return i.plus(j, sign), ok && also
	case "*":
		if i, ok := foldInterval(first); ok {
			k, ok := foldInteger(second)
			return interval{}.plus(i, int(k)), ok && k == int64(int32(k))
		}
		if i, ok := foldInterval(second); ok {
			k, ok := foldInteger(first)
			return interval{}.plus(i, int(k)), ok && k == int64(int32(k))
		}
	}
	return interval{}, false
}

// foldInteger evaluates a whole number, also as the parser wraps it in the
// amount of an interval.
func foldInteger(n node) (int64, bool) {
	switch class(n) {
	case "CONSTANT":
		id, v, _ := constant(n)
		num, ok := v.(json.Number)
		if !ok || (id != "INTEGER" && id != "BIGINT") {
			return 0, false
		}
		i, err := strconv.ParseInt(num.String(), 10, 64)
		return i, err == nil
	case "CAST":
		switch text(child(n, "cast_type"), "id") {
		case "DOUBLE", "BIGINT", "INTEGER":
			return foldInteger(child(n, "child"))
		}
	}
	if args, ok := isCall(n, "trunc", "-"); ok && len(args) == 1 {
		i, ok := foldInteger(args[0].(node))
		if text(n, "function_name") == "-" {
			i = -i
		}
		return i, ok
	}
	return 0, false
}
