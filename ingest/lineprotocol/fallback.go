package lineprotocol

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/varvedb/varve/table"
)

// A fallback is what a row has in a field of which its line says nothing,
// where that is not simply null.
type fallback struct {
	column  *column
	value   value
	now     bool
	problem string // not empty: such a line fails
}

// fallbacks returns those of a table.
//
// Under last_non_null a line that leaves a field out leaves it as it is, so
// that the default of a field that may be null must not be written there.
func (t *tableRows) fallbacks(info *table.Info) []fallback {
	var list []fallback
	for i := range info.Schema.Columns {
		c := &info.Schema.Columns[i]
		if c.Role != table.Field || c.Nullable && (c.Default == "" || info.Merge == table.LastNonNull) {
			continue
		}
		list = append(list, newFallback(c, t.columns[c.Name]))
	}
	return list
}

func newFallback(c *table.Column, to *column) fallback {
	f := fallback{column: to}
	switch {
	case c.Default == "":
		f.problem = "is NOT NULL and has no default: the line needs a value"
	case strings.EqualFold(c.Default, "now()") && (c.Type.IsTimestamp() || c.Type == table.Date):
		f.now = true
	default:
		var ok bool
		if f.value, ok = constant(c.Default, c.Type); ok {
			ok = newColumn(c.Name, c.ID, c.Type, c.Role).put(0, &f.value) == ""
		}
		if !ok {
			f.problem = "has a default that cannot be filled in here: the line needs a value"
		}
	}
	return f
}

// constant reads the text of a default as the catalog keeps it: a number, a
// boolean, a quoted text or a quoted time.
func constant(text string, t table.Type) (value, bool) {
	quoted, isQuoted := strings.CutPrefix(text, "'")
	quoted, closed := strings.CutSuffix(quoted, "'")
	quoted = strings.ReplaceAll(quoted, "''", "'")
	isQuoted = isQuoted && closed
	switch {
	case t == table.Boolean:
		return value{kind: kindBool, bool: strings.EqualFold(text, "true")},
			strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	case t.Layout() == table.Bytes && isQuoted:
		return value{kind: kindString, text: []byte(quoted)}, true
	case t == table.Binary:
		digits, ok := strings.CutPrefix(text, "x'")
		b, err := hex.DecodeString(strings.TrimSuffix(digits, "'"))
		return value{kind: kindString, text: b}, ok && err == nil
	case isQuoted:
		return constantTime(quoted, t)
	}
	// A number as SQL writes it: whole ones are integers here too.
	if cut := strings.TrimPrefix(text, "-"); cut != "" && strings.Trim(cut, "0123456789") == "" {
		suffix := "i"
		if t == table.UInt64 {
			suffix = "u"
		}
		if v, ok := number(text + suffix); ok {
			return v, ok
		}
	}
	return number(text)
}

func number(text string) (value, bool) {
	if text == "" || strings.IndexByte("-.0123456789", text[0]) < 0 {
		return value{}, false
	}
	l := lexer{buf: []byte(text), quiet: true}
	ok := l.number(nil) && l.pos == len(text)
	return l.value, ok
}

func constantTime(text string, t table.Type) (value, bool) {
	if t != table.Date && !t.IsTimestamp() {
		return value{}, false
	}
	at, ok := table.ParseTime(text, time.UTC)
	n, _, beyond := t.FromTime(at)
	return value{kind: kindInt, int: n}, ok && beyond == 0
}

// fill puts the fallbacks of the fields that the line does not have.
func (d *Decoder) fill(t *tableRows) bool {
	for i := range t.fallback {
		f := &t.fallback[i]
		c := f.column
		switch {
		case c.n > d.at.row:
			continue
		case f.problem != "":
			return d.lex.fail("field %q %s", c.name, f.problem)
		case f.now:
			n, _, _ := c.typ.FromTime(time.Unix(0, d.req.Now))
			f.value = value{kind: kindInt, int: n}
		}
		if !d.use(t, c) {
			return false
		}
		if problem := c.put(d.at.row, &f.value); problem != "" {
			return d.lex.fail("field %q: its default %s", c.name, problem)
		}
	}
	return true
}
