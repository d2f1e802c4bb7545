package querytest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/table"
)

// Parse makes a table from a text: a line with a column per word, written
// name:type with the role behind it for tags and the time index, and a line per
// row with the values in that order. null and ” are the null and the empty
// string.
//
//	host:String:tag ts:TimestampNanosecond:time usage:Float64
//	a 1000 0.5
//
// Strings with few distinct values are coded by a dictionary.
func Parse(database, name, text string) *Table {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s := &table.Schema{}
	t := &Table{Info: &table.Info{Database: database, Name: name, Schema: s, Regions: 1}}
	for i, word := range strings.Fields(lines[0]) {
		parts := strings.Split(word, ":")
		c := table.Column{ID: table.ColumnID(i + 1), Name: parts[0], Type: typeNamed(parts[1]), Role: table.Field, Nullable: true}
		if len(parts) > 2 {
			switch parts[2] {
			case "tag":
				c.Role = table.Tag
				s.Key = append(s.Key, c.ID)
			case "time":
				c.Role, c.Nullable = table.Timestamp, false
			}
		}
		s.Columns = append(s.Columns, c)
		t.Rows.Columns = append(t.Rows.Columns, table.Vector{Type: c.Type, Len: len(lines) - 1})
	}
	t.Rows.Len = len(lines) - 1
	for i := range t.Rows.Columns {
		v := &t.Rows.Columns[i]
		v.Valid = table.NewBitmap(v.Len)
		if v.Type.Layout() == table.Bytes {
			v.Dict = &table.Dict{Offsets: []uint32{0}}
		}
		for row, line := range lines[1:] {
			words := strings.Fields(line)
			if len(words) != len(s.Columns) {
				panic(fmt.Sprintf("querytest: table %s: row %d has %d values for %d columns", name, row, len(words), len(s.Columns)))
			}
			set(v, row, words[i])
		}
	}
	return t
}

func typeNamed(name string) table.Type {
	for t := table.Boolean; t.Known(); t++ {
		if t.String() == name {
			return t
		}
	}
	panic("querytest: no type " + name)
}

// set appends a value to a vector.
func set(v *table.Vector, row int, word string) {
	null := word == "null"
	if !null {
		v.Valid.Set(row)
	}
	switch v.Type.Layout() {
	case table.Bools:
		v.Bools = append(v.Bools, word == "true")
	case table.Floats:
		f, err := strconv.ParseFloat(word, 64)
		must(null, err)
		v.Floats = append(v.Floats, f)
	case table.Bytes:
		if word == "''" || null {
			word = ""
		}
		v.Codes = append(v.Codes, code(v.Dict, word))
	default:
		i, err := strconv.ParseInt(word, 10, 64)
		if v.Type == table.UInt64 && !null {
			var u uint64
			u, err = strconv.ParseUint(word, 10, 64)
			i = int64(u)
		}
		must(null, err)
		v.Ints = append(v.Ints, i)
	}
}

func must(null bool, err error) {
	if err != nil && !null {
		panic("querytest: " + err.Error())
	}
}

func code(d *table.Dict, s string) uint32 {
	for i := range d.Len() {
		if string(d.Value(uint32(i))) == s {
			return uint32(i)
		}
	}
	d.Data = append(d.Data, s...)
	d.Offsets = append(d.Offsets, uint32(len(d.Data)))
	return uint32(d.Len() - 1)
}
