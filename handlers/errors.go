package handlers

import (
	"errors"
	"net/http"

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
