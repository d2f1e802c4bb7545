// Package fault gives errors a kind where their meaning is known, so that one
// map in handlers can turn any error into a status, and callers can tell what
// must be retried from what must not.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// A Kind says what an error means to the one who made the request.
type Kind uint8

// The kinds. Internal is the zero Kind: an error that nobody marked is ours.
const (
	Internal        Kind = iota // a fault of this server; the details stay in the log
	Invalid                     // the request can never succeed as it is
	Syntax                      // the statement cannot be parsed
	Plan                        // the statement parses, but its names or types do not fit
	NotFound                    // a thing named by the request does not exist
	TableNotFound               // a table named by the request does not exist
	DatabaseMissing             // a database named by the request does not exist
	ColumnNotFound              // a column named by the request does not exist
	Exists                      // a thing to be created exists
	TableExists                 // a table to be created exists
	DatabaseExists              // a database to be created exists
	ColumnExists                // a column to be created exists
	Unsupported                 // legal, but not something this server does
	TooLarge                    // the request is over a size limit; a smaller one may pass
	Denied                      // the caller may not do this
	Unavailable                 // a passing condition; the same request may succeed later
	Exhausted                   // a resource limit was reached while the request ran
	Cancelled                   // the caller went away
	Timeout                     // the request's time ran out
)

// An Error is an error with a Kind.
type Error struct {
	Kind Kind
	Err  error
}

// Error returns the text of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf formats an error, as fmt.Errorf does, and marks it with kind.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Wrap marks err with kind; a nil err stays nil.
func Wrap(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Err: err}
}

// KindOf returns the kind of the outermost marked error in err's chain. The
// errors of an ended context are Cancelled or Timeout; any other unmarked
// error is Internal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Cancelled
	default:
		return Internal
	}
}

// Retryable reports whether the same request may succeed later. Agents drop
// data on a permanent error and repeat a retryable one, so neither may look
// like the other.
func Retryable(err error) bool {
	switch KindOf(err) {
	case Unavailable, Exhausted, Cancelled, Timeout, Internal:
		return true
	default:
		return false
	}
}
