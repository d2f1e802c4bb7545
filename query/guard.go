package query

import "strings"

// functionSchemas are the schemas that a function may be called in: those that
// the parser itself writes.
var functionSchemas = map[string]bool{"": true, "main": true, "pg_catalog": true}

// allowedTableFunctions are the functions that may stand in FROM. All others are
// refused, whatever an upgrade of DuckDB brings.
var allowedTableFunctions = set(`
	range generate_series unnest json_each json_tree repeat repeat_row`)

// deniedFunctions are the functions, besides those in FROM, that must not be
// called: they look at or change the process, the connection, the settings or
// DuckDB's own catalog, wait, write logs, or trust bytes that a user can forge; json_pretty
// indents with the square of the depth, and the structure of deep JSON takes
// more stack than there is.
// TestFunctions fails on one that is neither here nor in bounds nor in functions_safe.txt.
var deniedFunctions = set(`
	sleep_ms pg_sleep write_log parse_duckdb_log_message setseed
	current_setting getvariable nextval currval
	current_query current_query_id current_transaction_id current_connection_id txid_current
	current_catalog current_database current_schema current_schemas in_search_path
	json_serialize_sql json_serialize_plan json_deserialize_sql
	stats vector_type get_block_size

	col_description obj_description shobj_description format_pg_type format_type map_to_pg_oid
	has_any_column_privilege has_column_privilege has_database_privilege
	has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
	has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
	has_tablespace_privilege
	inet_client_addr inet_client_port inet_server_addr inet_server_port
	pg_collation_is_visible pg_conf_load_time pg_conversion_is_visible pg_function_is_visible
	pg_get_constraintdef pg_get_expr pg_get_viewdef pg_has_role pg_is_other_temp_schema
	pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible
	pg_postmaster_start_time pg_table_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible
	pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible

	finalize combine variant_bytes_to_variant variant_to_parquet_variant variant_normalize
	json_pretty json_structure json_group_structure
 varve_depth varve_like	create_sort_key varve_add_ns varve_to_ns varve_fits varve_size varve_steps varve_width varve_works`)

// denied reports whether a function, by its lower-case name, must not be
// called.
func denied(name string) bool {
	return deniedFunctions[name] || strings.HasPrefix(name, "__internal_")
}

func set(words string) map[string]bool {
	s := map[string]bool{}
	for _, w := range strings.Fields(words) {
		s[w] = true
	}
	return s
}
