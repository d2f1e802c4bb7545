package query

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query/duckdb"
)

// ArrowSchema returns the Arrow types of the columns. No type uses a
// dictionary, so that batches depend only on the schema.
func (r *Result) ArrowSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(r.columns))
	for i, c := range r.columns {
		if r.st == nil || r.st.result == nil { // an EXPLAIN
			fields[i] = arrow.Field{Name: c.Name, Type: arrow.BinaryTypes.String, Nullable: true}
			continue
		}
		fields[i] = arrowField(c.Name, r.st.result.Columns[i].Type)
	}
	return arrow.NewSchema(fields, nil)
}

// AppendArrow appends the first n rows to a builder of the Result's
// ArrowSchema, and returns about how many bytes they took.
func (c *Chunk) AppendArrow(b *array.RecordBuilder, n int) (bytes int, err error) {
	for col, field := range b.Fields() {
		if c.texts != nil {
			for _, row := range c.texts[:n] {
				field.(*array.StringBuilder).Append(row[col])
				bytes += len(row[col])
			}
			continue
		}
		a := arrowAppender{}
		a.append(field, &c.c.Vectors[col], 0, n)
		if a.err != nil {
			return bytes, fmt.Errorf("column %q in Arrow: %w", c.columns[col].Name, a.err)
		}
		bytes += a.bytes
	}
	return bytes, nil
}

// jsonField is what marks a text as JSON in Arrow.
var jsonField = arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{"arrow.json", ""})

func arrowField(name string, t *duckdb.Type) arrow.Field {
	f := arrow.Field{Name: name, Type: arrowType(t), Nullable: true}
	if t.Alias == "JSON" {
		f.Metadata = jsonField
	}
	return f
}

var arrowTypes = map[duckdb.TypeID]arrow.DataType{
	duckdb.SQLNull:     arrow.Null,
	duckdb.Boolean:     arrow.FixedWidthTypes.Boolean,
	duckdb.TinyInt:     arrow.PrimitiveTypes.Int8,
	duckdb.SmallInt:    arrow.PrimitiveTypes.Int16,
	duckdb.Integer:     arrow.PrimitiveTypes.Int32,
	duckdb.BigInt:      arrow.PrimitiveTypes.Int64,
	duckdb.HugeInt:     arrow.PrimitiveTypes.Int64, // as in typeInfos; what does not fit is an error
	duckdb.UTinyInt:    arrow.PrimitiveTypes.Uint8,
	duckdb.USmallInt:   arrow.PrimitiveTypes.Uint16,
	duckdb.UInteger:    arrow.PrimitiveTypes.Uint32,
	duckdb.UBigInt:     arrow.PrimitiveTypes.Uint64,
	duckdb.UHugeInt:    arrow.PrimitiveTypes.Uint64,
	duckdb.Float:       arrow.PrimitiveTypes.Float32,
	duckdb.Double:      arrow.PrimitiveTypes.Float64,
	duckdb.Varchar:     arrow.BinaryTypes.String,
	duckdb.Enum:        arrow.BinaryTypes.String,
	duckdb.UUID:        arrow.BinaryTypes.String,
	duckdb.Blob:        arrow.BinaryTypes.Binary,
	duckdb.Date:        arrow.FixedWidthTypes.Date32,
	duckdb.Time:        arrow.FixedWidthTypes.Time64us,
	duckdb.TimeNS:      arrow.FixedWidthTypes.Time64ns,
	duckdb.TimestampS:  &arrow.TimestampType{Unit: arrow.Second},
	duckdb.TimestampMS: &arrow.TimestampType{Unit: arrow.Millisecond},
	duckdb.Timestamp:   &arrow.TimestampType{Unit: arrow.Microsecond},
	duckdb.TimestampNS: &arrow.TimestampType{Unit: arrow.Nanosecond},
	duckdb.TimestampTZ: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	duckdb.Interval:    arrow.FixedWidthTypes.MonthDayNanoInterval,
}

