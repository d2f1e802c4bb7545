package storage

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/storage/merge"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

const (
	// A flush of more than manyWindows windows writes those with fewer than
	// sparseRows rows into one file: a file costs requests and footers
	// whatever is in it.
	manyWindows = 8
	sparseRows  = 5000
)

// A sealedSet is all memtables of a region at one moment, on their way to
// files. It holds every row up to sequence that is not in files already.
type sealedSet struct {
	sequence uint64
	info     *table.Info
	width    int64
	tables   []*memtable.Table // by time; the last may be for all times
	edit     *manifest.Edit    // once all files are written; committing may be tried several times
}

// flush writes everything that was applied before the call to files.
func (r *region) flush(ctx context.Context, reason string) error {
	select {
	case r.flushing <- struct{}{}:
		return r.flushHeld(ctx, reason)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flushHeld is flush for a caller that holds the token of flushing, which it
// gives back. The flusher is woken after that: it passes over regions whose
// token is taken.
func (r *region) flushHeld(ctx context.Context, reason string) error {
	defer func() { <-r.flushing; r.e.wakeFlusher() }()
	sets := r.seal()
	if len(sets) == 0 {
		return nil
	}
	select {
	case r.e.slots <- struct{}{}:
		defer func() { <-r.e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, set := range sets {
		if err := r.flushSet(ctx, set, reason); err != nil {
			r.backOff(err)
			r.e.metrics.flushFailures.Inc()
			return fmt.Errorf("flush region %d of table %d: %w", uint32(r.id), r.id.Table(), err)
		}
	}
	return nil
}

// seal starts new memtables and returns the sets to flush, oldest first. Rows
// are applied in the order of their sequences, so the memtables hold exactly
// the rows up to the applied one.
func (r *region) seal() []*sealedSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.dropped {
		return nil
	}
	r.sealLocked()
	return slices.Clone(r.mu.sealed)
}

func (r *region) sealLocked() {
	if len(r.mu.windows) == 0 && r.mu.strays == nil {
		return
	}
	set := &sealedSet{sequence: r.mu.applied, info: r.mu.info, width: r.mu.width}
	for _, t := range r.mu.windows {
		set.tables = append(set.tables, t)
	}
	slices.SortFunc(set.tables, func(a, b *memtable.Table) int { return cmp.Compare(a.Window().Min, b.Window().Min) })
	if r.mu.strays != nil {
		set.tables = append(set.tables, r.mu.strays)
	}
	for _, t := range set.tables {
		t.Seal()
	}
	r.mu.sealed = append(r.mu.sealed, set)
	r.mu.windows, r.mu.strays, r.mu.bytes = make(map[int64]*memtable.Table), nil, 0
}

// backOff keeps the flusher away for a while.
func (r *region) backOff(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.backoff = min(max(2*r.mu.backoff, r.e.opts.FlushBackoff), time.Minute)
	r.mu.retryAt = r.e.opts.Now().Add(r.mu.backoff)
	if errors.Is(err, editlog.ErrFenced) {
		r.mu.failed = err
	}
}

// flushSet writes one set to files, enters them in the manifest, and then lets
// the log forget its rows.
func (r *region) flushSet(ctx context.Context, set *sealedSet, reason string) error {
	started := r.e.opts.Now()
	if set.edit == nil {
		if info, ok := r.e.opts.Tables.TableByID(r.id.Table()); ok && info.Schema.Version >= set.info.Schema.Version {
			set.info = info
		}
		edit, err := r.writeFiles(ctx, set)
		if err != nil {
			return err
		}
		set.edit = edit
	}
	version, err := r.manifest.Commit(ctx, set.edit)
	if err != nil {
		return err // the edit may be found after a crash, so its files stay
	}
	r.installFlushed(version, set)
	r.e.log.Flushed(r.id, set.sequence)
	r.e.metrics.flushed(reason, set.edit, r.e.opts.Now().Sub(started))
	return nil
}

// installFlushed shows the new files to readers in place of the memtables.
func (r *region) installFlushed(v *manifest.Version, set *sealedSet) {
	r.mu.Lock()
	r.installLocked(v)
	r.mu.sealed = slices.DeleteFunc(r.mu.sealed, func(s *sealedSet) bool { return s == set })
	r.mu.backoff, r.mu.retryAt = 0, time.Time{}
	r.mu.Unlock()
	r.collect()
	for _, t := range set.tables {
		t.Release()
	}
	r.e.room.signal()
}

// writeFiles writes the set's rows and returns the edit that adds them. After
// an error the files that were written are deleted as far as that is possible.
func (r *region) writeFiles(ctx context.Context, set *sealedSet) (_ *manifest.Edit, err error) {
	edit := &manifest.Edit{FlushedSequence: set.sequence, SchemaVersion: set.info.Schema.Version}
	var created []string
	defer func() {
		if err != nil {
			r.deleteFiles(created)
		}
	}()
	var sparse []*memtable.Snapshot
	rows, times := int64(0), table.TimeRange{Min: 0, Max: -1}
	for _, t := range set.tables {
		s := t.Snapshot()
		rows, times = rows+int64(s.Rows()), times.Union(s.Times())
		if len(set.tables) > manyWindows && s.Rows() < sparseRows {
			sparse = append(sparse, s)
			continue
		}
		width := set.width
		if t.Window() == table.AllTime {
			width = 0
		}
		f, err := r.writeFile(ctx, set, width, &created, s)
		if err != nil {
			return nil, err
		}
		edit.Add = append(edit.Add, f)
	}
	if len(sparse) > 0 {
		f, err := r.writeFile(ctx, set, 0, &created, sparse...)
		if err != nil {
			return nil, err
		}
		edit.Add = append(edit.Add, f)
	}
	if given, _ := givenWindow(set.info); given == 0 && r.manifest.Version().WindowNanos == 0 && rows > 0 {
		unit := set.info.Schema.TimeIndex().Type.UnitNanos()
		edit.WindowNanos = inferWindow(rows, span(times, unit)).Nanoseconds()
	}
	return edit, nil
}

// writeFile writes the rows of the snapshots as one SST.
func (r *region) writeFile(ctx context.Context, set *sealedSet, width int64, created *[]string, snapshots ...*memtable.Snapshot) (*manifest.File, error) {
	name, err := r.newFileName(set.sequence)
	if err != nil {
		return nil, err
	}
	key := sstKey(r.prefix, name)
	src := flushSource(set.info, snapshots)
	defer src.Close()
	w, err := r.e.opts.Bucket.Create(ctx, key, true)
	if err != nil {
		return nil, fmt.Errorf("create sst %s: %w", key, err)
	}
	defer w.Abort()
	*created = append(*created, name)
	meta, err := sst.Write(ctx, w, set.info.Schema, src, sst.WriteOptions{Region: r.id, SeriesRows: r.e.opts.SeriesRows})
	if err != nil {
		return nil, fmt.Errorf("write sst %s: %w", key, err)
	}
	if err := w.Commit(); err != nil {
		return nil, fmt.Errorf("commit sst %s: %w", key, err)
	}
	return &manifest.File{Name: name, Width: width, Meta: meta}, nil
}

// flushSource returns the merged rows of the snapshots. Tombstones stay, for
// they may hide rows of older files.
func flushSource(info *table.Info, snapshots []*memtable.Snapshot) run.Source {
	req := sst.Input(info.Schema)
	if len(snapshots) == 1 && (info.Merge == table.Append || snapshots[0].Unique()) {
		return snapshots[0].Source(req)
	}
	sources := make([]run.Source, len(snapshots))
	for i, s := range snapshots {
		sources[i] = s.Source(merge.SourceRequest(req))
	}
	return merge.New(sources, merge.Options{Request: req, Mode: info.Merge, KeepTombstones: true})
}

// newFileName returns a name that no file has had: sorted by age for who looks
// at the bucket, and random for the attempts that failed.
func (r *region) newFileName(sequence uint64) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(&r.e.random, b[:]); err != nil {
		return "", fmt.Errorf("make a file name: %w", err)
	}
	return fmt.Sprintf("%016x-%s.parquet", sequence, hex.EncodeToString(b[:])), nil
}

// deleteFiles removes files that no manifest names, as far as possible: what
// stays takes room and is never read.
func (r *region) deleteFiles(names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	for _, name := range names {
		if err := r.e.opts.Bucket.Delete(ctx, sstKey(r.prefix, name)); err != nil {
			r.e.opts.Logger.Warn("storage: a file that is not needed stays", "key", sstKey(r.prefix, name), "error", err)
		}
	}
}

const deleteTimeout = 30 * time.Second
