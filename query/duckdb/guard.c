#include "glue.h"
#include <math.h>
#include <stdio.h>

// Functions that tell how large a value is, and that end a statement over it.
// They see a whole chunk of up to 2048 rows, since DuckDB makes the values of a
// chunk together, outside of what it counts as its memory.

static void *data_of(duckdb_data_chunk in, idx_t column) {
	return duckdb_vector_get_data(duckdb_data_chunk_get_vector(in, column));
}

static bool null_at(duckdb_data_chunk in, idx_t column, idx_t row) {
	uint64_t *bits = duckdb_vector_get_validity(duckdb_data_chunk_get_vector(in, column));
	return bits && !duckdb_validity_row_is_valid(bits, row);
}

// element_size is what a value of a type in a list is counted as. What is
// behind nested values is not looked at.
static double element_size(duckdb_logical_type list) {
	duckdb_logical_type t = duckdb_list_type_child_type(list);
	duckdb_type id = duckdb_get_type_id(t);
	duckdb_destroy_logical_type(&t);
	switch (id) {
	case DUCKDB_TYPE_VARCHAR: case DUCKDB_TYPE_BLOB: case DUCKDB_TYPE_LIST: case DUCKDB_TYPE_STRUCT:
	case DUCKDB_TYPE_MAP: case DUCKDB_TYPE_ARRAY: case DUCKDB_TYPE_UNION:
		return 64;
	default:
		return 16;
	}
}

// varve_size(x): the bytes of a value, about.
static void size_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	(void)info;
	double *sizes = duckdb_vector_get_data(out);
	idx_t n = duckdb_data_chunk_get_size(in);
	duckdb_logical_type t = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(in, 0));
	duckdb_type id = duckdb_get_type_id(t);
	double element = id == DUCKDB_TYPE_LIST ? element_size(t) : 64;
	for (idx_t i = 0; i < n; i++) {
		if (null_at(in, 0, i)) {
			sizes[i] = 1;
			continue;
		}
		switch (id) {
		case DUCKDB_TYPE_VARCHAR: case DUCKDB_TYPE_BLOB: case DUCKDB_TYPE_BIT:
			sizes[i] = 1 + (double)duckdb_string_t_length(((duckdb_string_t *)data_of(in, 0))[i]);
			break;
		case DUCKDB_TYPE_LIST: case DUCKDB_TYPE_MAP:
			sizes[i] = 16 + element * (double)((duckdb_list_entry *)data_of(in, 0))[i].length;
			break;
		case DUCKDB_TYPE_ARRAY:
			sizes[i] = 16 + element * (double)duckdb_array_type_array_size(t);
			break;
		case DUCKDB_TYPE_STRUCT:
			sizes[i] = 64 * (double)duckdb_struct_type_child_count(t);
			break;
		default:
			sizes[i] = 16;
		}
	}
	duckdb_destroy_logical_type(&t);
}

// varve_width(format): the characters that the widths in a format fill. A width
// that is an argument counts as endless.
static void width_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	(void)info;
	double *widths = duckdb_vector_get_data(out);
	duckdb_string_t *formats = data_of(in, 0);
	idx_t n = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < n; i++) {
		widths[i] = 1;
		if (null_at(in, 0, i)) {
			continue;
		}
		const char *p = duckdb_string_t_data(&formats[i]);
		uint32_t len = duckdb_string_t_length(formats[i]);
		double number = 0;
		bool percent = false, brace = false;
		for (uint32_t k = 0; k < len; k++) {
			char c = p[k];
			if (c >= '0' && c <= '9') {
				number = number * 10 + (c - '0');
				continue;
			}
			widths[i] += 1 + number;
			number = 0;
			if ((percent && c == '*') || (brace && c == '{' && p[k - 1] != '{')) {
				widths[i] = INFINITY;
			}
			percent = c == '%' || (percent && (c == '.' || c == '-' || c == '+' || c == ' ' || c == '#'));
			brace = c == '{' || (brace && c != '}');
		}
		widths[i] += number;
	}
}

