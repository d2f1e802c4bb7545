package duckdb

// #include "glue.h"
import "C"

import "unsafe"

// A TypeID is the kind of a Type.
type TypeID int32

// The kinds that need telling apart.
const (
	Boolean     TypeID = C.DUCKDB_TYPE_BOOLEAN
	TinyInt     TypeID = C.DUCKDB_TYPE_TINYINT
	SmallInt    TypeID = C.DUCKDB_TYPE_SMALLINT
	Integer     TypeID = C.DUCKDB_TYPE_INTEGER
	BigInt      TypeID = C.DUCKDB_TYPE_BIGINT
	UTinyInt    TypeID = C.DUCKDB_TYPE_UTINYINT
	USmallInt   TypeID = C.DUCKDB_TYPE_USMALLINT
	UInteger    TypeID = C.DUCKDB_TYPE_UINTEGER
	UBigInt     TypeID = C.DUCKDB_TYPE_UBIGINT
	Float       TypeID = C.DUCKDB_TYPE_FLOAT
	Double      TypeID = C.DUCKDB_TYPE_DOUBLE
	Timestamp   TypeID = C.DUCKDB_TYPE_TIMESTAMP
	Date        TypeID = C.DUCKDB_TYPE_DATE
	Time        TypeID = C.DUCKDB_TYPE_TIME
	Interval    TypeID = C.DUCKDB_TYPE_INTERVAL
	HugeInt     TypeID = C.DUCKDB_TYPE_HUGEINT
	UHugeInt    TypeID = C.DUCKDB_TYPE_UHUGEINT
	Varchar     TypeID = C.DUCKDB_TYPE_VARCHAR
	Blob        TypeID = C.DUCKDB_TYPE_BLOB
	Decimal     TypeID = C.DUCKDB_TYPE_DECIMAL
	TimestampS  TypeID = C.DUCKDB_TYPE_TIMESTAMP_S
	TimestampMS TypeID = C.DUCKDB_TYPE_TIMESTAMP_MS
	TimestampNS TypeID = C.DUCKDB_TYPE_TIMESTAMP_NS
	Enum        TypeID = C.DUCKDB_TYPE_ENUM
	List        TypeID = C.DUCKDB_TYPE_LIST
	Struct      TypeID = C.DUCKDB_TYPE_STRUCT
	Map         TypeID = C.DUCKDB_TYPE_MAP
	Array       TypeID = C.DUCKDB_TYPE_ARRAY
	UUID        TypeID = C.DUCKDB_TYPE_UUID
	TimestampTZ TypeID = C.DUCKDB_TYPE_TIMESTAMP_TZ
	SQLNull     TypeID = C.DUCKDB_TYPE_SQLNULL
	TimeNS      TypeID = C.DUCKDB_TYPE_TIME_NS
)

// A Type is the type of a column or of what is nested in one.
type Type struct {
	ID           TypeID
	Alias        string // such as JSON
	Width, Scale int    // of a Decimal
	Physical     TypeID // how a Decimal or Enum is stored
	Values       []string
	Size         int // of an Array
	Names        []string
	Children     []*Type // of a List, Array, Struct; of a Map its one struct of key and value
}

func readType(t C.duckdb_logical_type) *Type {
	r := &Type{ID: TypeID(C.duckdb_get_type_id(t))}
	if alias := C.duckdb_logical_type_get_alias(t); alias != nil {
		r.Alias = takeString(alias)
	}
	switch r.ID {
	case Decimal:
		r.Width, r.Scale = int(C.duckdb_decimal_width(t)), int(C.duckdb_decimal_scale(t))
		r.Physical = TypeID(C.duckdb_decimal_internal_type(t))
	case Enum:
		r.Physical = TypeID(C.duckdb_enum_internal_type(t))
		for i := range C.duckdb_enum_dictionary_size(t) {
			r.Values = append(r.Values, takeString(C.duckdb_enum_dictionary_value(t, C.idx_t(i))))
		}
	case List:
		r.add("", C.duckdb_list_type_child_type(t))
	case Array:
		r.Size = int(C.duckdb_array_type_array_size(t))
		r.add("", C.duckdb_array_type_child_type(t))
	case Map:
		entry := &Type{ID: Struct}
		entry.add("key", C.duckdb_map_type_key_type(t))
		entry.add("value", C.duckdb_map_type_value_type(t))
		r.Children = []*Type{entry}
	case Struct:
		for i := range C.duckdb_struct_type_child_count(t) {
			r.add(takeString(C.duckdb_struct_type_child_name(t, i)), C.duckdb_struct_type_child_type(t, i))
		}
	}
	return r
}

// add appends a child and frees its C form.
func (t *Type) add(name string, child C.duckdb_logical_type) {
	t.Names = append(t.Names, name)
	t.Children = append(t.Children, readType(child))
	C.duckdb_destroy_logical_type(&child)
}

func takeString(s *C.char) string {
	defer C.duckdb_free(unsafe.Pointer(s))
	return C.GoString(s)
}
