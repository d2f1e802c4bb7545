// Package querytest holds tables in memory for tests of what runs statements:
// a Reader and Tables whose scans obey their spec to the letter and which count
// what is open.
package querytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// A DB is a set of tables.
type DB struct {
	// Partitions and BatchRows say how a scan is cut up; 0: one partition, and
	// batches of all its rows.
	Partitions, BatchRows int

	// Next, if not nil, runs before each batch; its error is the batch's.
	Next func(ctx context.Context, t *Table) error

	Snapshots atomic.Int64 // open now
	Parts     atomic.Int64 // open now

	mu struct {
		sync.Mutex
		tables map[string]*Table // database.name
		specs  []table.ScanSpec
	}
}

// A Table is an Info and its rows, one Vector per column of the schema.
type Table struct {
	Info *table.Info
	Rows table.Batch
}

// Add adds a table to a database; its id is given here.
func (db *DB) Add(t *Table) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.mu.tables == nil {
		db.mu.tables = map[string]*Table{}
	}
	t.Info.ID = table.ID(len(db.mu.tables) + 1)
	db.mu.tables[t.Info.Database+"."+t.Info.Name] = t
}

// Resolve implements query.Tables.
func (db *DB) Resolve(database, name string) (*table.Info, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	var similar []*table.Info
	exists := database == "public"
	for _, t := range db.mu.tables {
		exists = exists || t.Info.Database == database
		switch {
		case t.Info.Database != database:
		case t.Info.Name == name:
			return t.Info, nil
		case strings.EqualFold(t.Info.Name, name):
			similar = append(similar, t.Info)
		}
	}
	switch {
	case !exists:
		return nil, fault.Errorf(fault.DatabaseMissing, "database %q does not exist", database)
	case len(similar) == 0:
		return nil, fault.Errorf(fault.TableNotFound, "table %q does not exist", name)
	case len(similar) > 1:
		return nil, fault.Errorf(fault.Plan, "table %q is ambiguous", name)
	}
	return similar[0], nil
}

// Specs returns the specs of the scans since the last call.
func (db *DB) Specs() []table.ScanSpec {
	db.mu.Lock()
	defer db.mu.Unlock()
	specs := db.mu.specs
	db.mu.specs = nil
	return specs
}

// Snapshot implements table.Reader.
func (db *DB) Snapshot(ctx context.Context, info *table.Info) (table.Snapshot, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, t := range db.mu.tables {
		if t.Info.ID == info.ID {
			db.Snapshots.Add(1)
			return &snapshot{db: db, t: t}, nil
		}
	}
	return nil, fmt.Errorf("table %d is gone", info.ID)
}

type snapshot struct {
	db     *DB
	t      *Table
	closed atomic.Bool
}

func (s *snapshot) Info() *table.Info { return s.t.Info }

func (s *snapshot) Close() {
	if s.closed.Swap(true) {
		panic("snapshot closed twice")
	}
	s.db.Snapshots.Add(-1)
}

func (s *snapshot) Scan(ctx context.Context, spec table.ScanSpec) ([]table.Partition, error) {
	s.db.mu.Lock()
	s.db.mu.specs = append(s.db.mu.specs, spec)
	s.db.mu.Unlock()
	rows := s.t.filter(spec)
	n := max(s.db.Partitions, 1)
	var parts []table.Partition
	for i := range n {
		p := &partition{db: s.db, t: s.t, spec: spec, rows: rows, from: s.t.share(i, n, len(rows)), to: s.t.share(i+1, n, len(rows))}
		if rows == nil {
			p.from, p.to = s.t.share(i, n, s.t.Rows.Len), s.t.share(i+1, n, s.t.Rows.Len)
		}
		for _, id := range spec.Columns {
			p.columns = append(p.columns, slices.IndexFunc(s.t.Info.Schema.Columns, func(c table.Column) bool { return c.ID == id }))
		}
		s.db.Parts.Add(1)
		parts = append(parts, p)
	}
	return parts, nil
}

// share is where part i of n begins, at a multiple of 64 rows.
func (t *Table) share(i, n, rows int) int {
	if i == n {
		return rows
	}
	return rows / n * i &^ 63
}

// filter returns the rows that the spec asks for, or nil for all of them.
func (t *Table) filter(spec table.ScanSpec) []int {
	if spec.Times == table.AllTime && len(spec.Predicates) == 0 {
		return nil
	}
	rows := []int{}
	for i := range t.Rows.Len {
		if t.passes(spec, i) {
			rows = append(rows, i)
		}
	}
	return rows
}

func (t *Table) passes(spec table.ScanSpec, i int) bool {
	for k, c := range t.Info.Schema.Columns {
		v := &t.Rows.Columns[k]
		if c.Role == table.Timestamp && !spec.Times.Contains(v.Ints[i]) {
			return false
		}
		for _, p := range spec.Predicates {
			if p.Column == c.ID && !Passes(v, i, p) {
				return false
			}
		}
	}
	return true
}

