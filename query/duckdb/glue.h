// The few calls where one crossing from Go to C has to do the work of many.
#ifndef VARVE_GLUE_H
#define VARVE_GLUE_H

#include "duckdb.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Table functions: callbacks are the exported Go functions of function.go.
duckdb_state varve_register(duckdb_connection con, const char *name, uintptr_t handle);
void varve_set_bind_data(duckdb_bind_info info, uintptr_t handle);
void varve_set_init_data(duckdb_init_info info, uintptr_t handle);

// varve_work works on a statement until it is ready for duckdb_execute_pending,
// which then returns at once, and answers true; or, after so many nanoseconds of work
// (0: no end) without that, false.
bool varve_work(duckdb_pending_result pending, int64_t nanoseconds);

// varve_help works on all statements as long as *wanted says, which varve_want
// sets.
void varve_help(duckdb_task_state state, int *wanted);
void varve_want(int *wanted, bool value);

// varve_vectors looks up the n vectors of a chunk and their data.
void varve_vectors(duckdb_data_chunk chunk, idx_t n, duckdb_vector *vectors, void **data);

// varve_validity copies the bits of n rows into the vector's mask.
void varve_validity(duckdb_vector vector, const uint64_t *bits, idx_t n);

// Values of 64 bits stored into narrower columns.
void varve_narrow_int(void *dst, const int64_t *src, idx_t n, int width);
void varve_narrow_float(float *dst, const double *src, idx_t n);

// varve_strings stores n strings, string i being data[offsets[i]:offsets[i+1]],
// into rows of the vector. bits says which rows are not null; NULL: all.
void varve_strings(duckdb_vector vector, const uint32_t *offsets, const char *data, const uint64_t *bits, idx_t n);

// varve_coded stores n strings given as codes into a dictionary.
void varve_coded(duckdb_vector vector, const uint32_t *codes, const uint32_t *offsets, const char *data,
                 const uint64_t *bits, idx_t n);

// varve_dictionary makes a vector of n strings and one null behind them.
duckdb_vector varve_dictionary(duckdb_type type, const uint32_t *offsets, const char *data, idx_t n);

// varve_slice makes vector a selection of the dictionary; null rows select
// entry null_code.
void varve_slice(duckdb_vector vector, duckdb_vector dictionary, const uint32_t *codes, const uint64_t *bits, idx_t n,
                 uint32_t null_code);

// varve_read looks up the data and validity of the n columns of a result chunk.
void varve_read(duckdb_data_chunk chunk, idx_t n, duckdb_vector *vectors, void **data, uint64_t **valid);

// varve_register_guards makes the functions of guard.c known.
duckdb_state varve_register_guards(duckdb_connection con);

#endif