// varve_depth(text): how deep brackets are nested in it, outside of quotes.
static void depth_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	(void)info;
	double *depths = duckdb_vector_get_data(out);
	duckdb_string_t *texts = data_of(in, 0);
	idx_t n = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < n; i++) {
		depths[i] = 1;
		if (null_at(in, 0, i)) {
			continue;
		}
		const char *p = duckdb_string_t_data(&texts[i]);
		const char *end = p + duckdb_string_t_length(texts[i]);
		double depth = 0;
		bool quoted = false;
		for (; p < end; p++) {
			if (quoted) {
				p += *p == '\\';
				quoted = p >= end || *p != '"';
			} else if (*p == '"') {
				quoted = true;
			} else if (*p == '[' || *p == '{') {
				depths[i] = ++depth > depths[i] ? depth : depths[i];
			} else if (*p == ']' || *p == '}') {
				depth--;
			}
		}
	}
}

// varve_like(text, pattern): the steps of matching with backtracking, which has
// as many loops over the text as there are wildcards before the last letter.
static void like_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	(void)info;
	double *steps = duckdb_vector_get_data(out);
	duckdb_string_t *texts = data_of(in, 0), *patterns = data_of(in, 1);
	idx_t n = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < n; i++) {
		steps[i] = 1;
		if (null_at(in, 0, i) || null_at(in, 1, i)) {
			continue;
		}
		const char *p = duckdb_string_t_data(&patterns[i]);
		uint32_t len = duckdb_string_t_length(patterns[i]);
		int wild = 0;
		bool before = false;
		for (uint32_t k = 0; k < len; k++) {
			bool any = p[k] == '%' || p[k] == '*';
			wild += any && !before;
			before = any;
		}
		wild -= before;
		steps[i] = pow(1 + duckdb_string_t_length(texts[i]), wild > 1 ? wild : 1);
	}
}

// steps_of counts the values from..to, of 64 bits, a step apart.
static double steps_of(double from, double to, double step) {
	double n = (to - from) / step;
	return n > 0 ? n + 1 : 1;
}

// varve_steps(from, to, step): how many values range() makes.
static void steps_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	bool times = duckdb_scalar_function_get_extra_info(info) != NULL;
	double *steps = duckdb_vector_get_data(out);
	int64_t *from = data_of(in, 0), *to = data_of(in, 1);
	idx_t n = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < n; i++) {
		steps[i] = 1;
		if (null_at(in, 0, i) || null_at(in, 1, i) || null_at(in, 2, i)) {
			continue;
		}
		double step;
		if (times) {
			duckdb_interval v = ((duckdb_interval *)data_of(in, 2))[i];
			step = (double)v.micros + 864e8 * v.days + 28 * 864e8 * v.months;
		} else {
			step = (double)((int64_t *)data_of(in, 2))[i];
		}
		if (step != 0) {
			steps[i] = steps_of((double)from[i], (double)to[i], step);
		}
	}
}

static const char *format_limit(char *text, size_t size, double n) {
	snprintf(text, size, n >= 1048576 && fmod(n, 1048576) == 0 ? "%.0f MiB" : "%.0f", fmod(n, 1048576) == 0 && n >= 1048576 ? n / 1048576 : n);
	return text;
}

// varve_fits(size, limit, name) is true, or ends the statement if a value is
// larger than the limit or all of the chunk larger than four times of it.
// varve_works is the same for steps of work.
static void fits_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	bool work = duckdb_scalar_function_get_extra_info(info) != NULL;
	bool *fit = duckdb_vector_get_data(out);
	double *sizes = data_of(in, 0), *limits = data_of(in, 1), total = 0;
	duckdb_string_t *names = data_of(in, 2);
	idx_t n = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < n; i++) {
		fit[i] = true;
		if (null_at(in, 0, i)) {
			continue;
		}
		total += sizes[i];
		bool one = !(sizes[i] <= limits[i]);
		if (!one && (total <= 4 * limits[i] || limits[i] < 1048576)) { // depths do not add up
			continue;
		}
		char text[256], limit[32];
		format_limit(limit, sizeof limit, one ? limits[i] : 4 * limits[i]);
		int len = (int)duckdb_string_t_length(names[i]);
		const char *name = duckdb_string_t_data(&names[i]);
		snprintf(text, sizeof text, work ? "%.*s() would take %.0f steps%s; the limit is %s" : "%.*s() would make %.0f bytes%s; the limit is %s",
		         len > 64 ? 64 : len, name, one ? sizes[i] : total, one ? " for one value" : " for a chunk of rows", limit);
		duckdb_scalar_function_set_error(info, text);
		return;
	}
}

