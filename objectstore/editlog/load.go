package editlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/objectstore"
)

// openAttempts bounds how often Open starts again because the writer of the
// log made a checkpoint meanwhile.
const openAttempts = 10

// load reads the log and sets the fields that describe it.
func (l *Log) load(ctx context.Context) (State, error) {
	for range openAttempts {
		start, err := l.start(ctx)
		if errors.Is(err, objectstore.ErrNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			return State{}, err
		}
		r := reader{log: l}
		if err := r.readFrom(ctx, start); err != nil {
			if errors.Is(err, errOutdated) {
				continue
			}
			return State{}, err
		}
		l.version, l.base, l.oldest, l.edits = r.version, r.base, max(r.oldest, 1), len(r.edits)
		if l.opts.Salvage != nil {
			return r.state(), nil
		}
		err = l.checkBase(ctx)
		if err == nil {
			err = l.checkEnd(ctx)
		}
		if err == nil {
			return r.state(), nil
		}
		if !errors.Is(err, errOutdated) {
			return State{}, err
		}
	}
	return State{}, fmt.Errorf("%w %d times while it was read", errOutdated, openAttempts)
}

// checkEnd makes sure that the log ends where reading it ended, and not only
// has a hole of one object there: what comes behind the hole would be lost.
func (l *Log) checkEnd(ctx context.Context) error {
	_, err := l.bucket.Stat(ctx, l.key(l.version+2))
	if errors.Is(err, objectstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = l.bucket.Stat(ctx, l.key(l.version+1))
	if err == nil {
		return errOutdated // written since
	}
	if !errors.Is(err, objectstore.ErrNotFound) {
		return err
	}
	if err := l.checkBase(ctx); err != nil {
		return err // deleted since
	}
	return fmt.Errorf("%s: %w: it is missing, and the one after it is there", l.key(l.version+1), ErrDamaged)
}

// start returns the number to read from: that of a checkpoint, or 1.
func (l *Log) start(ctx context.Context) (uint64, error) {
	if l.opts.Salvage != nil {
		return l.search(ctx)
	}
	data, err := l.bucket.Read(ctx, HintKey(l.prefix))
	switch {
	case errors.Is(err, objectstore.ErrNotFound):
		_, err := l.bucket.Stat(ctx, l.key(1))
		if errors.Is(err, objectstore.ErrNotFound) {
			return l.search(ctx) // a new log, or a lost hint
		}
		return 1, err
	case err != nil:
		return 0, err
	}
	hint, err := DecodeObject(data)
	if err == nil && hint.Kind != Hint {
		err = fmt.Errorf("%w: it is a %v", ErrDamaged, hint.Kind)
	}
	if err == nil {
		var base Object
		base, err = l.readHeader(ctx, hint.Number)
		if err == nil && (base.Kind != Checkpoint || markOf(base) != markOf(hint)) {
			err = fmt.Errorf("%w: it names another object than number %d", ErrDamaged, hint.Number)
		}
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, objectstore.ErrNotFound) {
		l.opts.Logger.WarnContext(ctx, "editlog: the hint is of no use; listing", "key", HintKey(l.prefix), "error", err)
		return l.search(ctx)
	}
	return hint.Number, err
}

// search lists the log and returns the number of its newest checkpoint, or 1.
func (l *Log) search(ctx context.Context) (uint64, error) {
	objects, err := l.bucket.List(ctx, l.prefix)
	if err != nil {
		return 0, err
	}
	var numbers []uint64
	for _, o := range objects {
		if n, ok := parseKey(l.prefix, o.Key); ok {
			numbers = append(numbers, n)
		}
	}
	if l.opts.Salvage != nil {
		l.listed = numbers
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		o, err := l.readHeader(ctx, numbers[i])
		if l.opts.Salvage == nil && err != nil {
			return 0, err
		}
		if err == nil && o.Kind == Checkpoint {
			return numbers[i], l.checkGaps(numbers[i], numbers[i:])
		}
	}
	return 1, l.checkGaps(1, numbers)
}

// listedAfter returns the smallest number above n that Salvage has listed, or
// 0.
func (l *Log) listedAfter(n uint64) uint64 {
	i, _ := slices.BinarySearch(l.listed, n+1)
	if i == len(l.listed) {
		return 0
	}
	return l.listed[i]
}

// checkGaps reports the numbers that are missing from start on.
func (l *Log) checkGaps(start uint64, numbers []uint64) error {
	want := start
	for _, n := range numbers {
		if n != want {
			err := fmt.Errorf("%w: objects %d to %d are missing", ErrDamaged, want, n-1)
			if l.opts.Salvage == nil {
				return fmt.Errorf("%s: %w", l.key(want), err)
			}
			l.opts.Salvage(l.key(want), err)
		}
		want = n + 1
	}
	return nil
}

func parseKey(prefix, key string) (uint64, bool) {
	digits, ok := strings.CutPrefix(key, prefix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && n < math.MaxUint64
}

// readHeader reads the first bytes of an object.
func (l *Log) readHeader(ctx context.Context, number uint64) (Object, error) {
	var data [headerSize]byte
	err := l.bucket.ReadRange(ctx, l.key(number), 0, data[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return Object{}, fmt.Errorf("%s: %w: it ends inside the header", l.key(number), ErrDamaged)
	}
	if err != nil {
		return Object{}, err
	}
	o, _, err := decodeHeader(data[:])
	if err == nil && o.Number != number {
		err = fmt.Errorf("%w: it says that it is number %d", ErrDamaged, o.Number)
	}
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", l.key(number), err)
	}
	return o, nil
}

// A reader collects the state while it reads on.
type reader struct {
	log        *Log
	version    uint64
	base       mark
	oldest     uint64
	checkpoint []byte
	edits      []numbered
}

type numbered struct {
	number uint64
	edit   []byte
}

// readFrom reads from the number start on until one is absent.
func (r *reader) readFrom(ctx context.Context, start uint64) error {
	for n := start; ; n++ {
		o, err := r.read(ctx, n)
		switch {
		case errors.Is(err, objectstore.ErrNotFound) && r.log.listedAfter(n) > 0:
			n = r.log.listedAfter(n) - 1 // Salvage was told of the gap
		case errors.Is(err, objectstore.ErrNotFound):
			if n == start && start > 1 {
				return errOutdated // deleted since the hint was read
			}
			r.version = n - 1
			return nil
		case errors.Is(err, ErrDamaged) && r.log.opts.Salvage != nil:
			r.log.opts.Salvage(r.log.key(n), err)
		case err != nil:
			return err
		default:
			r.add(o)
		}
	}
}

func (r *reader) read(ctx context.Context, number uint64) (Object, error) {
	data, err := r.log.bucket.Read(ctx, r.log.key(number))
	if err != nil {
		return Object{}, err
	}
	o, err := DecodeObject(data)
	if err == nil && o.Number != number {
		err = fmt.Errorf("%w: it says that it is number %d", ErrDamaged, o.Number)
	}
	if err == nil && o.Kind == Hint {
		err = fmt.Errorf("%w: it is a hint", ErrDamaged)
	}
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", r.log.key(number), err)
	}
	return o, nil
}

// add applies one object. A void checkpoint changes nothing, since a
// checkpoint says only what was so before it.
func (r *reader) add(o Object) {
	for len(r.edits) > 0 && r.edits[len(r.edits)-1].number >= o.Number-uint64(o.Voids) {
		r.edits = r.edits[:len(r.edits)-1]
	}
	if o.Kind == Edit {
		r.edits = append(r.edits, numbered{o.Number, o.Payload})
		return
	}
	r.checkpoint, r.base, r.oldest, r.edits = o.Payload, markOf(o), o.Oldest, nil
}

func (r *reader) state() State {
	s := State{Checkpoint: r.checkpoint}
	for _, e := range r.edits {
		s.Edits = append(s.Edits, e.edit)
	}
	return s
}
