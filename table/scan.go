package table

import (
	"math"
	"sync"
	"sync/atomic"
)

// A TimeRange is the times from Min to Max, both included, in the unit of the
// table's time index.
type TimeRange struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// AllTime is every time.
var AllTime = TimeRange{math.MinInt64, math.MaxInt64}

// Empty reports whether no time is in r.
func (r TimeRange) Empty() bool { return r.Min > r.Max }

// Contains reports whether t is in r.
func (r TimeRange) Contains(t int64) bool { return r.Min <= t && t <= r.Max }

// Overlaps reports whether some time is in both.
func (r TimeRange) Overlaps(o TimeRange) bool { return r.Min <= o.Max && o.Min <= r.Max }

// Covers reports whether every time of o is in r.
func (r TimeRange) Covers(o TimeRange) bool { return r.Min <= o.Min && o.Max <= r.Max }

// Intersect returns the times in both.
func (r TimeRange) Intersect(o TimeRange) TimeRange {
	return TimeRange{max(r.Min, o.Min), min(r.Max, o.Max)}
}

// Union returns the smallest range with the times of both; an empty range adds
// nothing.
func (r TimeRange) Union(o TimeRange) TimeRange {
	switch {
	case r.Empty():
		return o
	case o.Empty():
		return r
	}
	return TimeRange{min(r.Min, o.Min), max(r.Max, o.Max)}
}

// A Compare is the operator of a Predicate.
type Compare uint8

// The operators. All but IsNull and IsNotNull fail on a null value, as in SQL.
const (
	Equal Compare = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	In // one of Values
	IsNull
	IsNotNull
)

// Holds reports whether an operator holds for a value that is not null and
// compares with the predicate's one constant as order says: below zero, zero or
// above. An operator that this program does not know rules nothing out.
func (c Compare) Holds(order int) bool {
	switch c {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Less:
		return order < 0
	case LessEqual:
		return order <= 0
	case Greater:
		return order > 0
	case GreaterEqual:
		return order >= 0
	default:
		return true
	}
}

// CompareFloats orders floats as keys and DuckDB do: every NaN is one value,
// the largest, and zeros are equal.
func CompareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a: // b is NaN
		return -1
	case b == b:
		return 1
	}
	return 0
}

// A Value is one constant of a Predicate. Type.Layout says which field holds
// it; an integer of UInt64 is its bits, a boolean is 0 or 1 in Int.
type Value struct {
	Type  Type
	Int   int64
	Float float64
	Bytes string
}

// A Predicate compares one column with constants of the column's own type.
type Predicate struct {
	Column ColumnID
	Op     Compare
	Values []Value
}

// An Order is the order in which the reader will want the rows.
type Order uint8

// The orders.
const (
	Unordered Order = iota
	TimeAscending
	TimeDescending
)

// A ScanSpec says what to read.
//
// Rows outside Times, and rows that fail a predicate on a tag, are never
// returned. Predicates on fields are hints that act on merged rows: a row that
// passes is always returned, one that fails may be.
//
// Limit with an Order says that only the first Limit rows in that order matter
// (0: all of them); Scan may return more, in any order.
type ScanSpec struct {
	Columns    []ColumnID // what to return, in this order; may be empty, to count
	Times      TimeRange
	Predicates []Predicate // all must hold
	Order      Order
	Limit      int
	Stats      *ScanStats // counts, if not nil
}

// ScanStats counts what a scan looked at and what it could leave out. All
// fields may be read while the scan runs.
type ScanStats struct {
	Files, FilesPruned         atomic.Int64
	RowGroups, RowGroupsPruned atomic.Int64
	Pages, PagesPruned         atomic.Int64 // data pages of the columns asked for
	CacheHits                  atomic.Int64 // pages that were found decoded
	BytesRead                  atomic.Int64 // from the bucket, compressed
	MemtableRows               atomic.Int64 // rows of memtables looked at
	RowsRead                   atomic.Int64 // rows decoded, before merge and filters
	RowsReturned               atomic.Int64
	FilesDamaged               atomic.Int64 // files of which some rows could not be read; see Damage

	damaged struct {
		sync.Mutex
		files map[string]bool
	}
}

// Damage notes that some rows of a file could not be read. However many parts
// of a file are damaged, and however often it is scanned, it counts once.
func (s *ScanStats) Damage(file string) {
	s.damaged.Lock()
	defer s.damaged.Unlock()
	if s.damaged.files[file] {
		return
	}
	if s.damaged.files == nil {
		s.damaged.files = make(map[string]bool)
	}
	s.damaged.files[file] = true
	s.FilesDamaged.Add(1)
}
