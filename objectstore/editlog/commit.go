package editlog

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/varvedb/varve/objectstore"
)

// parallelDeletes bounds the requests in flight while a checkpoint cleans up.
const parallelDeletes = 8

// commit makes o the next object of the log.
func (l *Log) commit(ctx context.Context, o Object) error {
	o.Writer = l.writer
	for {
		l.attempt++
		o.Attempt, o.Number, o.Voids = l.attempt, l.version+1+uint64(l.voids), l.voids
		if o.Kind == Checkpoint {
			l.tried = o.Number
		}
		err := l.create(ctx, o)
		if errors.Is(err, objectstore.ErrExists) {
			ours, err := l.resolve(ctx, o)
			if err != nil {
				return err
			}
			if !ours { // our own failed attempt is there: step over it
				l.voids++
				continue
			}
		} else if err != nil {
			return err
		}
		if err := l.checkBase(ctx); err != nil {
			return l.outdated(ctx, o.Number, err)
		}
		l.version, l.voids = o.Number, 0
		return nil
	}
}

func (l *Log) create(ctx context.Context, o Object) error {
	data, err := EncodeObject(o)
	if err != nil {
		return err
	}
	return objectstore.Put(ctx, l.bucket, l.key(o.Number), data, true)
}

// resolve finds out whose object has o's number: o itself, whose creation was
// reported as a failure on the way here; an earlier attempt of this writer; or
// another writer's, and then this one is fenced.
func (l *Log) resolve(ctx context.Context, o Object) (itself bool, err error) {
	found, err := l.readHeader(ctx, o.Number)
	if err != nil {
		return false, err
	}
	if found.Writer != l.writer {
		l.refuse = ErrFenced
		return false, ErrFenced
	}
	return found.Attempt == o.Attempt, nil
}

// errOutdated reports that the log does not start any more where it did.
var errOutdated = errors.New("the log has moved on")

// checkBase makes sure that the log still starts at base. Who deletes objects
// begins with the bases, so as long as base is there, no number after it has
// been deleted.
func (l *Log) checkBase(ctx context.Context) error {
	if l.base.number == 0 {
		switch _, err := l.bucket.Stat(ctx, HintKey(l.prefix)); {
		case errors.Is(err, objectstore.ErrNotFound):
			return nil
		case err != nil:
			return err
		default:
			return errOutdated
		}
	}
	switch o, err := l.readHeader(ctx, l.base.number); {
	case errors.Is(err, objectstore.ErrNotFound):
		return errOutdated
	case err != nil:
		return err
	case markOf(o) != l.base:
		return errOutdated
	default:
		return nil
	}
}

// outdated handles a failed check after the object number was created. If the
// log has moved on, the object lies before its start and is of no use to
// anyone; else nothing is known, and the next commit tries again.
func (l *Log) outdated(ctx context.Context, number uint64, err error) error {
	if !errors.Is(err, errOutdated) {
		return fmt.Errorf("check the start of the log: %w", err)
	}
	l.refuse = ErrFenced
	if err := l.bucket.Delete(ctx, l.key(number)); err != nil {
		return fmt.Errorf("%w; delete %s: %w", ErrFenced, l.key(number), err)
	}
	return ErrFenced
}

// clean writes the hint to the new base and deletes what lies before it. No
// number above lastBase was ever a base.
func (l *Log) clean(ctx context.Context, lastBase uint64) error {
	hint, err := EncodeObject(Object{Kind: Hint, Number: l.base.number, Writer: l.base.writer, Attempt: l.base.attempt})
	if err != nil {
		return err
	}
	if err := objectstore.Put(ctx, l.bucket, HintKey(l.prefix), hint, false); err != nil {
		return err
	}
	for ; l.oldest <= min(lastBase, l.base.number-1); l.oldest++ {
		if err := l.bucket.Delete(ctx, l.key(l.oldest)); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelDeletes)
	for n := l.oldest; n < l.base.number; n++ {
		g.Go(func() error { return l.bucket.Delete(gctx, l.key(n)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	l.oldest = l.base.number
	return nil
}
