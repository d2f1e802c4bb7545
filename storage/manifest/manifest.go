package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
)

// checkpointEdits is the number of edits after which the whole version is
// written, so that opening a region reads few objects.
const checkpointEdits = 50

// A Manifest is the open log of one region. One Commit runs at a time; Version
// may be called at any time.
type Manifest struct {
	log    *editlog.Log
	logger *slog.Logger

	mu struct {
		sync.Mutex
		version *Version
	}
}

// Options tunes a Manifest. A zero field means its default.
type Options struct {
	Rand    io.Reader                   // crypto/rand
	Logger  *slog.Logger                // slog.Default()
	Salvage func(key string, err error) // as in editlog: for tools, which then cannot commit
}

// Open reads the manifest under prefix; one that does not exist is empty.
func Open(ctx context.Context, bucket objectstore.Bucket, prefix string, opts Options) (*Manifest, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	log, state, err := editlog.Open(ctx, bucket, prefix, editlog.Options{Rand: opts.Rand, Logger: opts.Logger, Salvage: opts.Salvage})
	if err != nil {
		return nil, fmt.Errorf("open manifest: %w", err)
	}
	v, err := replay(state)
	if err != nil && !errors.Is(err, errFormat) {
		err = fmt.Errorf("%w: %w", editlog.ErrDamaged, err) // whole objects that make no sense together
	}
	if err != nil {
		return nil, fmt.Errorf("open manifest %s: %w", prefix, err)
	}
	m := &Manifest{log: log, logger: opts.Logger}
	m.mu.version = v
	return m, nil
}

func replay(state editlog.State) (v *Version, err error) {
	v = &Version{Format: FormatVersion}
	if state.Checkpoint != nil {
		if v, err = DecodeVersion(state.Checkpoint); err != nil {
			return nil, err
		}
	}
	for i, data := range state.Edits {
		e, err := DecodeEdit(data)
		if err != nil {
			return nil, fmt.Errorf("edit %d after the checkpoint: %w", i+1, err)
		}
		if v, err = v.Apply(e); err != nil {
			return nil, fmt.Errorf("edit %d after the checkpoint: %w", i+1, err)
		}
	}
	return v, nil
}

// Version returns the newest version.
func (m *Manifest) Version() *Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.version
}

// Commit makes e durable and returns the version after it. After an error e is
// not in force, but a process that starts now may find it: files that e adds
// must stay, and the same e may be committed again.
func (m *Manifest) Commit(ctx context.Context, e *Edit) (*Version, error) {
	next, err := m.Version().Apply(e)
	if err != nil {
		return nil, fmt.Errorf("commit manifest edit: %w", err)
	}
	if err := m.log.Append(ctx, e.Encode()); err != nil {
		return nil, fmt.Errorf("commit manifest edit: %w", err)
	}
	m.mu.Lock()
	m.mu.version = next
	m.mu.Unlock()
	if m.log.SinceCheckpoint() >= checkpointEdits {
		// The edit is in force whatever comes of this; the next one tries again.
		if err := m.log.Checkpoint(ctx, next.Encode()); err != nil {
			m.logger.WarnContext(ctx, "manifest: checkpoint failed", "error", err)
		}
	}
	return next, nil
}
