package table

import "slices"

// A ColumnID names a column for the life of its table. A dropped and re-added
// name gets a new one. It is the Parquet field_id in SSTs. IDs start at 1.
type ColumnID uint32

// ReservedColumnID is the first of the ids that belong to columns of the
// engine itself (sequence, operation); users' columns stay below it.
const ReservedColumnID ColumnID = 0x7fff_0000

// A Role is what a column is for in its table.
type Role uint8

// The roles. Their numbers are part of the file formats.
const (
	Tag       Role = 0 // part of the primary key
	Field     Role = 1
	Timestamp Role = 2 // the time index: exactly one column, never null
)

// String returns the role as DESC TABLE shows it.
func (r Role) String() string { return [...]string{"TAG", "FIELD", "TIMESTAMP"}[r] }

// A Column describes one column.
type Column struct {
	ID       ColumnID `json:"id"`
	Name     string   `json:"name"`
	Type     Type     `json:"type"`
	Role     Role     `json:"role"`
	Nullable bool     `json:"nullable,omitempty"`
	Default  string   `json:"default,omitempty"` // SQL text of the default; empty: none
	Comment  string   `json:"comment,omitempty"`
}

// A Schema is the columns of a table at one version. It is immutable once
// shared.
type Schema struct {
	Version uint64     `json:"version"` // grows by one with each change
	Columns []Column   `json:"columns"` // in declared order
	Key     []ColumnID `json:"key"`     // the tags in primary-key order; new ones are appended
	NextID  ColumnID   `json:"next_id"` // the id that the next new column gets
}

// Column returns the column with the given id, or nil.
func (s *Schema) Column(id ColumnID) *Column {
	if i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.ID == id }); i >= 0 {
		return &s.Columns[i]
	}
	return nil
}

// Lookup returns the column with exactly this name, or nil.
func (s *Schema) Lookup(name string) *Column {
	if i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return &s.Columns[i]
	}
	return nil
}

// TimeIndex returns the time index column.
func (s *Schema) TimeIndex() *Column {
	i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Role == Timestamp })
	return &s.Columns[i]
}

// Tags returns the tag columns in key order.
func (s *Schema) Tags() []*Column {
	tags := make([]*Column, len(s.Key))
	for i, id := range s.Key {
		tags[i] = s.Column(id)
	}
	return tags
}

// Clone returns a deep copy, to be changed into the next version.
func (s *Schema) Clone() *Schema {
	c := *s
	c.Columns = slices.Clone(s.Columns)
	c.Key = slices.Clone(s.Key)
	return &c
}

// A MergeMode says what is read where several writes have one identity (tags
// and time).
type MergeMode uint8

// The merge modes. Their numbers are part of the file formats.
const (
	LastRow     MergeMode = 0 // the newest write wins whole
	LastNonNull MergeMode = 1 // each field is the newest value that is not null
	Append      MergeMode = 2 // append_mode=true: every write is a row of its own
)

// String returns the mode as the table option merge_mode spells it.
func (m MergeMode) String() string { return [...]string{"last_row", "last_non_null", "append"}[m] }

// An ID names a table for ever; ids are never used again.
type ID uint32

// A RegionID names one partition of a table.
type RegionID uint64

// Region returns the id of a table's region number n.
func (id ID) Region(n uint32) RegionID { return RegionID(uint64(id)<<32 | uint64(n)) }

// Table returns the table that a region belongs to.
func (r RegionID) Table() ID { return ID(r >> 32) }

// An Info is everything known of one table at one moment. It is immutable.
type Info struct {
	ID       ID                `json:"id"`
	Database string            `json:"database"`
	Name     string            `json:"name"`
	Schema   *Schema           `json:"schema"`
	Merge    MergeMode         `json:"merge"`
	Options  map[string]string `json:"options,omitempty"` // as given in WITH
	Comment  string            `json:"comment,omitempty"`
	Regions  uint32            `json:"regions"` // number of regions, at least 1
}
