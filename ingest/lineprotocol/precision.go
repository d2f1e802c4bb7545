package lineprotocol

import "github.com/varvedb/varve/fault"

// A Precision is the unit of the timestamps of a request, in nanoseconds.
type Precision int64

// The precisions.
const (
	Nanosecond  Precision = 1
	Microsecond Precision = 1e3
	Millisecond Precision = 1e6
	Second      Precision = 1e9
	Minute      Precision = 60e9
	Hour        Precision = 3600e9
)

// ParsePrecision returns the precision that a request's parameter names; an
// empty one is Nanosecond, and an unknown one fault.Invalid.
func ParsePrecision(name string) (Precision, error) {
	switch name {
	case "", "n", "ns":
		return Nanosecond, nil
	case "u", "us", "µ", "µs":
		return Microsecond, nil
	case "ms":
		return Millisecond, nil
	case "s":
		return Second, nil
	case "m":
		return Minute, nil
	case "h":
		return Hour, nil
	}
	return 0, fault.Errorf(fault.Invalid, "precision %q is not one of ns, us, ms, s, m, h", name)
}

// String returns the name as v1 requests spell it.
func (p Precision) String() string {
	switch p {
	case Microsecond:
		return "us"
	case Millisecond:
		return "ms"
	case Second:
		return "s"
	case Minute:
		return "m"
	case Hour:
		return "h"
	default:
		return "ns"
	}
}
