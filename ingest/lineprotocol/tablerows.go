package lineprotocol

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/varvedb/varve/table"
)

// A tableRows collects the rows of one table. It outlives a request, with the
// series that it has seen.
type tableRows struct {
	name    string
	info    *table.Info // ID 0: the table does not exist yet
	columns map[string]*column
	tags    []*column // in key order, those that do not exist yet at the end
	time    timescale

	// guesses[k] is what field number k was in the last line: most often it
	// is that again.
	guesses []guess

	series map[uint64]*series // by hash of the key

	pass    uint64 // the Decoder.passes in which rows was started
	size    int    // bytes that Decoder.buffers has for it
	rows    table.Rows
	active  []*column // the columns with values in rows
	missing []*column // columns that lines need and the table lacks
}

// A guess is a field key as a line spells it, and its column.
type guess struct {
	raw    []byte // escapes and all, with the =
	column *column
}

// A series is one that a Decoder has seen before.
type series struct {
	table *tableRows // nil: the table has changed so that key may be wrong
	key   []byte
	hash  uint64
	other *series // with the same hash
	pass  uint64  // the Decoder.passes in which index was given
	index uint32  // in rows.Keys
}

// newTableRows returns one that knows nothing but its name.
func newTableRows(name string) *tableRows {
	return &tableRows{name: name, series: make(map[uint64]*series)}
}

// start begins a pass over a request. It reports false if the series seen so
// far have other keys in the table as it is now.
func (t *tableRows) start(pass uint64, info *table.Info, req *Request) bool {
	same := t.info == nil || t.info == info || sameKeys(t.info, info)
	if t.info != info || len(t.missing) > 0 {
		t.declare(info)
	}
	for _, c := range t.active {
		c.reset()
	}
	t.active, t.missing = t.active[:0], t.missing[:0]
	t.time = newTimescale(req.Precision, info.Schema.TimeIndex(), req.Now)
	t.rows.Op = table.Put
	t.rows.Keys.Reset()
	t.rows.Series, t.rows.Times, t.rows.Fields = t.rows.Series[:0], t.rows.Times[:0], t.rows.Fields[:0]
	t.pass = pass
	return same
}

// declare takes over the columns of info.
func (t *tableRows) declare(info *table.Info) {
	t.info = info
	t.columns = make(map[string]*column, len(info.Schema.Columns))
	for i := range info.Schema.Columns {
		c := &info.Schema.Columns[i]
		t.columns[c.Name] = newColumn(c.Name, c.ID, c.Type, c.Role)
	}
	t.tags = t.tags[:0]
	for i, c := range info.Schema.Tags() {
		tag := t.columns[c.Name]
		tag.keyPos = i
		t.tags = append(t.tags, tag)
	}
	t.guesses, t.active = t.guesses[:0], t.active[:0]
}

func newColumn(name string, id table.ColumnID, typ table.Type, role table.Role) *column {
	c := &column{name: name, id: id, typ: typ, role: role}
	c.reset()
	return c
}

// sameKeys reports whether a series of old has the same key in now: it does
// while tags are only appended.
func sameKeys(old, now *table.Info) bool {
	was, is := old.Schema.Tags(), now.Schema.Tags()
	return old.ID == now.ID && len(was) <= len(is) && slices.EqualFunc(was, is[:len(was)], func(a, b *table.Column) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Type == b.Type
	})
}

// find returns the series with this key, if it was seen before.
func (t *tableRows) find(key []byte, hash uint64) *series {
	s := t.series[hash]
	for s != nil && !bytes.Equal(s.key, key) {
		s = s.other
	}
	return s
}

// add remembers a new series.
func (t *tableRows) add(key []byte, hash uint64) *series {
	s := &series{table: t, key: bytes.Clone(key), hash: hash, other: t.series[hash]}
	t.series[hash] = s
	return s
}

// forget drops all series, and makes those who still point to one look again.
func (t *tableRows) forget() {
	for _, s := range t.series {
		for ; s != nil; s = s.other {
			s.table = nil
		}
	}
	clear(t.series)
}

// commit makes a row of what the columns were given.
func (t *tableRows) commit(s *series, time int64) {
	if s.pass != t.pass {
		s.index, s.pass = t.rows.Keys.Append(s.key, s.hash), t.pass
	}
	t.rows.Series = append(t.rows.Series, s.index)
	t.rows.Times = append(t.rows.Times, time)
}

// guess notes that field number k was spelled so.
func (t *tableRows) guess(k int, raw []byte, c *column) {
	switch {
	case k < len(t.guesses):
		t.guesses[k] = guess{append(t.guesses[k].raw[:0], raw...), c}
	case k == len(t.guesses):
		t.guesses = append(t.guesses, guess{bytes.Clone(raw), c})
	}
}

// discard takes back columns that only a failed line needed.
func (t *tableRows) discard(fresh []*column) {
	for _, c := range fresh {
		delete(t.columns, c.name)
		if c.role == table.Tag {
			t.tags = t.tags[:min(len(t.tags), c.keyPos)]
		}
		t.guesses = t.guesses[:0] // one may be of it
	}
}

// finish returns the rows.
func (t *tableRows) finish() *table.Rows {
	n := t.rows.Len()
	for _, c := range t.active {
		if c.n > 0 && c.id != 0 {
			t.rows.Fields = append(t.rows.Fields, table.FieldVector{ID: c.id, Vector: c.vector(n)})
		}
	}
	return &t.rows
}

// bytes returns about how much memory the buffers of t keep.
func (t *tableRows) bytes() int {
	n := 1024 + cap(t.rows.Keys.Data) + 8*cap(t.rows.Keys.Hashes) + 4*cap(t.rows.Series) + 8*cap(t.rows.Times)
	for _, c := range t.columns {
		n += 300 + 8*cap(c.vec.Ints) + 8*cap(c.vec.Floats) + cap(c.vec.Bools) + 4*cap(c.vec.Offsets) + cap(c.vec.Data)
	}
	return n
}

// wanted returns what t lacks.
func (t *tableRows) wanted() Missing {
	m := Missing{Name: t.name, Info: t.info}
	if t.info.ID == 0 {
		m.Info = nil
	}
	for _, c := range t.missing {
		m.Columns = append(m.Columns, table.Column{Name: c.name, Type: c.typ, Role: c.role, Nullable: true})
	}
	if m.Info == nil { // tags, the time index, fields
		m.Columns = append(m.Columns, *t.info.Schema.TimeIndex())
		slices.SortStableFunc(m.Columns, func(a, b table.Column) int { return cmp.Compare(order(a.Role), order(b.Role)) })
	}
	return m
}

func order(r table.Role) int {
	switch r {
	case table.Tag:
		return 0
	case table.Timestamp:
		return 1
	default:
		return 2
	}
}
