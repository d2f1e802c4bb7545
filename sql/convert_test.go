package sql

import (
	"math"
	"testing"
	"time"

	"github.com/varvedb/varve/table"
)

func TestParseTime(t *testing.T) {
	zone := time.FixedZone("", 3600)
	f := func(s, want string) {
		t.Helper()
		got := "bad"
		if at, ok := parseTime(s, zone); ok {
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
	f("2026-01-02 03:04:05 -08", "2026-01-02T11:04:05Z")
	f("2026-07-02 03:04:05 Europe/Berlin", "2026-07-02T01:04:05Z")
	f("2024-02-29", "2024-02-28T23:00:00Z")
	f("2026-02-29", "bad")
	f("2026-13-01", "bad")
	f("2026-01-02 24:00:00", "bad")
	f("2026-01-02 03:04:05.", "bad")
	f("2026-01-02 03:04:05.1234567891", "bad")
	f("2026-01-02 03:04:05+25", "bad")
	f("2026-01-02 03", "bad")
	f("26-01-02", "bad")
	f("now", "bad")
	f("", "bad")
}

// Every time that a unit can hold is written as a text that means it again.
func TestFormatTimeRoundTrip(t *testing.T) {
	c := converter{zone: time.FixedZone("", 7200)}
	for typ := table.TimestampSecond; typ <= table.TimestampNanosecond; typ++ {
		for _, n := range []int64{0, 1, -1, 999, -1001, 1767323045678, -62135596800} {
			got, err := c.timestamp(value{kind: textKind, text: formatTime(n, typ)}, typ)
			if y := timeOf(n, typ).Year(); (err != nil || got != n) && y >= 0 && y <= 9999 {
				t.Errorf("%d of %s is %s, which is %d, %v", n, typ, formatTime(n, typ), got, err)
			}
		}
	}
}

func TestTimeInRange(t *testing.T) {
	for typ := table.TimestampSecond; typ <= table.TimestampNanosecond; typ++ {
		for year := -9999; year <= 9999; year++ {
			at := time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)
			n, exact, ok := timeIn(at, typ)
			if ok != (typ != table.TimestampNanosecond || year > 1677 && year < 2262) {
				t.Errorf("year %d fits %s: %v", year, typ, ok)
			}
			if ok && (!exact || !timeOf(n, typ).Equal(at)) {
				t.Errorf("%s in %s is %s", at, typ, timeOf(n, typ))
			}
		}
	}
}

func TestParseDuration(t *testing.T) {
	f := func(s string, want time.Duration) {
		t.Helper()
		got, ok := ParseDuration(s)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
	f("90s", 90*time.Second)
	f(" 1h 30m", 90*time.Minute)
	f("1h30m", 90*time.Minute)
	f("7 days", 7*24*time.Hour)
	f("1M", 2_630_016*time.Second)
	f("1m", time.Minute)
	f("0s", 0)
	f("", -1)
	f("5", -1)
	f("s", -1)
	f("1.5h", -1)
	f("-1s", -1)
	f("300y", -1)
	f("292y 292y", -1)
}

func TestParseTimeZone(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		got := "bad"
		if z, err := ParseTimeZone(s); err == nil {
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

// An integer becomes a float only if the float is that integer.
func TestIntegersAsFloats(t *testing.T) {
	c := converter{}
	f := func(text string, typ table.Type, ok bool) {
		t.Helper()
		got, err := c.float(value{kind: numberKind, text: text}, typ)
		if (err == nil) != ok {
			t.Errorf("%s as %s is %v, %v", text, typ, got, err)
		}
	}
	f("9007199254740992", table.Float64, true)
	f("9007199254740993", table.Float64, false)
	f("1152921504606846976", table.Float64, true)
	f("-1152921504606846977", table.Float64, false)
	f("16777216", table.Float32, true)
	f("-16777217", table.Float32, false)
	f("000000000000001", table.Float64, true)
	f("+123456789", table.Float64, true)
	f("0.1", table.Float32, true)
	f("1e308", table.Float64, true)
	f("1e309", table.Float64, false)
	f("1e39", table.Float32, false)
	f("1x", table.Float64, false)

	for _, n := range []int64{math.MaxInt64, math.MinInt64, 1<<53 + 1, -1 << 53, 0} {
		got, err := c.float(value{kind: intKind, num: n}, table.Float64)
		if exact := int64(float64(n)) == n && n != math.MaxInt64; (err == nil) != exact {
			t.Errorf("%d is %v, %v", n, got, err)
		}
	}
}

func TestMatchLike(t *testing.T) {
	f := func(pattern, s string, want bool) {
		t.Helper()
		if got := like(pattern, s); got != want {
			t.Errorf("%q LIKE %q is %v", s, pattern, got)
		}
	}
	f("", "", true)
	f("%", "", true)
	f("_", "", false)
	f("cpu", "cpu", true)
	f("cpu", "CPU", false)
	f("c%", "cpu", true)
	f("%u", "cpu", true)
	f("c_u", "cpu", true)
	f("_", "é", true)
	f("%a%b%", "xxaxxbxx", true)
	f("%a%b", "xxbxxa", false)
	f(`a\_b`, "a_b", true)
	f(`a\_b`, "axb", false)
	f(`100\%`, "100%", true)
}
