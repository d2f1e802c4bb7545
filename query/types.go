package query

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/query/duckdb"
	"github.com/varvedb/varve/table"
)

// typeInfo is what a type of DuckDB's is called in results, and the table type
// that its values fit.
type typeInfo struct {
	name string
	typ  table.Type
}

var typeInfos = map[duckdb.TypeID]typeInfo{
	duckdb.SQLNull:     {"Null", table.InvalidType},
	duckdb.Boolean:     {"Boolean", table.Boolean},
	duckdb.TinyInt:     {"Int8", table.Int8},
	duckdb.SmallInt:    {"Int16", table.Int16},
	duckdb.Integer:     {"Int32", table.Int32},
	duckdb.BigInt:      {"Int64", table.Int64},
	duckdb.HugeInt:     {"Int64", table.Int64}, // what sum(BIGINT) is: see the page on the dialect
	duckdb.UTinyInt:    {"UInt8", table.UInt8},
	duckdb.USmallInt:   {"UInt16", table.UInt16},
	duckdb.UInteger:    {"UInt32", table.UInt32},
	duckdb.UBigInt:     {"UInt64", table.UInt64},
	duckdb.UHugeInt:    {"UInt64", table.UInt64},
	duckdb.Float:       {"Float32", table.Float32},
	duckdb.Double:      {"Float64", table.Float64},
	duckdb.Varchar:     {"String", table.String},
	duckdb.Enum:        {"String", table.InvalidType},
	duckdb.UUID:        {"String", table.InvalidType},
	duckdb.Blob:        {"Binary", table.Binary},
	duckdb.Date:        {"Date", table.Date},
	duckdb.Time:        {"TimeMicrosecond", table.InvalidType},
	duckdb.TimeNS:      {"TimeNanosecond", table.InvalidType},
	duckdb.TimestampS:  {"TimestampSecond", table.TimestampSecond},
	duckdb.TimestampMS: {"TimestampMillisecond", table.TimestampMillisecond},
	duckdb.Timestamp:   {"TimestampMicrosecond", table.TimestampMicrosecond},
	duckdb.TimestampTZ: {"TimestampMicrosecond", table.TimestampMicrosecond},
	duckdb.TimestampNS: {"TimestampNanosecond", table.TimestampNanosecond},
	duckdb.Interval:    {"IntervalMonthDayNano", table.InvalidType},
}

// typeName returns what results call a type.
func typeName(t *duckdb.Type) string {
	if t.Alias == "JSON" {
		return "Json"
	}
	switch t.ID {
	case duckdb.Decimal:
		return fmt.Sprintf("Decimal(%d, %d)", t.Width, t.Scale)
	case duckdb.List, duckdb.Array:
		return "List<" + typeName(t.Children[0]) + ">"
	case duckdb.Map:
		e := t.Children[0]
		return "Map<" + typeName(e.Children[0]) + ", " + typeName(e.Children[1]) + ">"
	case duckdb.Struct:
		fields := make([]string, len(t.Children))
		for i, c := range t.Children {
			fields[i] = t.Names[i] + " " + typeName(c)
		}
		return "Struct<" + strings.Join(fields, ", ") + ">"
	}
	return typeInfos[t.ID].name
}

// readable reports whether values of a type can be read from vectors.
func readable(t *duckdb.Type) bool {
	switch t.ID {
	case duckdb.Decimal:
		return true
	case duckdb.List, duckdb.Array, duckdb.Map, duckdb.Struct:
		for _, c := range t.Children {
			if !readable(c) {
				return false
			}
		}
		return true
	}
	_, ok := typeInfos[t.ID]
	return ok
}

// castForeign wraps a statement so that columns of types that are not readable
// (BIT, UNION, TIME WITH TIME ZONE and the like) become text; ok says that there
// are any.
func castForeign(sql string, columns []duckdb.Column) (wrapped string, ok bool) {
	items, names := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprintf("c%d", i)
		name := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		if readable(c.Type) {
			items[i] = names[i] + " AS " + name
			continue
		}
		items[i] = "CAST(" + names[i] + " AS VARCHAR) AS " + name
		ok = true
	}
	if !ok {
		return sql, false
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS t(" + strings.Join(names, ", ") + ")", true
}
