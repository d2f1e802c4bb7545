package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// checkUnits refuses what TOML can say and a Size or a Duration cannot mean: a
// bare number has no unit of time, and would pass for nanoseconds.
func checkUnits(_, to reflect.Type, value any) (any, error) {
	_, isText := value.(string)
	n, isWhole := value.(int64)
	switch {
	case isText || isWhole && n == 0:
	case to == reflect.TypeFor[Duration]():
		return nil, fmt.Errorf("%v is not a duration such as \"500ms\", \"30s\", \"1h30m\" or \"7d\"", value)
	case to == reflect.TypeFor[Size]() && (!isWhole || n < 0):
		return nil, fmt.Errorf("%v is not a size such as \"64MiB\", \"1.5GB\" or 4096", value)
	}
	return value, nil
}

// A Size is a number of bytes, written such as 64MiB or 1.5GB.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes float64
}{ // longest names first, so that MiB is not taken for B
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	in := strings.TrimSpace(string(text))
	for _, u := range sizeUnits {
		if len(in) < len(u.name) || !strings.EqualFold(in[len(in)-len(u.name):], u.name) {
			continue
		}
		number := strings.TrimSpace(in[:len(in)-len(u.name)])
		n, err := strconv.ParseFloat(number, 64)
		if bytes := n * u.bytes; err == nil && bytes >= 0 && bytes < math.MaxInt64 {
			*s = Size(bytes)
			return nil
		}
		break
	}
	return fmt.Errorf("%q is not a size such as 64MiB, 1.5GB or 4096", in)
}

// String writes the size in the largest binary unit that divides it.
func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if u := sizeUnits[i]; s != 0 && s%Size(u.bytes) == 0 {
			return strconv.FormatInt(int64(s)/int64(u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// A Duration is a time.Duration that text formats can hold.
type Duration time.Duration

// UnmarshalText reads a duration such as 1h30m; a day is 1d.
func (d *Duration) UnmarshalText(text []byte) error {
	in := strings.TrimSpace(string(text))
	if days, ok := strings.CutSuffix(in, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 1e5 {
			*d = Duration(n) * Duration(24*time.Hour)
			return nil
		}
	}
	v, err := time.ParseDuration(in)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 500ms, 30s, 1h30m or 7d", in)
	}
	*d = Duration(v)
	return nil
}

// String writes the duration without zero parts.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
