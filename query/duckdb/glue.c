#include "glue.h"
#include "_cgo_export.h"
#include <time.h>

static void release(void *handle) { varveRelease((uintptr_t)handle); }
static void bind_function(duckdb_bind_info info) { varveBind(info); }
static void init_function(duckdb_init_info info) { varveInit(info); }
static void init_local(duckdb_init_info info) { varveInitLocal(info); }
static void fill_function(duckdb_function_info info, duckdb_data_chunk out) { varveFill(info, out); }

duckdb_state varve_register(duckdb_connection con, const char *name, uintptr_t handle) {
	duckdb_table_function f = duckdb_create_table_function();
	duckdb_logical_type id = duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);
	duckdb_table_function_set_name(f, name);
	duckdb_table_function_add_parameter(f, id);
	duckdb_destroy_logical_type(&id);
	duckdb_table_function_set_extra_info(f, (void *)handle, release);
	duckdb_table_function_set_bind(f, bind_function);
	duckdb_table_function_set_init(f, init_function);
	duckdb_table_function_set_local_init(f, init_local);
	duckdb_table_function_set_function(f, fill_function);
	duckdb_table_function_supports_projection_pushdown(f, true);
	duckdb_state state = duckdb_register_table_function(con, f);
	duckdb_destroy_table_function(&f);
	return state;
}

void varve_set_bind_data(duckdb_bind_info info, uintptr_t handle) {
	duckdb_bind_set_bind_data(info, (void *)handle, release);
}

void varve_set_init_data(duckdb_init_info info, uintptr_t handle) {
	duckdb_init_set_init_data(info, (void *)handle, release);
}

enum { NAP_MIN = 20 * 1000, NAP_MAX = 500 * 1000 }; // nanoseconds

// nap sleeps for longer each time it finds nothing to do.
static void nap(long *length) {
	struct timespec t = {0, *length};
	nanosleep(&t, NULL);
	*length = *length * 3 / 2 < NAP_MAX ? *length * 3 / 2 : NAP_MAX;
}

