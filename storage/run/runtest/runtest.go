// Package runtest makes Sources out of rows written down in tests, and rows
// out of Sources.
package runtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// A Row is one row. Cells has the values of all columns of the schema in
// declared order: nil, int64, float64, bool or string.
type Row struct {
	Cells    []any
	Sequence uint64
	Op       table.Op
}

// Key returns the row's series key.
func (r *Row) Key(schema *table.Schema) []byte {
	var key []byte
	nulls := 0
	for _, c := range schema.Tags() {
		v := r.Cells[position(schema, c.ID)]
		nulls++
		switch v := v.(type) {
		case nil:
			key = table.AppendKeyNull(key)
			continue
		case string:
			key = table.AppendKeyBytes(key, []byte(v))
		case int64:
			key = table.AppendKeyInt(key, c.Type, v)
		case float64:
			key = table.AppendKeyFloat(key, v)
		case bool:
			key = table.AppendKeyInt(key, c.Type, map[bool]int64{true: 1}[v])
		}
		nulls = 0
	}
	return table.TrimKey(key, nulls)
}

// Time returns the row's time.
func (r *Row) Time(schema *table.Schema) int64 {
	return r.Cells[position(schema, schema.TimeIndex().ID)].(int64)
}

func position(schema *table.Schema, id table.ColumnID) int {
	return slices.IndexFunc(schema.Columns, func(c table.Column) bool { return c.ID == id })
}

// Compare orders rows by key, time, and then newest first.
func Compare(schema *table.Schema) func(a, b Row) int {
	return func(a, b Row) int {
		return cmp.Or(
			bytes.Compare(a.Key(schema), b.Key(schema)),
			cmp.Compare(a.Time(schema), b.Time(schema)),
			cmp.Compare(b.Sequence, a.Sequence))
	}
}

// Source returns a Source that hands out rows, which it sorts, in batches of
// batchRows with the columns of req. It ignores what else req says, but always
// has identities. Strings of every second column are dictionary-coded.
func Source(schema *table.Schema, req run.Request, rows []Row, batchRows int) run.Source {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, Compare(schema))
	return &source{schema: schema, req: req, rows: rows, batchRows: batchRows}
}

type source struct {
	schema    *table.Schema
	req       run.Request
	rows      []Row
	batchRows int
	last      *run.Batch
}

// Close does nothing.
func (s *source) Close() {}

// Next returns the next batch.
func (s *source) Next(context.Context) (*run.Batch, error) {
	if s.last != nil { // it was good until now: make a late look visible
		for i := range s.last.Times {
			s.last.Times[i] = -1
		}
		clear(s.last.Keys)
	}
	s.last = nil
	n := min(s.batchRows, len(s.rows))
	if n == 0 {
		return nil, nil
	}
	b := &run.Batch{Len: n}
	for i, id := range s.req.Columns {
		b.Columns = append(b.Columns, Vector(s.schema.Column(id).Type, s.cells(id, n), i%2 == 0))
	}
	for i := range s.rows[:n] {
		r := &s.rows[i]
		if key := r.Key(s.schema); len(b.Keys) == 0 || !bytes.Equal(b.Keys[len(b.Keys)-1], key) {
			b.Keys, b.Starts = append(b.Keys, key), append(b.Starts, uint32(i))
		}
		b.Times = append(b.Times, r.Time(s.schema))
		b.Sequences = append(b.Sequences, r.Sequence)
		b.Ops = append(b.Ops, r.Op)
	}
	if !slices.Contains(b.Ops, table.Delete) {
		b.Ops = nil
	}
	s.rows, s.last = s.rows[n:], b
	return b, nil
}

func (s *source) cells(id table.ColumnID, n int) []any {
	at := position(s.schema, id)
	out := make([]any, n)
	for i := range out {
		out[i] = s.rows[i].Cells[at]
	}
	return out
}

// Vector returns cells as a Vector.
func Vector(t table.Type, cells []any, coded bool) table.Vector {
	v := table.Vector{Type: t, Len: len(cells)}
	codes := map[string]uint32{}
	if t.Layout() == table.Bytes {
		if coded {
			v.Dict = &table.Dict{Offsets: []uint32{0, 0}}
			codes[""] = 0
		} else {
			v.Offsets = []uint32{0}
		}
	}
	for i, cell := range cells {
		if cell == nil {
			if v.Valid == nil {
				v.Valid = run.AppendBits(nil, 0, nil, 0, len(cells))
			}
			v.Valid.Clear(i)
		}
		switch t.Layout() {
		case table.Ints:
			x, _ := cell.(int64)
			v.Ints = append(v.Ints, x)
		case table.Floats:
			x, _ := cell.(float64)
			v.Floats = append(v.Floats, x)
		case table.Bools:
			x, _ := cell.(bool)
			v.Bools = append(v.Bools, x)
		case table.Bytes:
			x, _ := cell.(string)
			if !coded {
				v.Data = append(v.Data, x...)
				v.Offsets = append(v.Offsets, uint32(len(v.Data)))
				continue
			}
			c, ok := codes[x]
			if !ok {
				c = uint32(v.Dict.Len())
				codes[x] = c
				v.Dict.Data = append(v.Dict.Data, x...)
				v.Dict.Offsets = append(v.Dict.Offsets, uint32(len(v.Dict.Data)))
			}
			v.Codes = append(v.Codes, c)
		}
	}
	return v
}

