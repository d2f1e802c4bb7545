package query

// functionSchemas are the schemas that a function may be called in: those that
// the parser itself writes.
var functionSchemas = map[string]bool{"": true, "main": true, "pg_catalog": true}

// allowedTableFunctions are the functions that may stand in FROM. All others are
// refused, whatever an upgrade of DuckDB brings.
var allowedTableFunctions = map[string]bool{
	"range": true, "generate_series": true, "unnest": true, "json_each": true, "json_tree": true,
	"repeat": true, "repeat_row": true,
}

var deniedFunctions = map[string]bool{}
