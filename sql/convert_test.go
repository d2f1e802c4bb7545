package sql

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/varvedb/varve/table"
)

// What a column of a timestamp may hold is what its queries can read.
func TestTimestampRange(t *testing.T) {
	f := func(c converter, v value, typ table.Type, want error) {
		t.Helper()
		if _, err := c.ints(v, typ); !errors.Is(err, want) {
			t.Errorf("%s into %s: %v, want %v", v, typ, err, want)
		}
	}
	c := converter{zone: time.UTC}
	for _, typ := range []table.Type{table.Date, table.TimestampSecond, table.TimestampMillisecond, table.TimestampMicrosecond, table.TimestampNanosecond} {
		low, high := typ.Range()
		for _, v := range []value{{kind: intKind}, {kind: timeKind, typ: typ}} {
			v.num = low
			f(c, v, typ, nil)
			v.num = high
			f(c, v, typ, nil)
			for _, n := range []int64{low - 1, high + 1, math.MaxInt64, -math.MaxInt64} {
				v.num = n
				f(c, v, typ, errRange)
			}
		}
		f(c, value{kind: numberKind, text: "9223372036854775807"}, typ, errRange)
	}
	f(c, value{kind: textKind, text: "294247-01-01"}, table.TimestampSecond, errRange)
	f(c, value{kind: timeKind, typ: table.TimestampMicrosecond, num: math.MaxInt64}, table.TimestampSecond, errRange)
	f(c, value{kind: timeKind, typ: table.TimestampMicrosecond, num: math.MaxInt64}, table.Date, errRange)
	f(converter{now: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, value{kind: nowKind}, table.TimestampNanosecond, errRange)
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
		if again, _ := ParseDuration(formatDuration(got)); ok && again != got {
			t.Errorf("%s is written as %s", got, formatDuration(got))
		}
	}
	f("1d 1ns", 24*time.Hour+1)
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
