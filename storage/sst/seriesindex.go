package sst

import (
	"bytes"
	"sort"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A SeriesIndex is what a file knows of its series: where the rows of each are,
// their times, and their tags. It is immutable.
//
// Series are numbered from 0 in key order. With it a scan finds its rows, and
// makes keys and tags, without reading a page of a tag.
type SeriesIndex struct {
	starts []uint32 // the first row of each series in the file, and one more: the rows
	times  []table.TimeRange
	mixed  table.Bitmap // series with repeats or tombstones; nil: none
	tags   []seriesTag  // in key order
}

// A seriesTag is one tag of all series, dictionary-coded.
type seriesTag struct {
	column int          // in the file
	values table.Vector // distinct, none null
	keys   *table.Dict  // the values as they are in series keys
	codes  []uint32     // by series: value + 1; 0 is null
	nulls  bool         // some code is 0
}

// Size returns the index's bytes in memory.
func (x *SeriesIndex) Size() int64 {
	n := 4*len(x.starts) + 16*len(x.times) + 8*len(x.mixed) + 256
	for i := range x.tags {
		t := &x.tags[i]
		n += 4*len(t.codes) + 4*len(t.keys.Offsets) + len(t.keys.Data) + 256
		n += 8*len(t.values.Ints) + 8*len(t.values.Floats) + len(t.values.Bools)
		if d := t.values.Dict; d != nil {
			n += 4*len(d.Offsets) + len(d.Data)
		}
	}
	return int64(n)
}

// Len returns the number of series.
func (x *SeriesIndex) Len() int { return len(x.times) }

// Times returns the times of a series' first and last row.
func (x *SeriesIndex) Times(series uint32) table.TimeRange { return x.times[series] }

// Mixed reports whether a series has repeats or tombstones.
func (x *SeriesIndex) Mixed(series uint32) bool {
	return x.mixed != nil && x.mixed.Get(int(series))
}

// Rows returns the rows [first, end) of the file that are of a series.
func (x *SeriesIndex) Rows(series uint32) (first, end uint32) {
	return x.starts[series], x.starts[series+1]
}

// AppendKey appends the key of a series.
func (x *SeriesIndex) AppendKey(key []byte, series uint32) []byte {
	nulls := 0
	for i := range x.tags {
		t := &x.tags[i]
		c := t.codes[series]
		if c == 0 {
			key = table.AppendKeyNull(key)
			nulls++
			continue
		}
		nulls = 0
		key = append(key, t.keys.Value(c-1)...)
	}
	return table.TrimKey(key, nulls)
}

// Search returns the first series whose key is at least key.
func (x *SeriesIndex) Search(key []byte) uint32 {
	var buf []byte
	return uint32(sort.Search(x.Len(), func(i int) bool {
		buf = x.AppendKey(buf[:0], uint32(i))
		return bytes.Compare(buf, key) >= 0
	}))
}

// at returns the series of a row of the file.
func (x *SeriesIndex) at(row uint32) uint32 {
	return uint32(sort.Search(x.Len(), func(i int) bool { return x.starts[i+1] > row }))
}

// keyRange returns the series [lo, hi) with keys that req wants.
func (x *SeriesIndex) keyRange(req *run.Request) (lo, hi uint32) {
	hi = uint32(x.Len())
	if req.FirstKey != nil {
		lo = x.Search(req.FirstKey)
	}
	if req.EndKey != nil {
		hi = max(lo, x.Search(req.EndKey))
	}
	return lo, hi
}

// Match returns the series that pass the key range and the predicates on tags
// of a request, nil if all do. Times and the Selection are not looked at.
func (r *Reader) Match(x *SeriesIndex, req *run.Request) table.Bitmap {
	var rules []rule
	for _, p := range req.Predicates {
		at, ok := r.footer.columns[p.Column]
		if !ok {
			if c := req.Schema.Column(p.Column); c != nil && c.Role == table.Tag && !matchNull(&p) {
				return table.NewBitmap(x.Len()) // null in all rows of the file
			}
			continue
		}
		if c := &r.footer.info.Columns[at]; c.Role == table.Tag {
			rules = append(rules, rule{column: at, typ: c.Type, test: p})
		}
	}
	if len(rules) == 0 && req.FirstKey == nil && req.EndKey == nil {
		return nil
	}
	lo, hi := x.keyRange(req)
	out := table.NewBitmap(x.Len())
	for s := lo; s < hi; s++ {
		out.Set(int(s))
	}
	for i := range rules {
		for t := range x.tags {
			if x.tags[t].column == rules[i].column {
				x.tags[t].restrict(out, &rules[i], lo, hi)
			}
		}
	}
	return out
}

// restrict clears the series in [lo, hi) that fail a rule.
func (t *seriesTag) restrict(out table.Bitmap, r *rule, lo, hi uint32) {
	passes := make([]bool, 1+t.values.Len)
	passes[0] = matchNull(&r.test)
	if !t.findEqual(passes, r) {
		for i := range t.values.Len {
			passes[1+i] = r.match(t.value(i))
		}
	}
	for s := lo; s < hi; s++ {
		if !passes[t.codes[s]] {
			out.Clear(int(s))
		}
	}
}

// findEqual marks the strings that pass a rule for one of several values, and
// reports whether the rule is such.
func (t *seriesTag) findEqual(passes []bool, r *rule) bool {
	if t.values.Dict == nil || r.test.Op != table.Equal && r.test.Op != table.In {
		return false
	}
	for n := range r.test.Values {
		want := r.test.Values[n].Bytes
		for i := range t.values.Len {
			if string(t.values.Dict.Value(uint32(i))) == want {
				passes[1+i] = true
				break
			}
		}
		if r.test.Op == table.Equal {
			break
		}
	}
	return true
}

// value returns a value of the dictionary.
func (t *seriesTag) value(i int) *table.Value {
	v := &table.Value{Type: t.values.Type}
	switch v.Type.Layout() {
	case table.Ints:
		v.Int = t.values.Ints[i]
	case table.Floats:
		v.Float = t.values.Floats[i]
	case table.Bools:
		if t.values.Bools[i] {
			v.Int = 1
		}
	default:
		v.Bytes = string(t.values.Dict.Value(uint32(i)))
	}
	return v
}

// fill returns the tag of the rows [from, to) of the file, in buf's memory.
func (x *SeriesIndex) fill(buf *table.Vector, tag int, from, to uint32) table.Vector {
	t := &x.tags[tag]
	n := int(to - from)
	v := table.Vector{Type: t.values.Type, Len: n, Dict: t.values.Dict}
	if t.nulls {
		words := (*[]uint64)(&buf.Valid)
		v.Valid = grow(words, (n+63)/64)
		clear(v.Valid)
	}
	switch v.Type.Layout() {
	case table.Ints:
		buf.Ints = fillRuns(x, t, &v, buf.Ints, t.values.Ints, from, to)
		v.Ints = buf.Ints
	case table.Floats:
		buf.Floats = fillRuns(x, t, &v, buf.Floats, t.values.Floats, from, to)
		v.Floats = buf.Floats
	case table.Bools:
		buf.Bools = fillRuns(x, t, &v, buf.Bools, t.values.Bools, from, to)
		v.Bools = buf.Bools
	default:
		buf.Codes = fillRuns(x, t, &v, buf.Codes, nil, from, to)
		v.Codes = buf.Codes
	}
	return v
}

// fillRuns writes the value of each series, or its code if there are no
// values, to the rows of its run.
func fillRuns[T any](x *SeriesIndex, t *seriesTag, v *table.Vector, dst, values []T, from, to uint32) []T {
	dst = grow(&dst, int(to-from))
	for s, row := x.at(from), from; row < to; s++ {
		end := min(x.starts[s+1], to)
		part := dst[row-from : end-from]
		c := t.codes[s]
		var value T
		switch code := any(&value).(type) {
		case *uint32:
			*code = max(c, 1) - 1
		default:
			if c > 0 {
				value = values[c-1]
			}
		}
		for i := range part {
			part[i] = value
		}
		if c > 0 && v.Valid != nil {
			for i := row - from; i < end-from; i++ {
				v.Valid.Set(int(i))
			}
		}
		row = end
	}
	return dst
}
