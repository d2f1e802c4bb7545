package query

import (
	"errors"
	"regexp"
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/duckdb"
)

// kinds says what the classes of DuckDB's errors mean to the one who asked. A
// class that is not here is a fault of ours.
var kinds = map[string]fault.Kind{
	"Parser":                      fault.Syntax,
	"Syntax":                      fault.Syntax,
	"Binder":                      fault.Plan,
	"Catalog":                     fault.Plan,
	"Parameter Not Resolved":      fault.Plan,
	"Parameter Not Allowed":       fault.Plan,
	"Expression":                  fault.Plan,
	"Conversion":                  fault.Invalid,
	"Out of Range":                fault.Invalid,
	"Invalid Input":               fault.Invalid,
	"Invalid type":                fault.Invalid,
	"Mismatch Type":               fault.Invalid,
	"Divide by Zero":              fault.Invalid,
	"Decimal":                     fault.Invalid,
	"Sequence":                    fault.Invalid,
	"Constraint":                  fault.Invalid,
	"Invalid":                     fault.Invalid,
	"Not implemented":             fault.Unsupported,
	"Permission":                  fault.Denied,
	"Missing Extension":           fault.Unsupported,
	"Invalid Configuration":       fault.Unsupported,
	"Out of Memory":               fault.Exhausted,
	"Object Size":                 fault.Exhausted,
	"IO":                          fault.Exhausted, // spilling is all that DuckDB reads and writes
	"TransactionContext":          fault.Internal,
	"INTERNAL":                    fault.Internal,
	"FATAL":                       fault.Internal,
	"Autoloading of an Extension": fault.Unsupported,
}

// fault gives an error of DuckDB's its kind, and prefers the cause where that is
// known better: the end of the context, or the error of a scan.
func (st *statement) fault(err error) error {
	st.mu.Lock()
	scanErr := st.mu.err
	st.mu.Unlock()
	switch {
	case st.parent.Err() != nil:
		return st.parent.Err()
	case scanErr != nil:
		return scanErr
	}
	var d *duckdb.Error
	if !errors.As(err, &d) {
		return err
	}
	if d.Class == "FATAL" || d.Class == "INTERNAL" || strings.Contains(d.Message, "database has been invalidated") {
		st.conn.in.fatal()
	}
	if strings.HasPrefix(d.Class, "INTERRUPT") || strings.HasPrefix(d.Message, "INTERRUPT") {
		return fault.Errorf(fault.Cancelled, "the query was interrupted")
	}
	if strings.Contains(d.Message, limitText) {
		return fault.Errorf(fault.TooLarge, "%s", cleanMessage(d.Message))
	}
	return fault.Errorf(kinds[d.Class], "%s", cleanMessage(d.Message))
}

// limitText is in what the guards of bound.go say.
const limitText = "() would "

// scanCall is a scan as DuckDB prints it in front of the table's name.
var scanCall = regexp.MustCompile(`"?` + scanFunction + `"?\(\d+\) AS `)

// cleanMessage takes what is DuckDB's own out of a message.
func cleanMessage(s string) string {
	s = scanCall.ReplaceAllString(unmark(s), "")
	s, _, _ = strings.Cut(s, "\n\tCandidate functions")
	s, _, _ = strings.Cut(s, "\nDid you mean")
	s, _, _ = strings.Cut(s, "\n\nPossible solutions:") // settings that nobody can make
	s, _, _ = strings.Cut(s, "\nYou can adjust this by increasing the 'max_temp_directory_size'")
	s, _, _ = strings.Cut(s, " Use \"SET max_expression_depth")
	return s
}