func arrowType(t *duckdb.Type) arrow.DataType {
	switch t.ID {
	case duckdb.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Width), Scale: int32(t.Scale)}
	case duckdb.List:
		return arrow.ListOfField(arrowField("item", t.Children[0]))
	case duckdb.Array:
		return arrow.FixedSizeListOfField(int32(t.Size), arrowField("item", t.Children[0]))
	case duckdb.Map:
		entry := t.Children[0]
		return arrow.MapOf(arrowType(entry.Children[0]), arrowType(entry.Children[1]))
	case duckdb.Struct:
		fields := make([]arrow.Field, len(t.Children))
		for i, c := range t.Children {
			fields[i] = arrowField(t.Names[i], c)
		}
		return arrow.StructOf(fields...)
	}
	return arrowTypes[t.ID]
}

// An arrowAppender copies values from vectors to builders.
type arrowAppender struct {
	bytes int
	err   error
	valid []bool
}

// append appends n values of v, beginning with value from.
func (a *arrowAppender) append(b array.Builder, v *duckdb.Vector, from, n int) {
	if a.err != nil || n == 0 {
		return
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNulls(n)
	case *array.BooleanBuilder:
		b.AppendValues(fixed[bool](a, v, from, n))
	case *array.Int8Builder:
		b.AppendValues(fixed[int8](a, v, from, n))
	case *array.Int16Builder:
		b.AppendValues(fixed[int16](a, v, from, n))
	case *array.Int32Builder:
		b.AppendValues(fixed[int32](a, v, from, n))
	case *array.Uint8Builder:
		b.AppendValues(fixed[uint8](a, v, from, n))
	case *array.Uint16Builder:
		b.AppendValues(fixed[uint16](a, v, from, n))
	case *array.Uint32Builder:
		b.AppendValues(fixed[uint32](a, v, from, n))
	case *array.Float32Builder:
		b.AppendValues(fixed[float32](a, v, from, n))
	case *array.Float64Builder:
		b.AppendValues(fixed[float64](a, v, from, n))
	case *array.Date32Builder:
		b.AppendValues(fixed[arrow.Date32](a, v, from, n))
	case *array.Time64Builder:
		b.AppendValues(fixed[arrow.Time64](a, v, from, n))
	case *array.TimestampBuilder:
		b.AppendValues(fixed[arrow.Timestamp](a, v, from, n))
	case *array.Int64Builder:
		if v.Type.ID == duckdb.BigInt {
			b.AppendValues(fixed[int64](a, v, from, n))
			return
		}
		a.each(b, v, from, n, 8, func(i int) { b.Append(int64(a.narrow(v, i))) })
	case *array.Uint64Builder:
		if v.Type.ID == duckdb.UBigInt {
			b.AppendValues(fixed[uint64](a, v, from, n))
			return
		}
		a.each(b, v, from, n, 8, func(i int) { b.Append(a.narrow(v, i)) })
	case *array.Decimal128Builder:
		a.each(b, v, from, n, 16, func(i int) { b.Append(decimalValue(v, i)) })
	case *array.MonthDayNanoIntervalBuilder:
		a.each(b, v, from, n, 16, func(i int) { b.Append(a.interval(duckdb.At[duckdb.IntervalValue](v, i))) })
	case *array.StringBuilder:
		a.each(b, v, from, n, 4, func(i int) { a.text(b.BinaryBuilder, v, i) })
	case *array.BinaryBuilder:
		a.each(b, v, from, n, 4, func(i int) { a.text(b, v, i) })
	default:
		a.nested(b, v, from, n)
	}
}

// fixed returns values as they lie in v, and which of them are not null.
func fixed[T any](a *arrowAppender, v *duckdb.Vector, from, n int) (values []T, valid []bool) {
	values = duckdb.Values[T](v, from+n)[from:]
	a.bytes += n * 8
	if v.Validity(from+n) == nil {
		return values, nil
	}
	a.valid = a.valid[:0]
	for i := from; i < from+n; i++ {
		a.valid = append(a.valid, !v.IsNull(i))
	}
	return values, a.valid
}

// each calls add for values that are not null.
func (a *arrowAppender) each(b array.Builder, v *duckdb.Vector, from, n, size int, add func(i int)) {
	b.Reserve(n)
	a.bytes += n * size
	for i := from; i < from+n; i++ {
		if v.IsNull(i) {
			b.AppendNull()
			continue
		}
		add(i)
	}
}