// Format returns rows as one line each: the wanted columns, and with identity
// key, time, sequence and operation.
func Format(schema *table.Schema, req run.Request, rows []Row) []string {
	var lines []string
	for i := range rows {
		r := &rows[i]
		line := ""
		for _, id := range req.Columns {
			line += cell(r.Cells[position(schema, id)])
		}
		if req.Identity {
			line += identity(r.Key(schema), r.Time(schema), r.Sequence, r.Op)
		}
		lines = append(lines, line)
	}
	return lines
}

// Read reads src to its end, as Format prints it, and checks the form of its
// batches.
func Read(t testing.TB, src run.Source, req run.Request) []string {
	t.Helper()
	lines, err := TryRead(src, req)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TryRead is Read for sources that may fail.
func TryRead(src run.Source, req run.Request) (lines []string, err error) {
	for {
		b, err := src.Next(context.Background())
		if err != nil || b == nil {
			return lines, err
		}
		if err := Check(b, req); err != nil {
			return lines, err
		}
		for i := range b.Len {
			line := ""
			for c := range b.Columns {
				line += cell(value(&b.Columns[c], i))
			}
			if req.Identity {
				line += identity(b.Keys[b.Stretch(i)], b.Times[i], b.SequenceOf(i), b.OpOf(i))
			}
			lines = append(lines, line)
		}
	}
}

// Check returns what is wrong with the form of a batch, if anything.
func Check(b *run.Batch, req run.Request) error {
	if b.Len < 1 || len(b.Columns) != len(req.Columns) {
		return fmt.Errorf("batch of %d rows has %d columns for %d", b.Len, len(b.Columns), len(req.Columns))
	}
	for i := range b.Columns {
		v := &b.Columns[i]
		n := map[table.Layout]int{table.Ints: len(v.Ints), table.Floats: len(v.Floats), table.Bools: len(v.Bools)}[v.Type.Layout()]
		if v.Type.Layout() == table.Bytes {
			if n = len(v.Codes); v.Dict == nil {
				n = len(v.Offsets) - 1
			}
		}
		if c := req.Schema.Column(req.Columns[i]); v.Type != c.Type || v.Len != b.Len || n != b.Len {
			return fmt.Errorf("column %s is %s with %d (%d) rows of %d", c.Name, v.Type, v.Len, n, b.Len)
		}
		if v.Valid != nil && len(v.Valid) < (b.Len+63)/64 {
			return fmt.Errorf("bitmap of %d words for %d rows", len(v.Valid), b.Len)
		}
		for _, c := range v.Codes {
			if int(c) >= v.Dict.Len() {
				return fmt.Errorf("code %d of %d", c, v.Dict.Len())
			}
		}
	}
	if !req.Identity {
		return nil
	}
	if len(b.Times) != b.Len || b.Sequences != nil && len(b.Sequences) != b.Len || b.Ops != nil && len(b.Ops) != b.Len ||
		len(b.Keys) != len(b.Starts) || len(b.Keys) == 0 || b.Starts[0] != 0 {
		return fmt.Errorf("identity of %d rows: %d times, %d keys", b.Len, len(b.Times), len(b.Keys))
	}
	for i := 1; i < len(b.Keys); i++ {
		if bytes.Compare(b.Keys[i-1], b.Keys[i]) >= 0 || b.Starts[i-1] >= b.Starts[i] || int(b.Starts[i]) >= b.Len {
			return fmt.Errorf("stretch %d is out of order", i)
		}
	}
	return nil
}

func value(v *table.Vector, i int) any {
	if v.IsNull(i) {
		return nil
	}
	switch v.Type.Layout() {
	case table.Ints:
		return v.Ints[i]
	case table.Floats:
		return v.Floats[i]
	case table.Bools:
		return v.Bools[i]
	}
	return string(v.Bytes(i))
}

func cell(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q ", s)
	}
	return fmt.Sprintf("%v ", v)
}

func identity(key []byte, time int64, sequence uint64, op table.Op) string {
	return fmt.Sprintf("| %x @%d #%d op%d", key, time, sequence, op)
}
