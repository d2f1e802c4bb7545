package query

import (
	"context"
	"time"

	"github.com/varvedb/varve/fault"
)

// slots admits statements: so many run, so many wait, the rest is refused. More
// running statements than cores make all of them slow.
type slots struct {
	running chan struct{} // holds a token per free slot
	waiting chan struct{} // holds a token per waiting statement
}

func newSlots(running, queued int) *slots {
	s := &slots{running: make(chan struct{}, running), waiting: make(chan struct{}, queued)}
	for range running {
		s.running <- struct{}{}
	}
	return s
}

// enter waits for a slot.
func (s *slots) enter(ctx context.Context) error {
	select {
	case <-s.running:
		return nil
	default:
	}
	select {
	case s.waiting <- struct{}{}:
	default:
		return fault.Errorf(fault.Unavailable, "too many queries: %d are running and %d are waiting", cap(s.running), cap(s.waiting))
	}
	defer func() { <-s.waiting }()
	select {
	case <-s.running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) leave() { s.running <- struct{}{} }

// drain takes all slots, for ever, and reports whether they became free in
// time.
func (s *slots) drain(timeout time.Duration) bool {
	t := time.NewTimer(timeout)
	defer t.Stop()
	for range cap(s.running) {
		select {
		case <-s.running:
		case <-t.C:
			return false
		}
	}
	return true
}
