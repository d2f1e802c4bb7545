package lineprotocol

import (
	"strconv"
	"strings"

	"github.com/varvedb/varve/table"
)

var (
	escapeName = strings.NewReplacer(",", `\,`, " ", `\ `)
	escapeKey  = strings.NewReplacer(",", `\,`, " ", `\ `, "=", `\=`)
	escapeText = strings.NewReplacer(`"`, `\"`, `\`, `\\`)
)

// encode writes rows as lines.
func encode(r *Result) []byte {
	var b []byte
	for _, tr := range r.Tables {
		for row := range tr.Rows.Len() {
			b = append(b, escapeName.Replace(tr.Info.Name)...)
			b = encodeTags(b, tr, row)
			b = encodeFields(b, tr, row)
			b = append(b, ' ')
			b = strconv.AppendInt(b, tr.Rows.Times[row], 10)
			b = append(b, '\n')
		}
	}
	return b
}

func encodeTags(b []byte, tr Table, row int) []byte {
	var key table.KeyReader
	key.Reset(tr.Rows.Keys.Key(int(tr.Rows.Series[row])))
	for _, c := range tr.Info.Schema.Tags() {
		if v, ok := key.Bytes(); ok {
			b = append(append(b, ','), escapeKey.Replace(c.Name)...)
			b = append(append(b, '='), escapeKey.Replace(string(v))...)
		}
	}
	return b
}

func encodeFields(b []byte, tr Table, row int) []byte {
	separator := byte(' ')
	for i := range tr.Rows.Fields {
		f := &tr.Rows.Fields[i]
		if f.IsNull(row) {
			continue
		}
		b = append(append(b, separator), escapeKey.Replace(tr.Info.Schema.Column(f.ID).Name)...)
		b = append(b, '=')
		separator = ','
		switch f.Type {
		case table.Float64:
			b = strconv.AppendFloat(b, f.Floats[row], 'g', -1, 64)
		case table.Int64:
			b = append(strconv.AppendInt(b, f.Ints[row], 10), 'i')
		case table.UInt64:
			b = append(strconv.AppendUint(b, uint64(f.Ints[row]), 10), 'u')
		case table.Boolean:
			b = strconv.AppendBool(b, f.Bools[row])
		default:
			b = append(append(append(b, '"'), escapeText.Replace(string(f.Vector.Bytes(row)))...), '"')
		}
	}
	return b
}