// Passes evaluates a predicate on row i.
func Passes(v *table.Vector, i int, p table.Predicate) bool {
	switch null := v.IsNull(i); {
	case p.Op == table.IsNull:
		return null
	case p.Op == table.IsNotNull:
		return !null
	case null:
		return false
	case p.Op == table.In:
		return slices.ContainsFunc(p.Values, func(c table.Value) bool { return compare(v, i, c) == 0 })
	}
	order := compare(v, i, p.Values[0])
	switch p.Op {
	case table.Equal:
		return order == 0
	case table.NotEqual:
		return order != 0
	case table.Less:
		return order < 0
	case table.LessEqual:
		return order <= 0
	case table.Greater:
		return order > 0
	default:
		return order >= 0
	}
}

func compare(v *table.Vector, i int, c table.Value) int {
	if v.Type != c.Type {
		panic(fmt.Sprintf("predicate compares a %s with a %s", v.Type, c.Type))
	}
	switch v.Type.Layout() {
	case table.Bytes:
		return strings.Compare(string(v.Bytes(i)), c.Bytes)
	case table.Floats:
		switch {
		case v.Floats[i] < c.Float:
			return -1
		case v.Floats[i] > c.Float:
			return 1
		}
		return 0
	}
	switch {
	case v.Ints[i] < c.Int:
		return -1
	case v.Ints[i] > c.Int:
		return 1
	}
	return 0
}

type partition struct {
	db       *DB
	t        *Table
	spec     table.ScanSpec
	rows     []int // nil: all
	columns  []int
	from, to int
	batch    table.Batch
	closed   atomic.Bool
}

func (p *partition) Rows() int64 { return int64(p.to - p.from) }

func (p *partition) Close() {
	if !p.closed.Swap(true) {
		p.db.Parts.Add(-1)
	}
}

func (p *partition) Next(ctx context.Context) (*table.Batch, error) {
	if p.db.Next != nil {
		if err := p.db.Next(ctx, p.t); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	to := p.to
	if p.db.BatchRows > 0 {
		to = min(to, p.from+p.db.BatchRows)
	}
	n := to - p.from
	if n == 0 {
		return nil, nil
	}
	p.batch.Len = n
	p.batch.Columns = p.batch.Columns[:0]
	for _, c := range p.columns {
		p.batch.Columns = append(p.batch.Columns, p.vector(&p.t.Rows.Columns[c], to))
	}
	p.from = to
	if p.spec.Stats != nil {
		p.spec.Stats.RowsRead.Add(int64(n))
		p.spec.Stats.RowsReturned.Add(int64(n))
	}
	return &p.batch, nil
}

// vector returns the rows up to to of v: without a copy where all rows are
// asked for.
func (p *partition) vector(v *table.Vector, to int) table.Vector {
	if p.rows == nil {
		return Slice(v, p.from, to)
	}
	return Gather(v, p.rows[p.from:to])
}

// Slice returns the rows from..to of v, from being a multiple of 64.
func Slice(v *table.Vector, from, to int) table.Vector {
	s := table.Vector{Type: v.Type, Len: to - from, Dict: v.Dict}
	if v.Valid != nil {
		s.Valid = v.Valid[from>>6:]
	}
	switch {
	case v.Ints != nil:
		s.Ints = v.Ints[from:to]
	case v.Floats != nil:
		s.Floats = v.Floats[from:to]
	case v.Bools != nil:
		s.Bools = v.Bools[from:to]
	case v.Dict != nil:
		s.Codes = v.Codes[from:to]
	default:
		s.Offsets, s.Data = v.Offsets[from:to+1], v.Data
	}
	return s
}

// Gather returns some rows of v.
func Gather(v *table.Vector, rows []int) table.Vector {
	g := table.Vector{Type: v.Type, Len: len(rows), Dict: v.Dict}
	if v.Valid != nil {
		g.Valid = table.NewBitmap(len(rows))
	}
	if v.Type.Layout() == table.Bytes && v.Dict == nil {
		g.Offsets = append(g.Offsets, 0)
	}
	for k, i := range rows {
		if v.Valid != nil && v.Valid.Get(i) {
			g.Valid.Set(k)
		}
		switch {
		case v.Ints != nil:
			g.Ints = append(g.Ints, v.Ints[i])
		case v.Floats != nil:
			g.Floats = append(g.Floats, v.Floats[i])
		case v.Bools != nil:
			g.Bools = append(g.Bools, v.Bools[i])
		case v.Dict != nil:
			g.Codes = append(g.Codes, v.Codes[i])
		default:
			g.Data = append(g.Data, v.Bytes(i)...)
			g.Offsets = append(g.Offsets, uint32(len(g.Data)))
		}
	}
	return g
}
