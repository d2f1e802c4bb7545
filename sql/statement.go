package sql

import "github.com/varvedb/varve/table"

// A Statement is one statement of a Script, parsed as far as that is possible
// without knowing the tables.
type Statement struct {
	Text string // as written, without the semicolon

	node node
}

// A node is one of the types below.
type node any

// A name is one part of a table's or column's name. An unquoted one may be
// spelled in another case than the name it refers to.
type name struct {
	text   string
	quoted bool
}

// A tableName is t or db.t.
type tableName struct {
	database name // empty: the session's database
	table    name
}

// String returns the name as an error message shows it.
func (n tableName) String() string {
	if n.database.text == "" {
		return n.table.text
	}
	return n.database.text + "." + n.table.text
}

// An option is one 'key' = 'value' of a WITH clause.
type option struct{ key, value string }

type (
	// selectQuery is anything that package query runs: SELECT, EXPLAIN ….
	selectQuery struct{}

	createDatabase struct {
		name        string
		ifNotExists bool
		options     []option
	}

	createTable struct {
		name        tableName
		ifNotExists bool
		columns     []columnDef
		options     []option
		comment     string
	}

	// columnDef is one column of CREATE TABLE. fallback is its DEFAULT.
	columnDef struct {
		name     string
		typ      table.Type
		notNull  bool
		fallback *value
		comment  string
		role     table.Role
		keyIndex int // place in the primary key, if role is Tag
	}

	// insert is INSERT INTO. Its rows are parsed when the statement runs,
	// straight into columns.
	insert struct {
		name    tableName
		columns []name // nil: all, in declared order
		rows    int    // where in Text the first row begins; -1: query gives them
		query   string
	}

	dropTable struct {
		names    []tableName
		ifExists bool
	}

	dropDatabase struct {
		name     name
		ifExists bool
	}

	showDatabases struct {
		like *string
		full bool
	}

	showTables struct {
		database name
		like     *string
		full     bool
	}

	showCreateTable struct{ name tableName }

	describeTable struct{ name tableName }

	useDatabase struct{ name name }

	setTimeZone struct{ zone string }

	flushTable struct{ name tableName }
)
