package table

import (
	"math"
	"testing"
	"time"
)

var timeTypes = []Type{Date, TimestampSecond, TimestampMillisecond, TimestampMicrosecond, TimestampNanosecond}

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("", 3600)
	f := func(s, want string) {
		t.Helper()
		got := "bad"
		if at, ok := ParseTime(s, zone); ok {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
	f("2026-01-02", "2026-01-01T23:00:00Z")
	f(" 2026-01-02 03:04 ", "2026-01-02T02:04:00Z")
	f("2026-1-2 3:04:05", "2026-01-02T02:04:05Z")
	f("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456789Z")
	f("2026-01-02t03:04:05.1000000000z", "2026-01-02T03:04:05.1Z")
	f("2026-01-02 03:04:05+0530", "2026-01-01T21:34:05Z")
	f("2026-01-02 03:04:05+8", "2026-01-01T19:04:05Z")
	f("2026-01-02 03:04:05 -08", "2026-01-02T11:04:05Z")
	f("2026-07-02 03:04:05 Europe/Berlin", "2026-07-02T01:04:05Z")
	f("2024-02-29", "2024-02-28T23:00:00Z")
	f("-0044-03-15T12:00Z", "-0044-03-15T12:00:00Z")
	f("290000-01-01T00:00Z", "290000-01-01T00:00:00Z")
	f("2026-02-29", "bad")
	f("2026-13-01", "bad")
	f("2026-01-02 24:00:00", "bad")
	f("2026-01-02 03:04:05.", "bad")
	f("2026-01-02 03:04:05.1234567891", "bad")
	f("2026-01-02 03:04:05+25", "bad")
	f("2026-01-02 15:04:05+99:99", "bad")
	f("2026-01-02 15:04:05+08:60", "bad")
	f("2026-01-02 15:04:05 Nowhere", "bad")
	f("2026-01-02-05", "bad")
	f("2026-01-02 03", "bad")
	f("26-01-02", "bad")
	f("now", "bad")
	f("", "bad")
}

func TestParseZone(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		got := "bad"
		if z, err := ParseZone(s); err == nil {
			got = time.Date(2026, 7, 1, 12, 0, 0, 0, z).UTC().Format("15:04")
		}
		if got != want {
			t.Errorf("noon in %q is %s, want %s", s, got, want)
		}
	}
	f("+08:00", "04:00")
	f("+8", "04:00")
	f("-0330", "15:30")
	f("utc", "12:00")
	f("SYSTEM", "12:00")
	f("Asia/Shanghai", "04:00")
	f("Europe/Berlin", "10:00")
	f("Local", "bad")
	f("", "bad")
	f("+24:00", "bad")
	f("+08:60", "bad")
	f("../etc/passwd", "bad")
}

// Every value that a type can hold is a time that is that value again, and is
// written as a text that means it.
func TestTimesRoundTrip(t *testing.T) {
	for _, typ := range timeTypes {
		low, high := typ.Range()
		for _, raw := range []int64{low, low + 1, -1001, -1, 0, 1, 999, 1234567, high - 1, high} {
			got, exact, beyond := typ.FromTime(typ.Time(raw))
			if got != raw || !exact || beyond != 0 {
				t.Errorf("%d of %s is %s, which is %d, %v, %d", raw, typ, typ.Time(raw), got, exact, beyond)
			}
			text := FormatTime(raw, typ)
			if at, ok := ParseTime(text, time.UTC); !ok || !at.Equal(typ.Time(raw)) {
				t.Errorf("%d of %s is written %q, which is %s, %v", raw, typ, text, at, ok)
			}
		}
		if _, _, beyond := typ.FromTime(typ.Time(high).Add(24 * time.Hour)); beyond != 1 {
			t.Errorf("after the last %s: beyond is %d", typ, beyond)
		}
		if _, _, beyond := typ.FromTime(typ.Time(low).Add(-1)); beyond != -1 {
			t.Errorf("before the first %s: beyond is %d", typ, beyond)
		}
	}
}

// The range is what DuckDB can bring to microseconds, its infinities excluded.
func TestTimeRange(t *testing.T) {
	for _, typ := range timeTypes {
		for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64} {
			if typ.Holds(n) {
				t.Errorf("%s holds %d", typ, n)
			}
		}
		low, high := typ.Range()
		for _, at := range []time.Time{typ.Time(low), typ.Time(high)} {
			if got := at.UnixMicro(); !time.UnixMicro(got).Equal(at.Truncate(time.Microsecond)) {
				t.Errorf("the end %s of %s overflows microseconds", at, typ)
			}
		}
	}
	for _, typ := range []Type{Int8, Int16, Int32, UInt8, UInt16, UInt32} {
		low, high := typ.Range()
		if !typ.Holds(low) || !typ.Holds(high) || typ.Holds(low-1) || typ.Holds(high+1) {
			t.Errorf("%s: %d … %d", typ, low, high)
		}
	}
}

func TestFromTimeRoundsDown(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 59, 58, 999_999_999, time.UTC)
	for typ, want := range map[Type]int64{Date: -1, TimestampSecond: -2, TimestampMillisecond: -1001, TimestampMicrosecond: -1000001, TimestampNanosecond: -1000000001} {
		if raw, exact, _ := typ.FromTime(at); raw != want || exact != (typ == TimestampNanosecond) {
			t.Errorf("%s: %d, %v; want %d", typ, raw, exact, want)
		}
	}
}
