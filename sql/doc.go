// Package sql runs the statements of Varve's dialect.
//
// Parse takes a text apart into statements, and Engine.Run runs them one after
// the other. The front end is this package's own: a tokenizer that knows just
// enough of the language to split a text, to parse the statements that DuckDB
// does not have (definitions, INSERT, SHOW, ADMIN), and to rewrite the few
// spellings in a SELECT that DuckDB's parser rejects. Everything about the
// meaning of a SELECT is left to package query.
package sql
