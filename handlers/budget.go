package handlers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/varvedb/varve/fault"
)

// budgetWait is how long a body waits for more memory before it gets a 503.
const budgetWait = 5 * time.Second

// A bodyBudget bounds the bytes of all bodies in memory. The zero value does
// not bound.
//
// A body takes its bytes bit by bit, since its length is not known or not to
// be believed, so that bodies which hold some and wait for more could wait for
// each other. They do not, because older requests win:
//
//  1. A request that holds nothing yet waits in a queue. It is in nobody's way.
//  2. Of the requests that hold bytes at most one waits, and nobody younger
//     gets any while it does. When another would have to wait too, the younger
//     of both is refused, and gives back what it holds.
//  3. So the one that waits, waits for requests that need no more bytes, or
//     that are about to be refused.
type bodyBudget struct {
	total, limit int64

	mu struct {
		sync.Mutex
		used   int64
		claims uint64 // that were ever made
		holder *claimant
		queue  []*claimant // that hold nothing, the oldest first
	}
}

// A claim is what one request holds of a bodyBudget. Only the request's
// goroutine uses it.
type claim struct {
	budget *bodyBudget
	number uint64 // older claims have smaller ones
	held   int64
}

// A claimant is a claim that waits for n more bytes.
type claimant struct {
	*claim
	n     int64
	given chan bool // gets whether it has them, once
}

// newBodyBudget allows total bytes of bodies, each of at most limit bytes.
func newBodyBudget(total, limit int64) *bodyBudget {
	if limit <= 0 {
		limit = defaultBodyLimit
	}
	return &bodyBudget{total: total, limit: limit}
}

func (b *bodyBudget) bodyLimit() int64 {
	if b.limit > 0 {
		return b.limit
	}
	return defaultBodyLimit
}

// claim returns the claim of a new request.
func (b *bodyBudget) claim() *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.claims++
	return &claim{budget: b, number: b.mu.claims}
}

// acquire takes n more bytes, or waits for them for a while.
func (c *claim) acquire(ctx context.Context, n int64) error {
	b := c.budget
	switch {
	case b.total <= 0:
		return nil
	case c.held+n > b.total:
		return fault.Errorf(fault.TooLarge, "the body needs more than the %d bytes that all bodies may take", b.total)
	}
	w := &claimant{c, n, make(chan bool, 1)}
	b.mu.Lock()
	b.addLocked(w)
	b.mu.Unlock()
	if !w.wait(ctx) {
		return fault.Errorf(fault.Unavailable, "no memory for the body: %d bytes of bodies are being worked on", b.total)
	}
	c.held += n
	return nil
}

// wait reports whether w was given its bytes in time.
func (w *claimant) wait(ctx context.Context) bool {
	select {
	case given := <-w.given:
		return given
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	select {
	case given := <-w.given:
		return given
	case <-ctx.Done():
		return w.budget.leave(w)
	}
}

// release gives n bytes back.
func (c *claim) release(n int64) {
	b := c.budget
	if b.total <= 0 || n == 0 {
		return
	}
	c.held -= n
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used -= n
	b.giveLocked()
}

// addLocked lets w have its bytes, wait or be refused.
func (b *bodyBudget) addLocked(w *claimant) {
	first := b.mu.holder
	switch {
	case w.held == 0:
		b.mu.queue = append(b.mu.queue, w)
	case first != nil && first.number < w.number:
		w.given <- false
	case first != nil && b.mu.used+w.n > b.total:
		first.given <- false
		b.mu.holder = w
	case first != nil: // what is free is enough for the older one
		b.takeLocked(w)
	default:
		b.mu.holder = w
	}
	b.giveLocked()
}

// giveLocked gives what is free to those who wait for it.
func (b *bodyBudget) giveLocked() {
	if w := b.mu.holder; w != nil {
		if b.mu.used+w.n > b.total {
			return
		}
		b.mu.holder = nil
		b.takeLocked(w)
	}
	for len(b.mu.queue) > 0 && b.mu.used+b.mu.queue[0].n <= b.total {
		w := b.mu.queue[0]
		b.mu.queue = b.mu.queue[1:]
		b.takeLocked(w)
	}
}

func (b *bodyBudget) takeLocked(w *claimant) {
	b.mu.used += w.n
	w.given <- true
}

// leave ends w's wait, and reports whether it was given its bytes meanwhile.
func (b *bodyBudget) leave(w *claimant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case given := <-w.given:
		return given
	default:
	}
	if b.mu.holder == w {
		b.mu.holder = nil
	}
	b.mu.queue = slices.DeleteFunc(b.mu.queue, func(q *claimant) bool { return q == w })
	b.giveLocked()
	return false
}
