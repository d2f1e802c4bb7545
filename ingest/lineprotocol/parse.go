package lineprotocol

import (
	"bytes"

	"github.com/varvedb/varve/table"
)

// maxPrefix is the longest beginning of a line that is looked up as it is.
const maxPrefix = 4096

// series takes the measurement and the tags, and the spaces behind them.
func (d *Decoder) series() (*series, bool) {
	l := &d.lex
	start := l.pos
	prefix := prefixOf(l.buf[start:])
	if s := d.prefixes[string(prefix)]; s != nil && s.table != nil {
		// To start the table anew may show that the series is another one now.
		if s.table.pass == d.passes || d.start(s.table) && s.table != nil {
			l.pos += len(prefix)
			l.skipSpaces()
			return s, true
		}
	}
	s, final, ok := d.parseSeries()
	if ok && final && len(prefix) > 0 {
		d.remember(prefix, s)
	}
	return s, ok
}

// prefixOf returns what is before the first space that is not escaped, if that
// is short enough. In a line that the grammar takes, that is the measurement
// and the tags.
func prefixOf(line []byte) []byte {
	window := line[:min(len(line), maxPrefix)]
	for end := 0; ; end++ {
		i := bytes.IndexByte(window[end:], ' ')
		if i < 0 {
			return nil
		}
		if end += i; end == 0 || window[end-1] != '\\' {
			return window[:end]
		}
	}
}

// remember lets lines with this prefix find s. What has no room any more is
// found the long way.
func (d *Decoder) remember(prefix []byte, s *series) {
	if d.cached > d.opts.CacheBytes/2 {
		return
	}
	d.cached += len(prefix) + entryBytes
	d.prefixes[string(prefix)] = s
}

// entryBytes is about what an entry of prefixes or tableRows.series takes
// beside its bytes.
const entryBytes = 128

// parseSeries does as series does, by the grammar. The series is final if its
// key depends on no column that does not exist yet.
func (d *Decoder) parseSeries() (_ *series, final, ok bool) {
	l := &d.lex
	name, ok := l.measurement()
	if !ok {
		return nil, false, false
	}
	t, ok := d.table(name)
	if !ok {
		return nil, false, false
	}
	d.enter(t)
	final = t.info.ID != 0
	d.at.tagText = d.at.tagText[:0]
	for n := 0; ; n++ {
		key, text, ok := l.tag()
		if !ok {
			return nil, false, false
		}
		if key == nil {
			break
		}
		if n == d.opts.MaxColumns {
			return nil, false, l.fail("more than %d tags", d.opts.MaxColumns)
		}
		c, ok := d.tagColumn(t, key, text)
		if !ok {
			return nil, false, false
		}
		final = final && c.id != 0
		for len(d.at.tagText) <= c.keyPos {
			d.at.tagText = append(d.at.tagText, nil)
		}
		d.at.tagText[c.keyPos] = text
	}
	key, ok := d.seriesKey(t)
	if !ok {
		return nil, false, false
	}
	hash := table.HashKey(key)
	s := t.find(key, hash)
	if s == nil {
		s = t.add(key, hash)
		d.cached += len(key) + entryBytes
	}
	return s, final, true
}

// tagColumn returns the column of a tag, once a line.
func (d *Decoder) tagColumn(t *tableRows, key, text []byte) (*column, bool) {
	l := &d.lex
	if len(text) > d.opts.MaxValueBytes {
		return nil, l.fail("tag %.64q has %d bytes; at most %d are allowed", key, len(text), d.opts.MaxValueBytes)
	}
	c := t.columns[string(key)]
	if c == nil {
		var ok bool
		if c, ok = d.want(t, key, table.String, table.Tag); !ok {
			return nil, false
		}
	}
	switch {
	case c.role != table.Tag:
		return nil, l.fail("%.64q is a tag here, but column %q of table %q is a %s", key, c.name, t.name, c.role)
	case c.line == d.lines:
		return nil, l.fail("tag %.64q is there twice", key)
	}
	c.line = d.lines
	return c, true
}

// seriesKey makes the key of the tags that the line has.
func (d *Decoder) seriesKey(t *tableRows) ([]byte, bool) {
	key, nulls := d.at.key[:0], 0
	for i, text := range d.at.tagText {
		if text == nil {
			key = table.AppendKeyNull(key)
			nulls++
			continue
		}
		nulls = 0
		var problem string
		if key, problem = appendTag(key, t.tags[i].typ, text); problem != "" {
			return nil, d.lex.fail("tag %q is %s: %.64q %s", t.tags[i].name, t.tags[i].typ.SQL(), text, problem)
		}
	}
	d.at.key = key
	return table.TrimKey(key, nulls), true
}

// fields takes the fields and puts them into their columns.
func (d *Decoder) fields(t *tableRows) bool {
	l := &d.lex
	for k := 0; ; k++ {
		c, ok := d.field(t, k)
		if !ok {
			return false
		}
		if !c.active {
			c.active = true
			t.active = append(t.active, c)
		}
		d.at.used = append(d.at.used, c)
		if problem := c.put(d.at.row, &l.value); problem != "" {
			return l.fail("field %q is %s: the %s %s", c.name, c.typ.SQL(), l.value.kind, problem)
		}
		if !l.moreFields() {
			return true
		}
		if k+1 == d.opts.MaxColumns {
			return l.fail("more than %d fields", d.opts.MaxColumns)
		}
	}
}

// field takes field number k and returns its column; the value is in
// lex.value.
func (d *Decoder) field(t *tableRows, k int) (*column, bool) {
	l := &d.lex
	if k < len(t.guesses) {
		if g := &t.guesses[k]; bytes.HasPrefix(l.buf[l.pos:], g.raw) {
			l.pos += len(g.raw)
			return g.column, l.fieldValue(g.raw[:len(g.raw)-1]) && d.checkSize(g.column.name)
		}
	}
	start := l.pos
	key, ok := l.fieldKey()
	if !ok {
		return nil, false
	}
	raw := l.buf[start:l.pos]
	if !l.fieldValue(key) {
		return nil, false
	}
	c := t.columns[string(key)]
	if c == nil {
		if c, ok = d.want(t, key, l.value.kind.columnType(), table.Field); !ok {
			return nil, false
		}
	}
	if c.role != table.Field {
		return nil, l.fail("%.64q is a field here, but column %q of table %q is a %s", key, c.name, t.name, c.role)
	}
	t.guess(k, raw, c)
	return c, d.checkSize(c.name)
}

// checkSize refuses a string that is too long.
func (d *Decoder) checkSize(name string) bool {
	if v := &d.lex.value; v.kind == kindString && len(v.text) > d.opts.MaxValueBytes {
		return d.lex.fail("field %q has %d bytes; at most %d are allowed", name, len(v.text), d.opts.MaxValueBytes)
	}
	return true
}

// columnType returns the type of a column that is made for such a value.
func (k kind) columnType() table.Type {
	switch k {
	case kindInt:
		return table.Int64
	case kindUint:
		return table.UInt64
	case kindBool:
		return table.Boolean
	case kindString:
		return table.String
	default:
		return table.Float64
	}
}
