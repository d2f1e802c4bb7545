package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/varvedb/varve/table"
)

// formatVersion is the version of edits and checkpoints, described in
// docs/format/catalog.md. A larger one is refused.
const formatVersion = 1

// An edit is what one Update did, in order.
type edit struct {
	Version int  `json:"version"`
	Ops     []op `json:"ops"`
}

// An op is one change. Exactly one field is set.
type op struct {
	PutDatabase  *Database   `json:"put_database,omitempty"`
	DropDatabase string      `json:"drop_database,omitempty"` // with all its tables
	PutTable     *table.Info `json:"put_table,omitempty"`     // new, or the next version
	DropTable    table.ID    `json:"drop_table,omitempty"`
}

// A checkpoint is a whole View.
type checkpoint struct {
	Version   int           `json:"version"`
	NextID    table.ID      `json:"next_id"`
	Databases []*Database   `json:"databases"`
	Tables    []*table.Info `json:"tables"`
}

func (o op) apply(v *View) *View {
	switch {
	case o.PutDatabase != nil:
		return v.withDatabase(*o.PutDatabase)
	case o.DropDatabase != "":
		return v.withoutDatabase(o.DropDatabase)
	case o.PutTable != nil:
		return v.withTable(o.PutTable)
	default:
		info, _ := v.TableByID(o.DropTable)
		return v.withoutTable(info)
	}
}

// check reports what keeps o, read from a file, from being applied to v.
func (o op) check(v *View) error {
	set := 0
	if o.PutDatabase != nil {
		set++
		if o.PutDatabase.Name == "" {
			return errors.New("put_database without a name")
		}
	}
	if o.DropDatabase != "" {
		set++
		if _, err := v.database(o.DropDatabase); err != nil || o.DropDatabase == Public {
			return fmt.Errorf("drop_database of %q, which does not exist", o.DropDatabase)
		}
	}
	if o.PutTable != nil {
		set++
		if err := checkInfo(o.PutTable, v); err != nil {
			return err
		}
	}
	if o.DropTable != 0 {
		set++
		if _, ok := v.TableByID(o.DropTable); !ok {
			return fmt.Errorf("drop_table of %d, which does not exist", o.DropTable)
		}
	}
	if set != 1 {
		return fmt.Errorf("an op with %d changes", set)
	}
	return nil
}

// checkInfo checks what the rest of the server takes for granted in a table,
// and that it fits into v.
func checkInfo(info *table.Info, v *View) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("table %d %q: %s", info.ID, info.Name, fmt.Sprintf(format, args...))
	}
	d, ok := v.databases.get(info.Database)
	if !ok {
		return fail("database %q does not exist", info.Database)
	}
	if info.ID == 0 || info.ID == ^table.ID(0) || info.Name == "" || info.Regions == 0 || info.Merge > table.Append || info.Schema == nil {
		return fail("incomplete")
	}
	old, exists := v.TableByID(info.ID)
	if exists && old.Database != info.Database {
		return fail("was in database %q", old.Database)
	}
	if !exists && info.ID < v.nextID {
		return fail("its id was used before")
	}
	alike, _ := d.tables.get(fold(info.Name))
	if slices.ContainsFunc(alike, func(i *table.Info) bool { return i.Name == info.Name && i.ID != info.ID }) {
		return fail("its name is taken")
	}
	if err := checkSchema(info.Schema); err != nil {
		return fail("%v", err)
	}
	return nil
}

func checkSchema(s *table.Schema) error {
	names := make(map[string]bool, len(s.Columns))
	roles := make(map[table.ColumnID]table.Role, len(s.Columns))
	tags, times := 0, 0
	for _, c := range s.Columns {
		switch {
		case c.ID == 0 || c.ID >= s.NextID || s.NextID > table.ReservedColumnID:
			return fmt.Errorf("column %q has id %d with next id %d", c.Name, c.ID, s.NextID)
		case c.Name == "" || !c.Type.Known() || c.Role > table.Timestamp:
			return fmt.Errorf("column %d %q is incomplete", c.ID, c.Name)
		case c.Role == table.Timestamp && !c.Type.IsTimestamp():
			return fmt.Errorf("time index %q is a %s", c.Name, c.Type)
		}
		switch c.Role {
		case table.Tag:
			tags++
		case table.Timestamp:
			times++
		}
		names[c.Name] = true
		roles[c.ID] = c.Role
	}
	if len(names) != len(s.Columns) || len(roles) != len(s.Columns) || times != 1 || len(s.Key) != tags {
		return fmt.Errorf("%d columns with %d names, %d ids, %d time indexes; %d tags with %d in the key",
			len(s.Columns), len(names), len(roles), times, tags, len(s.Key))
	}
	inKey := make(map[table.ColumnID]bool, len(s.Key))
	for _, id := range s.Key {
		if role, ok := roles[id]; !ok || role != table.Tag || inKey[id] {
			return fmt.Errorf("key names column %d, which is no tag, or twice", id)
		}
		inKey[id] = true
	}
	return nil
}

// decodeEdit applies an edit, as read from the log, to v.
func decodeEdit(data []byte, v *View) (*View, error) {
	var e edit
	if err := decode(data, &e); err != nil {
		return nil, err
	}
	for i, o := range e.Ops {
		if err := o.check(v); err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		v = o.apply(v)
	}
	return v, nil
}

func decodeCheckpoint(data []byte) (*View, error) {
	var c checkpoint
	if err := decode(data, &c); err != nil {
		return nil, err
	}
	v := emptyView()
	for _, d := range c.Databases {
		if d == nil || d.Name == "" {
			return nil, errors.New("a database without a name")
		}
		v = v.withDatabase(*d)
	}
	if slices.Contains(c.Tables, nil) {
		return nil, errors.New("a table that is null")
	}
	slices.SortFunc(c.Tables, compareIDs)
	for _, info := range c.Tables {
		if err := checkInfo(info, v); err != nil {
			return nil, err
		}
		v = v.withTable(info)
	}
	if c.NextID < v.nextID {
		return nil, fmt.Errorf("next_id is %d, but table %d exists", c.NextID, v.nextID-1)
	}
	v.nextID = c.NextID
	return v, nil
}

// decode reads one JSON value strictly: a field that this version does not
// know means damage, because a new field comes with a new version.
func decode(data []byte, into any) error {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("not a catalog record: %w", err)
	}
	if head.Version != formatVersion {
		return fmt.Errorf("format version %d; this binary reads version %d", head.Version, formatVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("not a catalog record: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes behind the record")
	}
	return nil
}

func encodeEdit(ops []op) ([]byte, error) { return json.Marshal(edit{formatVersion, ops}) }

func encodeCheckpoint(v *View) ([]byte, error) {
	c := checkpoint{Version: formatVersion, NextID: v.nextID, Databases: v.Databases()}
	for _, info := range v.byID.all() {
		c.Tables = append(c.Tables, info)
	}
	slices.SortFunc(c.Tables, compareIDs)
	return json.Marshal(c)
}

func compareIDs(a, b *table.Info) int { return cmp.Compare(a.ID, b.ID) }