// worked returns the processor time of this thread: on a busy machine, a
// statement that takes long is not yet a long statement.
static int64_t worked(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

bool varve_work(duckdb_pending_result pending, int64_t nanoseconds) {
	int64_t end = worked() + nanoseconds;
	long length = NAP_MIN;
	for (;;) {
		switch (duckdb_pending_execute_task(pending)) {
		case DUCKDB_PENDING_RESULT_NOT_READY:
			length = NAP_MIN;
			break;
		case DUCKDB_PENDING_NO_TASKS_AVAILABLE: // others do the rest
			nap(&length);
			break;
		default: // also what waits for its reader, and errors
			return true;
		}
		if (nanoseconds && worked() > end) {
			return false;
		}
	}
}

void varve_help(duckdb_task_state state, int *wanted) {
	long length = NAP_MIN;
	while (__atomic_load_n(wanted, __ATOMIC_RELAXED)) {
		if (duckdb_execute_n_tasks_state(state, 1)) {
			length = NAP_MIN;
		} else {
			nap(&length);
		}
	}
}

void varve_want(int *wanted, bool value) { __atomic_store_n(wanted, value, __ATOMIC_RELAXED); }

void varve_vectors(duckdb_data_chunk chunk, idx_t n, duckdb_vector *vectors, void **data) {
	for (idx_t i = 0; i < n; i++) {
		vectors[i] = duckdb_data_chunk_get_vector(chunk, i);
		data[i] = duckdb_vector_get_data(vectors[i]);
	}
}

void varve_validity(duckdb_vector vector, const uint64_t *bits, idx_t n) {
	duckdb_vector_ensure_validity_writable(vector);
	memcpy(duckdb_vector_get_validity(vector), bits, (n + 63) / 64 * sizeof(uint64_t));
}

void varve_narrow_int(void *dst, const int64_t *src, idx_t n, int width) {
	switch (width) {
	case 1:
		for (idx_t i = 0; i < n; i++) {
			((int8_t *)dst)[i] = (int8_t)src[i];
		}
		break;
	case 2:
		for (idx_t i = 0; i < n; i++) {
			((int16_t *)dst)[i] = (int16_t)src[i];
		}
		break;
	default:
		for (idx_t i = 0; i < n; i++) {
			((int32_t *)dst)[i] = (int32_t)src[i];
		}
	}
}

void varve_narrow_float(float *dst, const double *src, idx_t n) {
	for (idx_t i = 0; i < n; i++) {
		dst[i] = (float)src[i];
	}
}

static inline bool valid_at(const uint64_t *bits, idx_t i) { return !bits || (bits[i >> 6] >> (i & 63) & 1); }

// store writes one string into a vector whose data is dst. Short strings are
// inlined in the sixteen bytes of a string_t, so only long ones need the
// vector's heap.
static inline void store(duckdb_vector vector, duckdb_string_t *dst, idx_t i, const char *p, uint32_t len) {
	if (len <= 12) {
		memset(&dst[i], 0, sizeof(dst[i]));
		dst[i].value.inlined.length = len;
		memcpy(dst[i].value.inlined.inlined, p, len);
		return;
	}
	duckdb_unsafe_vector_assign_string_element_len(vector, i, p, len);
}

void varve_strings(duckdb_vector vector, const uint32_t *offsets, const char *data, const uint64_t *bits, idx_t n) {
	duckdb_string_t *dst = duckdb_vector_get_data(vector);
	for (idx_t i = 0; i < n; i++) {
		if (valid_at(bits, i)) {
			store(vector, dst, i, data + offsets[i], offsets[i + 1] - offsets[i]);
		}
	}
}

void varve_coded(duckdb_vector vector, const uint32_t *codes, const uint32_t *offsets, const char *data,
                 const uint64_t *bits, idx_t n) {
	duckdb_string_t *dst = duckdb_vector_get_data(vector);
	for (idx_t i = 0; i < n; i++) {
		if (!valid_at(bits, i)) {
			continue;
		}
		uint32_t c = codes[i];
		// Sorted data repeats its tags: the string before may be shared.
		if (i > 0 && codes[i - 1] == c && valid_at(bits, i - 1)) {
			dst[i] = dst[i - 1];
			continue;
		}
		store(vector, dst, i, data + offsets[c], offsets[c + 1] - offsets[c]);
	}
}

duckdb_vector varve_dictionary(duckdb_type type, const uint32_t *offsets, const char *data, idx_t n) {
	duckdb_logical_type t = duckdb_create_logical_type(type);
	idx_t size = duckdb_vector_size();
	duckdb_vector v = duckdb_create_vector(t, n + 1 < size ? size : n + 1);
	duckdb_destroy_logical_type(&t);
	varve_strings(v, offsets, data, NULL, n);
	memset((duckdb_string_t *)duckdb_vector_get_data(v) + n, 0, sizeof(duckdb_string_t));
	duckdb_vector_ensure_validity_writable(v);
	duckdb_validity_set_row_invalid(duckdb_vector_get_validity(v), n);
	return v;
}

void varve_slice(duckdb_vector vector, duckdb_vector dictionary, const uint32_t *codes, const uint64_t *bits, idx_t n,
                 uint32_t null_code) {
	duckdb_selection_vector sel = duckdb_create_selection_vector(n);
	sel_t *s = duckdb_selection_vector_get_data_ptr(sel);
	if (!bits) {
		memcpy(s, codes, n * sizeof(sel_t));
	} else {
		for (idx_t i = 0; i < n; i++) {
			s[i] = valid_at(bits, i) ? codes[i] : null_code;
		}
	}
	duckdb_vector_reference_vector(vector, dictionary);
	duckdb_slice_vector(vector, sel, n);
	duckdb_destroy_selection_vector(sel);
}

void varve_read(duckdb_data_chunk chunk, idx_t n, duckdb_vector *vectors, void **data, uint64_t **valid) {
	for (idx_t i = 0; i < n; i++) {
		vectors[i] = duckdb_data_chunk_get_vector(chunk, i);
		data[i] = duckdb_vector_get_data(vectors[i]);
		valid[i] = duckdb_vector_get_validity(vectors[i]);
	}
}
