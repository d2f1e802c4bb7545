package server

import (
	"context"
	"errors"

	"github.com/varvedb/varve/handlers"
)

// parts are the things that are open, in the order in which they were opened.
type parts []part

type part struct {
	name  string
	close func() error
}

func (p *parts) add(name string, close func() error) { *p = append(*p, part{name, close}) }

// close closes everything, last opened first.
func (p *parts) close() error {
	var errs []error
	for i := len(*p) - 1; i >= 0; i-- {
		errs = append(errs, (*p)[i].close())
	}
	*p = nil
	return errors.Join(errs...)
}

// open opens what serves the protocols.
func (s *Server) open(ctx context.Context) ([]handlers.Protocol, error) {
	return nil, ctx.Err()
}
