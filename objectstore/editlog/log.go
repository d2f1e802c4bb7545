// Package editlog is the numbered log of edits that manifests and the catalog
// are kept in: any state that is small, changes rarely and must never be lost
// or changed by two writers at once. It lives in a Bucket and needs nothing
// from it but create-if-absent and reads that see every completed write.
//
// The objects are <prefix>00000000000000000001, …2, …3 and so on: edits, and
// now and then a checkpoint, which holds the whole state. <prefix>current is a
// hint that names the newest checkpoint.
//
// # Committing
//
//  1. Create object n+1 if absent. Of several writers one wins; the others are
//     fenced.
//  2. Check that the log still starts where this writer thinks (the checkpoint
//     called base below still exists, and is the same one). Else another
//     writer has moved on, n+1 was free only because it had been deleted, and
//     this one is fenced too; it deletes n+1 again.
//
// # Checkpointing
//
//  1. Commit the state as object n+1, as above.
//  2. Write the hint. From here on, nobody starts before n+1.
//  3. Delete the older objects: first, in ascending order, those up to the old
//     base, so that step 2 of a stale writer's commit is sure to notice; then
//     the others.
//
// # Opening
//
//  1. Read the hint. Without one, start at number 1. If that does not exist,
//     or the hint is damaged or names a checkpoint that is gone (a slow writer
//     may have put it back), list the prefix and start at the newest
//     checkpoint.
//  2. Read on until a number is absent. A checkpoint replaces what came before.
//  3. Check the base as above; if it went meanwhile, start again.
//
// A commit that fails may have happened. The next commit finds out: if the
// number is taken by this writer's own failed object, it uses the number after
// it and says in its header that the failed one is void. So an edit that was
// refused is not part of the state, except if the process dies before its next
// commit: then the next Open may find it.
package editlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/varvedb/varve/objectstore"
)

// ErrFenced reports that another writer has written to the log. What this one
// knows of the state is outdated, and it refuses every write from then on.
var ErrFenced = errors.New("editlog: another writer has taken over")

// Options tunes a Log. A zero field means its default.
type Options struct {
	Rand   io.Reader    // where the writer's id comes from; crypto/rand
	Logger *slog.Logger // slog.Default()

	// Salvage is for tools that report and go on: it is told of each damaged
	// or missing object, which is then left out of the State. A Log opened
	// with it refuses writes. It also lists the prefix, and so finds gaps that
	// reading on from the hint cannot see.
	Salvage func(key string, err error)
}

// A State is what a log holds: the newest checkpoint and the edits after it.
type State struct {
	Checkpoint []byte // nil if there is none
	Edits      [][]byte
}

// A Log is an open log. It may be used by several goroutines, whose writes
// happen one after the other.
type Log struct {
	bucket objectstore.Bucket
	prefix string
	opts   Options
	writer WriterID

	// turn holds the one token that lets a caller write; it is a channel
	// because writing is I/O and callers may give up waiting. All fields below
	// belong to its holder.
	turn    chan struct{}
	refuse  error    // set once no write may succeed any more
	version uint64   // number of the last object that is part of the log
	base    mark     // the newest checkpoint; number 0 if there is none
	oldest  uint64   // the smallest number that may still exist
	edits   int      // number of edits since the checkpoint
	voids   uint32   // numbers after version that are taken by failed attempts
	tried   uint64   // the last number at which this writer tried a checkpoint
	attempt uint64   // number of objects that this writer tried to create
	listed  []uint64 // for Salvage, the numbers that exist
}

// A mark tells one object from every other that ever had its number.
type mark struct {
	number  uint64
	writer  WriterID
	attempt uint64
}

func markOf(o Object) mark { return mark{o.Number, o.Writer, o.Attempt} }

// Open reads the log under prefix, which is a key prefix such as
// "manifest/17/"; a log that does not exist is empty. It writes nothing.
//
// A damaged object is an error that names its key.
func Open(ctx context.Context, b objectstore.Bucket, prefix string, opts Options) (*Log, State, error) {
	if opts.Rand == nil {
		opts.Rand = rand.Reader
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	l := &Log{bucket: b, prefix: prefix, opts: opts, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	if _, err := io.ReadFull(opts.Rand, l.writer[:]); err != nil {
		return nil, State{}, fmt.Errorf("open log %s: make a writer id: %w", prefix, err)
	}
	state, err := l.load(ctx)
	if err != nil {
		return nil, State{}, fmt.Errorf("open log %s: %w", prefix, err)
	}
	if opts.Salvage != nil {
		l.refuse = errors.New("editlog: opened for salvage")
	}
	return l, state, nil
}

// Append commits an edit. After an error the edit is not part of the state,
// save as the package comment says.
func (l *Log) Append(ctx context.Context, edit []byte) error {
	release, err := l.acquire(ctx)
	if err != nil {
		return fmt.Errorf("append to log %s: %w", l.prefix, err)
	}
	defer release()
	if err := l.commit(ctx, Object{Kind: Edit, Payload: edit}); err != nil {
		return fmt.Errorf("append to log %s: %w", l.prefix, err)
	}
	l.edits++
	return nil
}

// Checkpoint commits state, which must be the state after everything appended
// so far, and then deletes what it replaces. No Append may run beside it.
// Failing to delete is not an error: the next Checkpoint tries again.
func (l *Log) Checkpoint(ctx context.Context, state []byte) error {
	release, err := l.acquire(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint log %s: %w", l.prefix, err)
	}
	defer release()
	lastBase := max(l.base.number, l.tried) // somebody may have opened the log there
	if err := l.commit(ctx, Object{Kind: Checkpoint, Oldest: l.oldest, Payload: state}); err != nil {
		return fmt.Errorf("checkpoint log %s: %w", l.prefix, err)
	}
	l.base, l.edits = mark{l.version, l.writer, l.attempt}, 0
	if err := l.clean(ctx, lastBase); err != nil {
		l.opts.Logger.WarnContext(ctx, "editlog: old objects are left behind", "prefix", l.prefix, "error", err)
	}
	return nil
}

// Version returns the number of the last object of the log, 0 if it is empty.
// Like SinceCheckpoint it waits for a write that is in progress.
func (l *Log) Version() uint64 {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	return l.version
}

// SinceCheckpoint returns the number of edits after the newest checkpoint.
func (l *Log) SinceCheckpoint() int {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	return l.edits
}

func (l *Log) acquire(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { l.turn <- struct{}{} }
	if l.refuse != nil {
		release()
		return nil, l.refuse
	}
	return release, nil
}

func (l *Log) key(number uint64) string { return Key(l.prefix, number) }

// Key returns the key of object number of the log under prefix.
func Key(prefix string, number uint64) string { return fmt.Sprintf("%s%020d", prefix, number) }

// HintKey returns the key of the hint of the log under prefix.
func HintKey(prefix string) string { return prefix + "current" }