// text appends a string, blob, or the text of an ENUM or UUID.
func (a *arrowAppender) text(b *array.BinaryBuilder, v *duckdb.Vector, i int) {
	switch v.Type.ID {
	case duckdb.Enum:
		b.AppendString(v.Type.Values[smallUint(v, v.Type.Physical, i)])
	case duckdb.UUID:
		quoted := appendUUID(nil, duckdb.At[duckdb.HugeValue](v, i))
		b.Append(quoted[1 : len(quoted)-1])
	default:
		text := v.Bytes(i)
		if a.bytes += len(text); a.bytes > math.MaxInt32 {
			a.fail(fault.Errorf(fault.Exhausted, "its values in one batch are over 2 GiB"))
			b.AppendNull()
			return
		}
		b.Append(text)
	}
}

// nested appends lists, arrays, maps and structs. The values of a struct or
// array are there even where it is null.
func (a *arrowAppender) nested(b array.Builder, v *duckdb.Vector, from, n int) {
	switch b := b.(type) {
	case *array.MapBuilder: // before ListLikeBuilder, which it is too
		a.each(b, v, from, n, 4, func(i int) {
			b.Append(true)
			e, entry := duckdb.At[duckdb.Entry](v, i), &v.Children[0]
			a.append(b.KeyBuilder(), &entry.Children[0], int(e.Offset), int(e.Length))
			a.append(b.ItemBuilder(), &entry.Children[1], int(e.Offset), int(e.Length))
		})
	case *array.ListBuilder:
		a.each(b, v, from, n, 4, func(i int) {
			b.Append(true)
			e := duckdb.At[duckdb.Entry](v, i)
			a.append(b.ValueBuilder(), &v.Children[0], int(e.Offset), int(e.Length))
		})
	case *array.FixedSizeListBuilder:
		for i := from; i < from+n; i++ {
			b.Append(!v.IsNull(i))
		}
		a.append(b.ValueBuilder(), &v.Children[0], from*v.Type.Size, n*v.Type.Size)
	case *array.StructBuilder:
		for i := from; i < from+n; i++ {
			b.Append(!v.IsNull(i))
		}
		for k := range v.Children {
			a.append(b.FieldBuilder(k), &v.Children[k], from, n)
		}
	default:
		panic(fmt.Sprintf("query: no way to append to a %T", b))
	}
}

func (a *arrowAppender) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// narrow returns a 128-bit integer in 64 bits, as its type is called.
func (a *arrowAppender) narrow(v *duckdb.Vector, i int) uint64 {
	h := duckdb.At[duckdb.HugeValue](v, i)
	fits := h.Upper == 0
	if v.Type.ID == duckdb.HugeInt {
		fits = h.Upper == int64(h.Lower)>>63
	}
	if !fits {
		a.fail(fault.Errorf(fault.Invalid, "the sum %s is beyond 64 bits; cast it to DECIMAL(38,0) or to DOUBLE",
			bigInt(h, v.Type.ID == duckdb.HugeInt)))
	}
	return h.Lower
}

func (a *arrowAppender) interval(v duckdb.IntervalValue) arrow.MonthDayNanoInterval {
	if v.Micros > math.MaxInt64/1000 || v.Micros < math.MinInt64/1000 {
		a.fail(fault.Errorf(fault.Invalid, "an interval of %d microseconds is beyond 64 bits of nanoseconds", v.Micros))
	}
	return arrow.MonthDayNanoInterval{Months: v.Months, Days: v.Days, Nanoseconds: v.Micros * 1000}
}

func decimalValue(v *duckdb.Vector, i int) decimal128.Num {
	switch v.Type.Physical {
	case duckdb.SmallInt:
		return decimal128.FromI64(int64(duckdb.At[int16](v, i)))
	case duckdb.Integer:
		return decimal128.FromI64(int64(duckdb.At[int32](v, i)))
	case duckdb.BigInt:
		return decimal128.FromI64(duckdb.At[int64](v, i))
	}
	h := duckdb.At[duckdb.HugeValue](v, i)
	return decimal128.New(h.Upper, h.Lower)
}
