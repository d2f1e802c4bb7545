package catalog

import (
	"cmp"
	"slices"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/table"
)

// Public is the database that always exists, and that requests use which name
// none.
const Public = "public"

// A Database describes one database. It is immutable.
type Database struct {
	Name    string            `json:"name"`
	Options map[string]string `json:"options,omitempty"` // as given in WITH
}

// A View is the whole catalog as it was after some edit. It never changes, so
// several lookups in one View agree with each other.
type View struct {
	nextID    table.ID // the id of the next new table
	databases trie[string, *database]
	byID      trie[table.ID, *table.Info]
}

// A database is a Database and the tables in it, by their folded names: tables
// that differ only by case share an entry.
type database struct {
	Database
	tables trie[string, []*table.Info]
	count  int
}

// emptyView is the catalog before the first edit.
func emptyView() *View {
	v := &View{nextID: 1}
	v.databases = v.databases.set(Public, &database{Database: Database{Name: Public}})
	return v
}

// NextID returns the id that the next new table gets: no table has ever had it
// or a larger one.
func (v *View) NextID() table.ID { return v.nextID }

// Databases returns every database, sorted by name.
func (v *View) Databases() []*Database {
	list := make([]*Database, 0, v.databases.len())
	for _, db := range v.databases.all() {
		list = append(list, &db.Database)
	}
	slices.SortFunc(list, func(a, b *Database) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Database returns the database of this name; a missing one is a
// fault.DatabaseMissing.
func (v *View) Database(name string) (*Database, error) {
	db, err := v.database(name)
	if err != nil {
		return nil, err
	}
	return &db.Database, nil
}

func (v *View) database(name string) (*database, error) {
	if db, ok := v.databases.get(name); ok {
		return db, nil
	}
	return nil, fault.Errorf(fault.DatabaseMissing, "database not found: %q", name)
}

// Table returns the table of exactly this name, as a quoted identifier means
// it. A missing one is a fault.TableNotFound or fault.DatabaseMissing.
func (v *View) Table(db, name string) (*table.Info, error) {
	d, err := v.database(db)
	if err != nil {
		return nil, err
	}
	alike, _ := d.tables.get(fold(name))
	for _, info := range alike {
		if info.Name == name {
			return info, nil
		}
	}
	return nil, notFound(db, name)
}

// Resolve returns the table that an unquoted identifier means: the one of
// exactly this name, else the only one that differs just by the case of ASCII
// letters. Several of those are a fault.Plan.
func (v *View) Resolve(db, name string) (*table.Info, error) {
	d, err := v.database(db)
	if err != nil {
		return nil, err
	}
	alike, _ := d.tables.get(fold(name))
	for _, info := range alike {
		if info.Name == name {
			return info, nil
		}
	}
	switch len(alike) {
	case 0:
		return nil, notFound(db, name)
	case 1:
		return alike[0], nil
	default:
		return nil, fault.Errorf(fault.Plan, "table name %s is ambiguous: it could be %q or %q; quote it",
			name, alike[0].Name, alike[1].Name)
	}
}

func notFound(db, name string) error {
	return fault.Errorf(fault.TableNotFound, "table not found: %q in database %q", name, db)
}

// TableByID returns the table, or false if it does not exist (any more).
func (v *View) TableByID(id table.ID) (*table.Info, bool) { return v.byID.get(id) }

// Tables returns the tables of a database, sorted by name.
func (v *View) Tables(db string) ([]*table.Info, error) {
	d, err := v.database(db)
	if err != nil {
		return nil, err
	}
	return d.sorted(), nil
}

func (d *database) sorted() []*table.Info {
	list := make([]*table.Info, 0, d.count)
	for _, alike := range d.tables.all() {
		list = append(list, alike...)
	}
	slices.SortFunc(list, func(a, b *table.Info) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// withDatabase, withoutDatabase, withTable and withoutTable return the next
// View. They check nothing.

func (v *View) withDatabase(d Database) *View {
	next := *v
	changed := database{Database: d}
	if old, ok := v.databases.get(d.Name); ok {
		changed.tables, changed.count = old.tables, old.count
	}
	next.databases = v.databases.set(d.Name, &changed)
	return &next
}

func (v *View) withoutDatabase(name string) *View {
	next := *v
	if d, ok := v.databases.get(name); ok {
		for _, alike := range d.tables.all() {
			for _, info := range alike {
				next.byID = next.byID.remove(info.ID)
			}
		}
	}
	next.databases = v.databases.remove(name)
	return &next
}

// withTable adds the table, or replaces the one of the same id.
func (v *View) withTable(info *table.Info) *View {
	next := *v
	if old, ok := v.byID.get(info.ID); ok {
		next = *next.withoutTable(old)
	}
	next.nextID = max(next.nextID, info.ID+1)
	next.byID = next.byID.set(info.ID, info)

	d, _ := next.databases.get(info.Database)
	changed := *d
	key := fold(info.Name)
	alike, _ := d.tables.get(key)
	changed.tables = d.tables.set(key, append(slices.Clip(alike), info))
	changed.count++
	next.databases = next.databases.set(info.Database, &changed)
	return &next
}

func (v *View) withoutTable(info *table.Info) *View {
	next := *v
	next.byID = v.byID.remove(info.ID)

	d, _ := v.databases.get(info.Database)
	changed := *d
	key := fold(info.Name)
	alike, _ := d.tables.get(key)
	alike = slices.DeleteFunc(slices.Clone(alike), func(i *table.Info) bool { return i.ID == info.ID })
	if len(alike) == 0 {
		changed.tables = d.tables.remove(key)
	} else {
		changed.tables = d.tables.set(key, alike)
	}
	changed.count--
	next.databases = v.databases.set(info.Database, &changed)
	return &next
}

// fold lowers ASCII letters, and only those, as DuckDB does where it compares
// identifiers.
func fold(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			folded := []byte(name)
			for ; i < len(folded); i++ {
				if c := folded[i]; 'A' <= c && c <= 'Z' {
					folded[i] = c + 'a' - 'A'
				}
			}
			return string(folded)
		}
	}
	return name
}
