package sst

import (
	"slices"

	"github.com/parquet-go/parquet-go/bloom"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A rule is a condition on one column of the file that the rows of a scan must
// meet: a predicate, or the time range.
type rule struct {
	column int // in the file
	typ    table.Type
	test   table.Predicate
	bloom  bool // worth asking a bloom filter

	// The entries of a dictionary that pass, for the Dict met last.
	dict   *table.Dict
	passes []bool
}

// rules turns a request into rules. never reports that no row can pass,
// because a column that the file lacks, all nulls, fails.
func (r *Reader) rules(req *run.Request) (rules []rule, never bool) {
	for _, p := range req.Predicates {
		at, ok := r.footer.columns[p.Column]
		if !ok {
			if c := req.Schema.Column(p.Column); c == nil || c.Role != table.Tag && !req.Alone {
				continue
			}
			if !matchNull(&p) {
				return nil, true
			}
			continue
		}
		c := &r.footer.info.Columns[at]
		if c.Role == table.Field && !req.Alone {
			continue
		}
		rules = append(rules, rule{column: at, typ: c.Type, test: p, bloom: at > 0 && c.Role == table.Tag && bloomable(&p)})
	}
	slices.SortStableFunc(rules, func(a, b rule) int { return a.column - b.column })
	return rules, false
}

// timeRules returns the time range as rules on the time index.
func (r *Reader) timeRules(times table.TimeRange) []rule {
	at := slices.IndexFunc(r.footer.info.Columns, func(c columnInfo) bool { return c.Role == table.Timestamp })
	t := r.footer.info.Columns[at].Type
	bound := func(op table.Compare, v int64) rule {
		return rule{column: at, typ: t, test: table.Predicate{Op: op, Values: []table.Value{{Type: t, Int: v}}}}
	}
	var rules []rule
	if times.Min > r.meta.Times.Min {
		rules = append(rules, bound(table.GreaterEqual, times.Min))
	}
	if times.Max < r.meta.Times.Max {
		rules = append(rules, bound(table.LessEqual, times.Max))
	}
	return rules
}

// bloomable reports whether a predicate asks for few exact values.
func bloomable(p *table.Predicate) bool {
	return p.Op == table.Equal && len(p.Values) == 1 || p.Op == table.In && len(p.Values) <= 64
}

func matchNull(p *table.Predicate) bool { return p.Op == table.IsNull }

// match reports whether a value that is not null passes.
func (r *rule) match(v *table.Value) bool {
	switch r.test.Op {
	case table.IsNull:
		return false
	case table.IsNotNull:
		return true
	case table.In:
		return slices.ContainsFunc(r.test.Values, func(x table.Value) bool { return compareValues(r.typ, v, &x) == 0 })
	}
	if len(r.test.Values) == 0 {
		return false
	}
	return r.test.Op.Holds(compareValues(r.typ, v, &r.test.Values[0]))
}

// verdict is what bounds say about all rows they cover.
type verdict uint8

const (
	someRows verdict = iota // look at the rows
	noRow
	allRows
)

// judge compares a rule with bounds.
func (r *rule) judge(b *bounds) verdict {
	values := b.rows - b.nulls
	switch r.test.Op {
	case table.IsNull:
		return sure(b.nulls == 0, values == 0)
	case table.IsNotNull:
		return sure(values == 0, b.nulls == 0)
	}
	if values == 0 {
		return noRow
	}
	if !b.known {
		return someRows
	}
	if r.test.Op == table.In {
		if !slices.ContainsFunc(r.test.Values, func(x table.Value) bool { return r.within(b, &x) }) {
			return noRow
		}
		return someRows
	}
	if len(r.test.Values) == 0 {
		return noRow
	}
	v := &r.test.Values[0]
	lo, hi := r.match(&b.min), r.match(&b.max)
	switch r.test.Op {
	case table.Equal:
		return sure(!r.within(b, v), lo && hi && b.nulls == 0)
	case table.NotEqual:
		same := compareValues(r.typ, &b.min, &b.max) == 0
		return sure(same && !lo, !r.within(b, v) && b.nulls == 0)
	case table.Less, table.LessEqual:
		return sure(!lo, hi && b.nulls == 0)
	case table.Greater, table.GreaterEqual:
		return sure(!hi, lo && b.nulls == 0)
	}
	return someRows
}

func sure(none, all bool) verdict {
	switch {
	case none:
		return noRow
	case all:
		return allRows
	}
	return someRows
}

func (r *rule) within(b *bounds, v *table.Value) bool {
	return compareValues(r.typ, &b.min, v) <= 0 && compareValues(r.typ, v, &b.max) <= 0
}

// excludedBy reports whether a bloom filter has none of the rule's values.
func (r *rule) excludedBy(f bloom.SplitBlockFilter) bool {
	var hash bloom.XXH64
	for i := range r.test.Values {
		v := &r.test.Values[i]
		if r.typ.Layout() == table.Floats {
			return false // zeros and NaNs have several forms
		}
		if f.Check(hash.Sum64(appendPlain(nil, r.typ, *v))) {
			return false
		}
	}
	return true
}

// filter appends to out the stretches of rows [from, to) of a page that pass;
// base is the row group's row at which the page begins.
func (r *rule) filter(out []span, v *table.Vector, from, to, base int) []span {
	switch v.Type.Layout() {
	case table.Bytes:
		if v.Dict != nil {
			return r.filterCodes(out, v, from, to, base)
		}
		return keep(out, v, from, to, base, matchNull(&r.test), func(i int) bool {
			return r.match(&table.Value{Bytes: string(v.Bytes(i))})
		})
	case table.Floats:
		return keep(out, v, from, to, base, matchNull(&r.test), func(i int) bool {
			return r.match(&table.Value{Float: v.Floats[i]})
		})
	case table.Bools:
		return keep(out, v, from, to, base, matchNull(&r.test), func(i int) bool {
			x := table.Value{}
			if v.Bools[i] {
				x.Int = 1
			}
			return r.match(&x)
		})
	}
	if lo, hi, ok := r.interval(); ok && v.Valid == nil {
		return keepInterval(out, v.Ints, from, to, base, lo, hi)
	}
	return keep(out, v, from, to, base, matchNull(&r.test), func(i int) bool {
		return r.match(&table.Value{Int: v.Ints[i]})
	})
}

// interval returns a rule on signed integers as the values from lo to hi.
func (r *rule) interval() (lo, hi int64, ok bool) {
	if r.typ == table.UInt64 || len(r.test.Values) != 1 {
		return 0, 0, false
	}
	x := r.test.Values[0].Int
	switch r.test.Op {
	case table.Equal:
		return x, x, true
	case table.GreaterEqual:
		return x, table.AllTime.Max, true
	case table.LessEqual:
		return table.AllTime.Min, x, true
	}
	return 0, 0, false
}

func keepInterval(out []span, ints []int64, from, to, base int, lo, hi int64) []span {
	for i := from; i < to; {
		for i < to && (ints[i] < lo || ints[i] > hi) {
			i++
		}
		start := i
		for i < to && ints[i] >= lo && ints[i] <= hi {
			i++
		}
		out = addSpan(out, span{base + start, base + i})
	}
	return out
}

// filterCodes tests each entry of a dictionary once.
func (r *rule) filterCodes(out []span, v *table.Vector, from, to, base int) []span {
	if r.dict != v.Dict {
		r.dict, r.passes = v.Dict, make([]bool, v.Dict.Len())
		for c := range r.passes {
			r.passes[c] = r.match(&table.Value{Bytes: string(v.Dict.Value(uint32(c)))})
		}
	}
	if v.Valid != nil {
		return keep(out, v, from, to, base, matchNull(&r.test), func(i int) bool { return r.passes[v.Codes[i]] })
	}
	codes, passes := v.Codes, r.passes
	for i := from; i < to; {
		for i < to && !passes[codes[i]] {
			i++
		}
		start := i
		for i < to && passes[codes[i]] {
			i++
		}
		out = addSpan(out, span{base + start, base + i})
	}
	return out
}

func keep(out []span, v *table.Vector, from, to, base int, null bool, match func(int) bool) []span {
	for i := from; i < to; i++ {
		ok := null
		if !v.IsNull(i) {
			ok = match(i)
		}
		if ok {
			out = addSpan(out, span{base + i, base + i + 1})
		}
	}
	return out
}
