package sql

import (
	"strconv"
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// nativeTypes are the types by the names that results carry. Only this exact
// spelling makes Int8 the one-byte integer: INT8 is the eight-byte one, as in
// PostgreSQL and DuckDB.
var nativeTypes = map[string]table.Type{
	"Int8": table.Int8, "UInt8": table.UInt8,
}

// typeNames are the types by their names in upper case.
var typeNames = map[string]table.Type{
	"BOOL": table.Boolean, "BOOLEAN": table.Boolean,
	"TINYINT":  table.Int8,
	"SMALLINT": table.Int16, "INT2": table.Int16, "INT16": table.Int16,
	"INT": table.Int32, "INTEGER": table.Int32, "INT4": table.Int32, "INT32": table.Int32,
	"BIGINT": table.Int64, "INT8": table.Int64, "INT64": table.Int64,
	"UINT8": table.UInt8, "UTINYINT": table.UInt8,
	"UINT16": table.UInt16, "USMALLINT": table.UInt16,
	"UINT32": table.UInt32, "UINTEGER": table.UInt32,
	"UINT64": table.UInt64, "UBIGINT": table.UInt64,
	"FLOAT": table.Float32, "REAL": table.Float32, "FLOAT4": table.Float32, "FLOAT32": table.Float32,
	"DOUBLE": table.Float64, "FLOAT8": table.Float64, "FLOAT64": table.Float64,
	"STRING": table.String, "TEXT": table.String, "VARCHAR": table.String, "CHAR": table.String,
	"TINYTEXT": table.String, "MEDIUMTEXT": table.String, "LONGTEXT": table.String,
	"VARBINARY": table.Binary, "BINARY": table.Binary, "BYTEA": table.Binary, "BLOB": table.Binary,
	"DATE":      table.Date,
	"TIMESTAMP": table.TimestampMillisecond, "DATETIME": table.TimestampMicrosecond,
	"TIMESTAMP_S": table.TimestampSecond, "TIMESTAMPSECOND": table.TimestampSecond,
	"TIMESTAMP_MS": table.TimestampMillisecond, "TIMESTAMPMILLISECOND": table.TimestampMillisecond,
	"TIMESTAMP_US": table.TimestampMicrosecond, "TIMESTAMPMICROSECOND": table.TimestampMicrosecond,
	"TIMESTAMP_NS": table.TimestampNanosecond, "TIMESTAMPNANOSECOND": table.TimestampNanosecond,
}

// supportedTypes is what the error for any other type lists.
const supportedTypes = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT (each also UNSIGNED), FLOAT, DOUBLE, STRING, VARBINARY, " +
	"DATE, TIMESTAMP(0), TIMESTAMP(3), TIMESTAMP(6), TIMESTAMP(9)"

var unsignedTypes = map[table.Type]table.Type{
	table.Int8: table.UInt8, table.Int16: table.UInt16, table.Int32: table.UInt32, table.Int64: table.UInt64,
}

// columnType reads the type of a column. Lengths, as in VARCHAR(20) or
// INT(11), are read and mean nothing.
func (p *parser) columnType(column string) table.Type {
	written := p.text()
	n := p.name("a type")
	typ, ok := nativeTypes[n.text]
	if !ok {
		typ, ok = typeNames[strings.ToUpper(n.text)]
	}
	if p.err != nil {
		return table.InvalidType
	}
	if !ok {
		p.unsupported("column %q: the type %s is not supported; there are %s", column, written, supportedTypes)
		return table.InvalidType
	}
	if typ == table.Float64 && strings.EqualFold(n.text, "DOUBLE") {
		p.accept("PRECISION")
	}
	if p.acceptOp('(') {
		typ = p.typeLength(column, typ)
	}
	if unsigned, ok := unsignedTypes[typ]; ok && p.accept("UNSIGNED") {
		typ = unsigned
	}
	return typ
}

// typeLength reads the number in TIMESTAMP(3) and its closing parenthesis.
func (p *parser) typeLength(column string, typ table.Type) table.Type {
	n, err := strconv.Atoi(p.text())
	if p.tok.kind != numberToken || err != nil {
		p.fail("expected a length")
		return typ
	}
	p.advance()
	p.expectOp(')')
	if !typ.IsTimestamp() {
		return typ
	}
	switch n {
	case 0:
		return table.TimestampSecond
	case 3:
		return table.TimestampMillisecond
	case 6:
		return table.TimestampMicrosecond
	case 9:
		return table.TimestampNanosecond
	}
	p.stop(fault.Errorf(fault.Unsupported, "column %q: TIMESTAMP(%d) is not supported; there are %s", column, n, supportedTypes))
	return typ
}
