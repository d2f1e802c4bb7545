package sql

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varvedb/varve/table"
)

// A converter turns values into what a column holds. It changes nothing that
// would be lost: what does not fit is an error.
type converter struct {
	zone *time.Location
	now  time.Time
}

var (
	errLossy = errors.New("a part of it would be lost")
	errRange = errors.New("it is out of range")
	errKind  = errors.New("it is of another kind")
	errUTF8  = errors.New("it is not UTF-8 text")
)

// ints returns v for a column whose layout is Ints.
func (c *converter) ints(v value, typ table.Type) (int64, error) {
	switch {
	case typ.IsTimestamp():
		return c.timestamp(v, typ)
	case typ == table.Date:
		return c.date(v)
	}
	n, err := integer(v, typ == table.UInt64)
	if err == nil && typ != table.UInt64 {
		err = inRange(n, typ)
	}
	return n, err
}

// inRange returns errRange if a column of the type may not hold n.
func inRange(n int64, typ table.Type) error {
	if typ.Holds(n) {
		return nil
	}
	return errRange
}

// integer returns v as an integer; an unsigned one as its bits.
func integer(v value, unsigned bool) (int64, error) {
	switch v.kind {
	case intKind:
		if unsigned && v.num < 0 {
			return 0, errRange
		}
		return v.num, nil
	case boolKind:
		if v.text == "true" {
			return 1, nil
		}
		return 0, nil
	case numberKind, textKind:
		return parseInteger(strings.TrimSpace(v.text), unsigned)
	}
	return 0, errKind
}

func parseInteger(s string, unsigned bool) (n int64, err error) {
	if unsigned {
		var u uint64
		u, err = strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
		n = int64(u)
	} else {
		n, err = strconv.ParseInt(s, 10, 64)
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, errRange
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, errKind
	case f != math.Trunc(f):
		return 0, errLossy
	case math.Abs(f) > 1<<53, unsigned && f < 0:
		return 0, errRange // above it, not every integer is a float
	}
	return int64(f), nil
}

// timestamp returns v in typ's unit. A number is in that unit already, a text
// without an offset is a time of the session's zone.
func (c *converter) timestamp(v value, typ table.Type) (int64, error) {
	var t time.Time
	switch v.kind {
	case intKind, numberKind:
		n, err := integer(v, false)
		if err == nil {
			err = inRange(n, typ)
		}
		return n, err
	case nowKind:
		return c.nowIn(typ)
	case textKind:
		if isNow(v.text) {
			return c.nowIn(typ)
		}
		var ok bool
		if t, ok = table.ParseTime(v.text, c.zone); !ok {
			return 0, errors.New("it is not a time")
		}
	case timeKind:
		if v.typ == typ {
			return v.num, inRange(v.num, typ)
		}
		if err := inRange(v.num, v.typ); err != nil { // an infinity, perhaps
			return 0, err
		}
		t = v.typ.Time(v.num)
	default:
		return 0, errKind
	}
	n, exact, beyond := typ.FromTime(t)
	switch {
	case beyond != 0:
		return 0, errRange
	case !exact:
		return 0, errLossy
	}
	return n, nil
}

// nowIn returns the statement's time, rounded down.
func (c *converter) nowIn(typ table.Type) (int64, error) {
	n, _, beyond := typ.FromTime(c.now)
	if beyond != 0 {
		return 0, errRange
	}
	return n, nil
}

// isNow reports whether a text stands for the time of the statement.
func isNow(s string) bool {
	return strings.EqualFold(s, "now()") || strings.EqualFold(s, "current_timestamp") || strings.EqualFold(s, "current_timestamp()")
}

// date returns v as days since 1970-01-01.
func (c *converter) date(v value) (int64, error) {
	var t time.Time
	switch v.kind {
	case intKind, numberKind:
		n, err := integer(v, false)
		if err == nil {
			err = inRange(n, table.Date)
		}
		return n, err
	case nowKind:
		y, m, d := c.now.In(c.zone).Date()
		t = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case textKind:
		var ok bool
		if t, ok = table.ParseTime(v.text, time.UTC); !ok {
			return 0, errors.New("it is not a date")
		}
	case timeKind:
		if err := inRange(v.num, v.typ); err != nil {
			return 0, err
		}
		t = v.typ.Time(v.num)
	default:
		return 0, errKind
	}
	n, exact, beyond := table.Date.FromTime(t)
	switch {
	case beyond != 0:
		return 0, errRange
	case !exact:
		return 0, errLossy
	}
	return n, nil
}

// float returns v for a Float32 or Float64 column. An integer must be exactly
// that float; a decimal fraction becomes the nearest one.
func (c *converter) float(v value, typ table.Type) (float64, error) {
	bits := 64
	if typ == table.Float32 {
		bits = 32
	}
	switch v.kind {
	case boolKind:
		n, err := integer(v, false)
		return float64(n), err
	case intKind:
		v.text = strconv.FormatInt(v.num, 10)
	case numberKind, textKind:
		v.text = strings.TrimSpace(v.text)
	default:
		return 0, errKind
	}
	f, err := strconv.ParseFloat(v.text, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errRange
	case err != nil:
		return 0, errKind
	case len(v.text) > 7 && isWhole(v.text) && strconv.FormatFloat(f, 'f', -1, 64) != strings.TrimLeft(v.text, "+") && !sameInteger(f, v.text):
		return 0, errLossy
	}
	return f, nil
}

// isWhole reports whether s is an optional sign and digits.
func isWhole(s string) bool { return strings.Trim(strings.TrimLeft(s, "+-"), "0123456789") == "" }

// sameInteger reports whether f is exactly the integer s.
func sameInteger(f float64, s string) bool {
	exact := new(big.Float).SetFloat64(f)
	want, ok := new(big.Float).SetPrec(2048).SetString(s)
	return ok && exact.Cmp(want) == 0
}

// boolean returns v for a Boolean column.
func (c *converter) boolean(v value) (bool, error) {
	switch v.kind {
	case boolKind, textKind, numberKind:
		switch strings.ToLower(strings.TrimSpace(v.text)) {
		case "true", "t", "1":
			return true, nil
		case "false", "f", "0":
			return false, nil
		}
	case intKind:
		if v.num == 0 || v.num == 1 {
			return v.num == 1, nil
		}
	}
	return false, errKind
}

// bytes returns v for a String or Binary column.
func (c *converter) bytes(v value, typ table.Type) (string, error) {
	switch v.kind {
	case bytesKind:
		if typ == table.String && !utf8.ValidString(v.text) {
			return "", errUTF8
		}
		return v.text, nil
	case textKind:
		return v.text, nil
	case numberKind, boolKind, intKind, timeKind:
		if typ != table.String {
			return "", errKind
		}
		if v.kind == intKind {
			return strconv.FormatInt(v.num, 10), nil
		}
		if v.kind == timeKind {
			return strings.TrimSuffix(table.FormatTime(v.num, v.typ), "+0000"), nil
		}
		return v.text, nil
	}
	return "", errKind
}

// explain says which value does not fit which column and why.
func explain(v value, name string, typ table.Type, why error) string {
	return fmt.Sprintf("column %q: %s does not fit %s: %v", name, v, typ.SQL(), why)
}
