package catalog

import (
	"maps"
	"slices"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// A Spec says what table to create.
type Spec struct {
	Database string
	Name     string
	Columns  []table.Column // in declared order; their ids are ignored
	Key      []string       // the tags in primary-key order; nil: as declared
	Merge    table.MergeMode
	Options  map[string]string
	Comment  string
	Regions  uint32 // number of regions; 1
}

// A Txn is one change of the catalog in the making. What it has done so far is
// seen through its View. A call that fails leaves the Txn as it was, so the
// function may go on without it.
type Txn struct {
	*View
	limits Options
	ops    []op
}

// CreateDatabase makes a database. If it exists that is a
// fault.DatabaseExists, or nothing with ifNotExists.
func (t *Txn) CreateDatabase(name string, ifNotExists bool, options map[string]string) error {
	if err := checkDatabaseName(name); err != nil {
		return err
	}
	if _, err := t.database(name); err == nil {
		if ifNotExists {
			return nil
		}
		return fault.Errorf(fault.DatabaseExists, "database %q exists", name)
	}
	if t.databases.len() >= t.limits.MaxDatabases {
		return fault.Errorf(fault.Invalid, "database %q would be one more than the %d allowed", name, t.limits.MaxDatabases)
	}
	t.do(op{PutDatabase: &Database{Name: name, Options: maps.Clone(options)}})
	return nil
}

// DropDatabase removes a database with its tables, which it returns.
func (t *Txn) DropDatabase(name string) ([]*table.Info, error) {
	if name == Public {
		return nil, fault.Errorf(fault.Invalid, "database %q cannot be dropped", name)
	}
	dropped, err := t.Tables(name)
	if err != nil {
		return nil, err
	}
	t.do(op{DropDatabase: name})
	return dropped, nil
}

// CreateTable makes a table and returns it with created set. If a table of
// this name exists that is a fault.TableExists, or with ifNotExists it is
// returned as it is.
func (t *Txn) CreateTable(spec Spec, ifNotExists bool) (info *table.Info, created bool, err error) {
	if err := checkName("table", spec.Name); err != nil {
		return nil, false, err
	}
	if _, err := t.database(spec.Database); err != nil {
		return nil, false, err
	}
	if info, err := t.Table(spec.Database, spec.Name); err == nil {
		if ifNotExists {
			return info, false, nil
		}
		return nil, false, fault.Errorf(fault.TableExists, "table %q exists in database %q", spec.Name, spec.Database)
	}
	if t.byID.len() >= t.limits.MaxTables {
		return nil, false, fault.Errorf(fault.Invalid, "table %q would be one more than the %d allowed", spec.Name, t.limits.MaxTables)
	}
	schema, err := t.newSchema(&spec)
	if err != nil {
		return nil, false, err
	}
	info = &table.Info{
		ID: t.nextID, Database: spec.Database, Name: spec.Name, Schema: schema, Merge: spec.Merge,
		Options: maps.Clone(spec.Options), Comment: spec.Comment, Regions: max(spec.Regions, 1),
	}
	t.do(op{PutTable: info})
	return info, true, nil
}

func (t *Txn) newSchema(spec *Spec) (*table.Schema, error) {
	s := &table.Schema{Version: 1, NextID: 1}
	times := 0
	for _, c := range spec.Columns {
		if s.Lookup(c.Name) != nil {
			return nil, fault.Errorf(fault.ColumnExists, "column %q of table %q is declared twice", c.Name, spec.Name)
		}
		if err := t.addColumn(s, spec.Name, c); err != nil {
			return nil, err
		}
		if c.Role == table.Timestamp {
			times++
		}
	}
	if times != 1 {
		return nil, fault.Errorf(fault.Plan, "table %q has %d time indexes; it needs exactly one", spec.Name, times)
	}
	if spec.Key == nil {
		return s, nil
	}
	key := make([]table.ColumnID, 0, len(spec.Key))
	for _, name := range spec.Key {
		c := s.Lookup(name)
		if c == nil || c.Role != table.Tag || slices.Contains(key, c.ID) {
			return nil, fault.Errorf(fault.Plan, "primary key of table %q names %q, which is no tag of it, or twice", spec.Name, name)
		}
		key = append(key, c.ID)
	}
	if len(key) != len(s.Key) {
		return nil, fault.Errorf(fault.Plan, "primary key of table %q has %d of its %d tags", spec.Name, len(key), len(s.Key))
	}
	s.Key = key
	return s, nil
}

// AddColumns gives a table the columns that it lacks and returns it. One that
// it has with the same role and type is left alone; with another it is a
// fault.ColumnExists that names both. New tags go to the end of the key.
func (t *Txn) AddColumns(id table.ID, columns []table.Column) (*table.Info, error) {
	info, ok := t.TableByID(id)
	if !ok {
		return nil, gone(id)
	}
	for _, c := range columns {
		if have := info.Schema.Lookup(c.Name); have != nil && (have.Role != c.Role || have.Type != c.Type) {
			return nil, fault.Errorf(fault.ColumnExists, "column %q of table %q exists as %s %s, not %s %s",
				c.Name, info.Name, have.Role, have.Type.SQL(), c.Role, c.Type.SQL())
		}
	}
	next, refused := t.widened(info, columns)
	if len(refused) > 0 {
		return nil, refused[0].Err
	}
	return t.replace(info, next), nil
}

// A Refusal says why a table cannot have a column.
type Refusal struct {
	Column string
	Err    error
}

// Widen gives a table those of the columns that it lacks and can have, and
// says why it cannot have the others. A column that it has is left alone,
// whatever its type; a writer who needs it converts to that, or fails.
func (t *Txn) Widen(id table.ID, columns []table.Column) (*table.Info, []Refusal, error) {
	info, ok := t.TableByID(id)
	if !ok {
		return nil, nil, gone(id)
	}
	next, refused := t.widened(info, columns)
	return t.replace(info, next), refused, nil
}

func gone(id table.ID) error {
	return fault.Errorf(fault.TableNotFound, "table %d does not exist any more", id)
}

// widened returns the schema with the columns that it lacks.
func (t *Txn) widened(info *table.Info, columns []table.Column) (next *table.Schema, refused []Refusal) {
	next = info.Schema.Clone()
	have := make(map[string]bool, len(next.Columns)+len(columns))
	for i := range next.Columns {
		have[next.Columns[i].Name] = true
	}
	for _, c := range columns {
		if have[c.Name] {
			continue
		}
		if !c.Nullable && c.Default == "" {
			c.Nullable = true // older rows have no value for it
		}
		var err error
		if c.Role == table.Timestamp {
			err = fault.Errorf(fault.Plan, "column %q of table %q: a time index cannot be added", c.Name, info.Name)
		} else {
			err = t.addColumn(next, info.Name, c)
		}
		if err != nil {
			refused = append(refused, Refusal{c.Name, err})
			continue
		}
		have[c.Name] = true
	}
	return next, refused
}

// replace makes next the schema of a table, if it differs.
func (t *Txn) replace(info *table.Info, next *table.Schema) *table.Info {
	if len(next.Columns) == len(info.Schema.Columns) {
		return info
	}
	next.Version++
	changed := *info
	changed.Schema = next
	t.do(op{PutTable: &changed})
	return &changed
}

// addColumn appends a column, whose name is new, under the next id, to s that
// nobody else has yet.
func (t *Txn) addColumn(s *table.Schema, tableName string, c table.Column) error {
	if err := checkColumnName(c.Name); err != nil {
		return err
	}
	switch {
	case !c.Type.Known() || c.Role > table.Timestamp:
		return fault.Errorf(fault.Plan, "column %q of table %q has an unknown type or role", c.Name, tableName)
	case c.Role == table.Timestamp && !c.Type.IsTimestamp():
		return fault.Errorf(fault.Plan, "time index %q of table %q is a %s, not a timestamp", c.Name, tableName, c.Type.SQL())
	case len(s.Columns) >= t.limits.MaxColumns || s.NextID >= table.ReservedColumnID:
		return fault.Errorf(fault.Invalid, "column %q would be one more than the %d allowed in table %q", c.Name, t.limits.MaxColumns, tableName)
	}
	c.ID = s.NextID
	s.NextID++
	if c.Role == table.Timestamp {
		c.Nullable = false
	}
	if c.Role == table.Tag {
		s.Key = append(s.Key, c.ID)
	}
	s.Columns = append(s.Columns, c)
	return nil
}

// DropTable removes a table, which it returns.
func (t *Txn) DropTable(db, name string) (*table.Info, error) {
	info, err := t.Table(db, name)
	if err != nil {
		return nil, err
	}
	t.do(op{DropTable: info.ID})
	return info, nil
}

// do applies o, which has been checked, and keeps it for the edit.
func (t *Txn) do(o op) {
	t.View = o.apply(t.View)
	if n := len(t.ops) - 1; n >= 0 && o.PutTable != nil && t.ops[n].PutTable != nil && t.ops[n].PutTable.ID == o.PutTable.ID {
		t.ops[n] = o // only the last of several changes in a row is of interest
		return
	}
	t.ops = append(t.ops, o)
}