static duckdb_scalar_function new_function(const char *name, duckdb_type result, const duckdb_type *args, idx_t n,
                                           duckdb_scalar_function_t call, void *extra) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(f, name);
	for (idx_t i = 0; i < n; i++) {
		duckdb_logical_type t = duckdb_create_logical_type(args[i]);
		duckdb_scalar_function_add_parameter(f, t);
		duckdb_destroy_logical_type(&t);
	}
	duckdb_logical_type t = duckdb_create_logical_type(result);
	duckdb_scalar_function_set_return_type(f, t);
	duckdb_destroy_logical_type(&t);
	duckdb_scalar_function_set_special_handling(f);
	duckdb_scalar_function_set_function(f, call);
	if (extra) {
		duckdb_scalar_function_set_extra_info(f, extra, NULL);
	}
	return f;
}

static duckdb_state register_function(duckdb_connection con, const char *name, duckdb_type result, const duckdb_type *args,
                                      idx_t n, duckdb_scalar_function_t call, void *extra) {
	duckdb_scalar_function f = new_function(name, result, args, n, call, extra);
	duckdb_state state = duckdb_register_scalar_function(con, f);
	duckdb_destroy_scalar_function(&f);
	return state;
}

duckdb_state varve_register_guards(duckdb_connection con) {
	static int set; // any address
	const duckdb_type like[] = {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_VARCHAR};
	const duckdb_type any[] = {DUCKDB_TYPE_ANY}, text[] = {DUCKDB_TYPE_VARCHAR};
	const duckdb_type fits[] = {DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_VARCHAR};
	const duckdb_type steps[][3] = {
	    {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_BIGINT},
	    {DUCKDB_TYPE_TIMESTAMP, DUCKDB_TYPE_TIMESTAMP, DUCKDB_TYPE_INTERVAL},
	    {DUCKDB_TYPE_TIMESTAMP_TZ, DUCKDB_TYPE_TIMESTAMP_TZ, DUCKDB_TYPE_INTERVAL},
	};
	duckdb_scalar_function_set overloads = duckdb_create_scalar_function_set("varve_steps");
	for (int i = 0; i < 3; i++) {
		duckdb_scalar_function f = new_function("varve_steps", DUCKDB_TYPE_DOUBLE, steps[i], 3, steps_function, i ? &set : NULL);
		duckdb_add_scalar_function_to_set(overloads, f);
		duckdb_destroy_scalar_function(&f);
	}
	duckdb_state state = duckdb_register_scalar_function_set(con, overloads);
	duckdb_destroy_scalar_function_set(&overloads);
	bool failed = state != DuckDBSuccess ||
	              register_function(con, "varve_size", DUCKDB_TYPE_DOUBLE, any, 1, size_function, NULL) != DuckDBSuccess ||
	              register_function(con, "varve_depth", DUCKDB_TYPE_DOUBLE, text, 1, depth_function, NULL) != DuckDBSuccess ||
	              register_function(con, "varve_like", DUCKDB_TYPE_DOUBLE, like, 2, like_function, NULL) != DuckDBSuccess ||
	              register_function(con, "varve_width", DUCKDB_TYPE_DOUBLE, text, 1, width_function, NULL) != DuckDBSuccess ||
	              register_function(con, "varve_fits", DUCKDB_TYPE_BOOLEAN, fits, 3, fits_function, NULL) != DuckDBSuccess ||
	              register_function(con, "varve_works", DUCKDB_TYPE_BOOLEAN, fits, 3, fits_function, &set) != DuckDBSuccess;
	return failed ? DuckDBError : DuckDBSuccess;
}
