package handlers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/varvedb/varve/fault"
)

// statusClientGone is nginx's number for a request whose client went away; it
// is only ever seen in the access log.
const statusClientGone = 499

// answers is the one map from what an error means to what clients are told:
// the HTTP status, and the code of GreptimeDB's API that its clients know.
// Agents drop what is answered with 4xx and repeat what is answered with 5xx.
var answers = [...]struct{ status, code int }{
	fault.Internal:        {http.StatusInternalServerError, 1003},
	fault.Invalid:         {http.StatusBadRequest, 1004},
	fault.Syntax:          {http.StatusBadRequest, 2000},
	fault.Plan:            {http.StatusBadRequest, 3000},
	fault.NotFound:        {http.StatusNotFound, 1004},
	fault.TableNotFound:   {http.StatusBadRequest, 4001},
	fault.DatabaseMissing: {http.StatusBadRequest, 4004},
	fault.ColumnNotFound:  {http.StatusBadRequest, 4002},
	fault.Exists:          {http.StatusBadRequest, 1004},
	fault.TableExists:     {http.StatusBadRequest, 4000},
	fault.DatabaseExists:  {http.StatusBadRequest, 4011},
	fault.ColumnExists:    {http.StatusBadRequest, 4003},
	fault.Unsupported:     {http.StatusBadRequest, 1001},
	fault.TooLarge:        {http.StatusRequestEntityTooLarge, 1004},
	fault.Denied:          {http.StatusForbidden, 7006},
	fault.Unavailable:     {http.StatusServiceUnavailable, 5000},
	fault.Exhausted:       {http.StatusServiceUnavailable, 6000}, // not 429, which common agents drop on
	fault.Cancelled:       {statusClientGone, 1005},
	fault.Timeout:         {http.StatusGatewayTimeout, 1008},
}

// Status returns the HTTP status of a kind of error.
func Status(k fault.Kind) int { return answers[k].status }

// Code returns the code of GreptimeDB's API for a kind of error.
func Code(k fault.Kind) int { return answers[k].code }

// StatusOf returns the HTTP status of an error: that of WithStatus if there is
// one in its chain, else that of its kind.
func StatusOf(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return Status(fault.KindOf(err))
}

// WithStatus gives an error a status that its kind does not have, where the
// protocol asks for one (404, 405, 415).
func WithStatus(status int, err error) error { return &statusError{status, err} }

type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// ErrStopping is the cause with which a server ends the contexts of the
// requests that its end cuts off.
var ErrStopping = fault.Errorf(fault.Unavailable, "the server is stopping")

// whoseFault gives an error its kind where the end of the request is behind
// it: a client that went away is no fault of the server, and a server that
// stops is none of the client.
func whoseFault(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil || !fault.Retryable(err):
		return err
	case errors.Is(cause, ErrStopping):
		return fmt.Errorf("%w: %w", ErrStopping, err)
	case errors.Is(cause, context.Canceled) && (fault.KindOf(err) != fault.Internal || isNetwork(err)):
		return fault.Wrap(fault.Cancelled, err)
	default:
		return err
	}
}

// isNetwork reports whether err is that of a connection, such as one that the
// answer was written to.
func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// Message returns the text of an error as a client may see it. What internal
// errors, disks and buckets say stays in the log, under the request id that
// the client gets.
func Message(r *http.Request, err error) string {
	x := exchangeOf(r)
	switch kind := fault.KindOf(err); {
	case kind == fault.Internal:
		return fmt.Sprintf("internal error, request id %s", x.id)
	case errors.Is(err, ErrStopping):
		return ErrStopping.Error()
	case fault.Retryable(err) && errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("the server's disk is full, request id %s; the request may succeed later", x.id)
	case fault.Retryable(err) && fromStorage(err):
		return fmt.Sprintf("the server's storage fails, request id %s; the request may succeed later", x.id)
	}
	text := err.Error()
	if len(x.hidden) > 1 {
		text = strings.ReplaceAll(text, x.hidden, "DATA_HOME")
	}
	return text
}

// fromStorage reports whether the text of an error comes from a disk or a
// bucket, and may hold paths and keys.
func fromStorage(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	var errno syscall.Errno
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &call) || errors.As(err, &errno) ||
		strings.Contains(err.Error(), "(code=") // gocloud.dev's errors have no type of their own
}
