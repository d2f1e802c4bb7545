package storagetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varvedb/varve/table"
)

// Table makes a table whose columns are given as "name TYPE role", such as
// "host String tag", "ts TimestampMillisecond time" or "cpu Float64". Their
// ids are 1, 2, 3 …
func Table(id table.ID, name string, mode table.MergeMode, columns ...string) *table.Info {
	s := &table.Schema{Version: 1, NextID: table.ColumnID(len(columns) + 1)}
	for i, text := range columns {
		words := strings.Fields(text)
		c := table.Column{ID: table.ColumnID(i + 1), Name: words[0], Type: parseType(words[1]), Role: table.Field, Nullable: true}
		switch {
		case len(words) == 2:
		case words[2] == "tag":
			c.Role = table.Tag
			s.Key = append(s.Key, c.ID)
		case words[2] == "time":
			c.Role, c.Nullable = table.Timestamp, false
		}
		s.Columns = append(s.Columns, c)
	}
	return &table.Info{ID: id, Database: "public", Name: name, Schema: s, Merge: mode, Regions: 1}
}

func parseType(name string) table.Type {
	for t := table.Type(1); t.Known(); t++ {
		if t.String() == name {
			return t
		}
	}
	panic("storagetest: no type " + name)
}

// Rows makes rows of values in the order of the table's columns: nil, bool,
// int, float64 or string.
func Rows(info *table.Info, op table.Op, values ...[]any) *table.Rows {
	rows := &table.Rows{Op: op}
	known := make(map[string]uint32)
	for _, row := range values {
		key := Key(info, row)
		series, ok := known[string(key)]
		if !ok {
			series = rows.Keys.Append(key, table.HashKey(key))
			known[string(key)] = series
		}
		rows.Series = append(rows.Series, series)
	}
	for i, c := range info.Schema.Columns {
		switch c.Role {
		case table.Timestamp:
			for _, row := range values {
				rows.Times = append(rows.Times, int64(row[i].(int)))
			}
		case table.Field:
			v := table.Vector{Type: c.Type, Len: len(values)}
			for r, row := range values {
				appendValue(&v, r, row[i])
			}
			if v.Valid == nil || slices.Max(v.Valid) > 0 || op == table.Put {
				rows.Fields = append(rows.Fields, table.FieldVector{ID: c.ID, Vector: v})
			}
		}
	}
	return rows
}

// Key returns the series key of a row of values.
func Key(info *table.Info, row []any) (key []byte) {
	nulls := 0
	for i, c := range info.Schema.Columns {
		if c.Role != table.Tag {
			continue
		}
		nulls++
		switch v := row[i].(type) {
		case nil:
			key = table.AppendKeyNull(key)
			continue
		case string:
			key = table.AppendKeyBytes(key, []byte(v))
		case int:
			key = table.AppendKeyInt(key, c.Type, int64(v))
		case bool:
			key = table.AppendKeyInt(key, c.Type, b2i(v))
		case float64:
			key = table.AppendKeyFloat(key, v)
		}
		nulls = 0
	}
	return table.TrimKey(key, nulls)
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func appendValue(v *table.Vector, row int, value any) {
	if value == nil && v.Valid == nil {
		v.Valid = table.NewBitmap(v.Len)
		for i := range row {
			v.Valid.Set(i)
		}
	}
	if value != nil && v.Valid != nil {
		v.Valid.Set(row)
	}
	switch v.Type.Layout() {
	case table.Ints:
		i, _ := value.(int)
		v.Ints = append(v.Ints, int64(i))
	case table.Floats:
		f, _ := value.(float64)
		v.Floats = append(v.Floats, f)
	case table.Bools:
		b, _ := value.(bool)
		v.Bools = append(v.Bools, b)
	default:
		if row == 0 {
			v.Offsets = []uint32{0}
		}
		s, _ := value.(string)
		v.Data = append(v.Data, s...)
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
	}
}

// Read scans all columns, or those of spec, and returns each row as text, such
// as "a 10 1.5 null", sorted.
func Read(t testing.TB, r table.Reader, info *table.Info, spec table.ScanSpec) []string {
	t.Helper()
	ctx := context.Background()
	snap, err := r.Snapshot(ctx, info)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	defer snap.Close()
	return Scan(t, snap, spec)
}

// All is the spec of a scan of everything.
func All(info *table.Info) table.ScanSpec {
	spec := table.ScanSpec{Times: table.AllTime}
	for _, c := range info.Schema.Columns {
		spec.Columns = append(spec.Columns, c.ID)
	}
	return spec
}

// Scan is Read of a snapshot.
func Scan(t testing.TB, snap table.Snapshot, spec table.ScanSpec) (lines []string) {
	t.Helper()
	ctx := context.Background()
	parts, err := snap.Scan(ctx, spec)
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	for _, p := range parts {
		for {
			b, err := p.Next(ctx)
			if err != nil {
				t.Fatalf("next batch: %v", err)
			}
			if b == nil {
				break
			}
			for i := range b.Len {
				lines = append(lines, Line(b, i))
			}
		}
		p.Close()
	}
	slices.Sort(lines)
	return lines
}

// Line returns row i of b as text.
func Line(b *table.Batch, i int) string {
	words := make([]string, len(b.Columns))
	for c := range b.Columns {
		words[c] = Format(&b.Columns[c], i)
	}
	return strings.Join(words, " ")
}

// Format returns one value as text.
func Format(v *table.Vector, i int) string {
	switch {
	case v.IsNull(i):
		return "null"
	case v.Type.Layout() == table.Ints:
		return fmt.Sprint(v.Ints[i])
	case v.Type.Layout() == table.Floats:
		return fmt.Sprint(v.Floats[i])
	case v.Type.Layout() == table.Bools:
		return fmt.Sprint(v.Bools[i])
	default:
		return string(v.Bytes(i))
	}
}
