package lineprotocol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/table"
)

const testNow = 1_700_000_000_123_456_789

// A bench decodes requests against a catalog of its own, and creates what is
// missing.
type bench struct {
	testing.TB
	catalog *catalog.Catalog
	decoder *Decoder
	refused map[[2]string]string
}

func newBench(t testing.TB, opts Options) *bench {
	return &bench{t, catalog.NewMemory(catalog.Options{}), NewDecoder(opts), map[[2]string]string{}}
}

func (b *bench) decode(body []byte, p Precision, now int64) *Result {
	b.Helper()
	for pass := range 3 {
		view := b.catalog.View()
		r := b.decoder.Decode(&Request{Body: body, Precision: p, Now: now, Again: pass > 0,
			Lookup: func(name string) *table.Info {
				info, _ := view.Table(catalog.Public, name)
				return info
			},
			Refuse: func(table, column string) string { return b.refused[[2]string{table, column}] },
		})
		if len(r.Missing) == 0 {
			return r
		}
		b.create(r.Missing)
	}
	b.Fatal("something is missing again and again")
	return nil
}

func (b *bench) create(missing []Missing) {
	err := b.catalog.Update(b.Context(), func(txn *catalog.Txn) error {
		for _, m := range missing {
			if m.Info != nil {
				_, refused, err := txn.Widen(m.Info.ID, m.Columns)
				if err != nil {
					return err
				}
				for _, r := range refused {
					b.refused[[2]string{m.Name, r.Column}] = r.Err.Error()
				}
			} else if _, _, err := txn.CreateTable(catalog.Spec{Database: catalog.Public, Name: m.Name, Columns: m.Columns, Merge: table.LastNonNull}, false); err != nil {
				b.refused[[2]string{m.Name, ""}] = err.Error()
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// A point is one decoded line, or one line of a test vector, in words.
type point struct {
	name   string
	tags   string // k=v, sorted by key
	fields string
	time   int64
}

// points returns the rows of r in words, in the order of the tables.
func points(t testing.TB, r *Result) []point {
	t.Helper()
	var list []point
	for _, tr := range r.Tables {
		checkRows(t, tr)
		for i := range tr.Rows.Len() {
			list = append(list, point{
				tr.Info.Name, tagsOf(t, tr.Info.Schema, tr.Rows.Keys.Key(int(tr.Rows.Series[i]))),
				fieldsOf(tr, i), tr.Rows.Times[i],
			})
		}
	}
	return list
}

// checkRows checks what table.Rows promises.
func checkRows(t testing.TB, tr Table) {
	t.Helper()
	keys := map[string]bool{}
	for i := range tr.Rows.Keys.Len() {
		key := tr.Rows.Keys.Key(i)
		keys[string(key)] = true
		if tr.Rows.Keys.Hashes[i] != table.HashKey(key) {
			t.Errorf("series %d has a wrong hash", i)
		}
		if !slices.Contains(tr.Rows.Series, uint32(i)) {
			t.Errorf("series %d has no row", i)
		}
	}
	if len(keys) != tr.Rows.Keys.Len() || len(tr.Rows.Series) != tr.Rows.Len() {
		t.Errorf("%d keys, %d of them distinct; %d series for %d rows", tr.Rows.Keys.Len(), len(keys), len(tr.Rows.Series), tr.Rows.Len())
	}
	for _, f := range tr.Rows.Fields {
		c := tr.Info.Schema.Column(f.ID)
		if c == nil || c.Role != table.Field || c.Type != f.Type || f.Len != tr.Rows.Len() {
			t.Errorf("field %d of type %v and length %d does not fit %+v", f.ID, f.Type, f.Len, c)
		}
		if n := max(len(f.Ints), len(f.Floats), len(f.Bools), len(f.Offsets)-1); n != f.Len {
			t.Errorf("field %d has %d values for %d rows", f.ID, n, f.Len)
		}
		if f.Valid != nil && len(f.Valid)*64 < f.Len {
			t.Errorf("field %d has a short bitmap", f.ID)
		}
	}
}

func tagsOf(t testing.TB, s *table.Schema, key []byte) string {
	var r table.KeyReader
	r.Reset(key)
	var tags []string
	for _, c := range s.Tags() {
		switch c.Type.Layout() {
		case table.Bytes:
			if v, ok := r.Bytes(); ok {
				tags = append(tags, fmt.Sprintf("%q=%q", c.Name, v))
			}
		case table.Floats:
			if v, ok := r.Float(); ok {
				tags = append(tags, fmt.Sprintf("%q=%v", c.Name, v))
			}
		default:
			if v, ok := r.Int(c.Type); ok {
				tags = append(tags, fmt.Sprintf("%q=%d", c.Name, v))
			}
		}
	}
	if r.Err() != nil || r.More() {
		t.Errorf("key %x: %v", key, r.Err())
	}
	slices.Sort(tags)
	return strings.Join(tags, " ")
}

func fieldsOf(tr Table, row int) string {
	var fields []string
	for i := range tr.Rows.Fields {
		f := &tr.Rows.Fields[i]
		if f.IsNull(row) {
			continue
		}
		var v string
		switch {
		case f.Type == table.UInt64:
			v = fmt.Sprintf("%du", uint64(f.Ints[row]))
		case f.Type.Layout() == table.Ints:
			v = fmt.Sprintf("%di", f.Ints[row])
		case f.Type.Layout() == table.Floats:
			v = floatText(f.Floats[row])
		case f.Type == table.Boolean:
			v = strconv.FormatBool(f.Bools[row])
		default:
			v = strconv.Quote(string(f.Vector.Bytes(row)))
		}
		fields = append(fields, fmt.Sprintf("%q=%s", tr.Info.Schema.Column(f.ID).Name, v))
	}
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// floatText writes minus zero as zero: JSON has only one.
func floatText(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }

func sortPoints(p []point) []point {
	slices.SortStableFunc(p, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.tags, b.tags), cmp.Compare(a.time, b.time), cmp.Compare(a.fields, b.fields))
	})
	return p
}
