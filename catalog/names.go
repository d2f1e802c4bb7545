package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varvedb/varve/fault"
)

// maxNameBytes bounds the names of databases, tables and columns. Parquet and
// DuckDB have no limit of their own; this one keeps schemas readable and edits
// small.
const maxNameBytes = 512

// reservedDatabases exist by themselves and hold no tables of users.
var reservedDatabases = []string{"information_schema", "pg_catalog"}

// reservedColumns are written into every SST by the engine.
var reservedColumns = []string{"__sequence", "__op_type"}

// checkName checks a name of a thing of this kind: UTF-8 without NUL, neither
// empty nor too long.
func checkName(kind, name string) error {
	switch {
	case name == "":
		return fault.Errorf(fault.Invalid, "%s name is empty", kind)
	case len(name) > maxNameBytes:
		return fault.Errorf(fault.Invalid, "%s name %.32q… has %d bytes; at most %d are allowed",
			kind, name, len(name), maxNameBytes)
	case !utf8.ValidString(name):
		return fault.Errorf(fault.Invalid, "%s name %q is not UTF-8", kind, name)
	case strings.IndexByte(name, 0) >= 0:
		return fault.Errorf(fault.Invalid, "%s name %q contains a NUL byte", kind, name)
	}
	return nil
}

// checkDatabaseName also refuses what cannot travel in a header or would be
// cut as a retention policy (bucket=db/policy).
func checkDatabaseName(name string) error {
	if err := checkName("database", name); err != nil {
		return err
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r == '/' || unicode.IsControl(r) }) {
		return fault.Errorf(fault.Invalid, "database name %q contains a slash or control character", name)
	}
	return checkReserved("database", name, reservedDatabases)
}

func checkColumnName(name string) error {
	if err := checkName("column", name); err != nil {
		return err
	}
	return checkReserved("column", name, reservedColumns)
}

func checkReserved(kind, name string, reserved []string) error {
	for _, r := range reserved {
		if fold(name) == r {
			return fault.Errorf(fault.Invalid, "%s name %q is reserved", kind, name)
		}
	}
	return nil
}
