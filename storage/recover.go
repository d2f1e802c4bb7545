package storage

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/storage/walpayload"
	"github.com/varvedb/varve/table"
)

// WALDir returns the folder of the log under a data directory.
func WALDir(dataDir string) string { return path.Join(dataDir, "wal") }

// ErrCatalogBehind reports data of a table that the catalog has not created
// yet. The catalog was lost, or is older than the data. To go on would take
// that table for a dropped one, forget its logged writes, and give its files
// to the next table that is created.
var ErrCatalogBehind = errors.New("the catalog is older than the data")

func behind(id, next table.ID, where string) error {
	return fmt.Errorf("%w: there is a table %d, %s, and the catalog's next new table would be number %d; "+
		"restore the catalog's newest objects", ErrCatalogBehind, id, where, next)
}

// checkCatalog looks whether the next table that will be created has files
// already; the log is checked when it is replayed.
func (e *Engine) checkCatalog(ctx context.Context) error {
	next := e.opts.NextTable
	if next == 0 {
		return nil
	}
	prefix := fmt.Sprintf("%s/%d/", e.opts.Prefix, next)
	if next == 1 {
		prefix = e.opts.Prefix + "/" // an empty catalog: there must be no table at all
	}
	objects, err := e.opts.Bucket.List(ctx, prefix)
	if err != nil {
		return fmt.Errorf("list the files of table %d: %w", next, err)
	}
	for _, r := range groupByRegion(objects) {
		return behind(r.id.Table(), next, "with files under "+r.prefix)
	}
	return nil
}

// A recovery applies the records of the log again.
type recovery struct {
	e       *Engine
	ctx     context.Context // of Open, which this is a part of
	regions map[table.RegionID]*recovered
	skipped int64 // records of tables that are gone
	broken  int64 // records that are intact and cannot be applied
	relief  relief
}

// A recovered is one region during recovery.
type recovered struct {
	region *region // nil: its records are skipped
	info   *table.Info
	seen   roaring64.Bitmap // sequences that were applied: a record may be in the log twice
	last   uint64
}

// recover opens the log and puts its rows back into memtables. Regions that
// are not in the log stay closed.
func (e *Engine) recover(ctx context.Context) error {
	opts := e.opts.WAL
	if opts.Logger == nil {
		opts.Logger = e.opts.Logger
	}
	var err error
	if e.log, err = wal.Open(e.opts.Disk, WALDir(e.opts.DataDir), opts); err != nil {
		return err
	}
	rec := &recovery{e: e, ctx: ctx, regions: make(map[table.RegionID]*recovered)}
	report, err := e.log.Replay(ctx, rec.record)
	if err != nil {
		return errors.Join(err, e.log.Close())
	}
	rec.finish(report)
	return nil
}

func (rec *recovery) record(r wal.Record) error {
	to, err := rec.regionOf(r.Region)
	if err != nil {
		return err
	}
	if to.region == nil {
		rec.skipped++
		return nil
	}
	to.last = max(to.last, r.Sequence)
	if r.Sequence <= to.region.mu.version.FlushedSequence || !to.seen.CheckedAdd(r.Sequence) {
		return nil
	}
	rows, err := walpayload.Decode(r.Payload)
	if err == nil {
		err = rec.fit(to.info, rows)
	}
	if err != nil {
		rec.broken++
		rec.e.opts.Logger.Error("storage: a logged write cannot be applied and is skipped",
			"region", r.Region, "sequence", r.Sequence, "error", err)
		return nil
	}
	if rows.Len() == 0 {
		return nil
	}
	given, err := givenWindow(to.info)
	if err != nil {
		given = 0
	}
	to.region.mu.Lock()
	to.region.applyLocked(to.info, given.Nanoseconds(), rows, r.Sequence)
	to.region.mu.Unlock()
	return rec.relieve(r.Region)
}

// fit makes logged rows fit the table as it is now: fields that were dropped
// since are left out. Rows that contradict themselves are refused.
func (rec *recovery) fit(info *table.Info, rows *table.Rows) error {
	kept := rows.Fields[:0]
	for _, f := range rows.Fields {
		if c := info.Schema.Column(f.ID); c != nil {
			kept = append(kept, f)
		}
	}
	rows.Fields = kept
	if err := checkRows(info, 0, rows); err != nil {
		return err
	}
	return checkKeys(info, &rows.Keys)
}

// checkKeys refuses keys that cannot be taken apart.
func checkKeys(info *table.Info, keys *table.Keys) error {
	var r table.KeyReader
	tags := info.Schema.Tags()
	for i := range keys.Len() {
		r.Reset(keys.Key(i))
		for _, tag := range tags {
			switch tag.Type.Layout() {
			case table.Ints, table.Bools:
				r.Int(tag.Type)
			case table.Floats:
				r.Float()
			default:
				r.Bytes()
			}
		}
		if r.Err() != nil {
			return r.Err()
		}
		if r.More() {
			return fmt.Errorf("a series key has more tags than the table, which has %d", len(tags))
		}
	}
	return nil
}

// regionOf opens the region of a record. A table that the resolver does not
// know has been dropped, and its records are skipped.
func (rec *recovery) regionOf(id table.RegionID) (*recovered, error) {
	if to, ok := rec.regions[id]; ok {
		return to, nil
	}
	to := &recovered{}
	rec.regions[id] = to
	info, ok := rec.e.opts.Tables.TableByID(id.Table())
	if !ok {
		if next := rec.e.opts.NextTable; next != 0 && id.Table() >= next {
			return nil, behind(id.Table(), next, "the log has writes of it")
		}
		return to, nil
	}
	r, err := rec.e.region(rec.ctx, id)
	if errors.Is(err, editlog.ErrDamaged) {
		rec.e.unrecovered[id] = err
		// The other regions can be served. This one's records stay in the log.
		rec.e.opts.Logger.Error("storage: a region's manifest is damaged; its writes stay in the log", "region", id, "error", err)
		return to, nil
	}
	if err != nil {
		return nil, err
	}
	rec.e.log.Flushed(id, r.mu.version.FlushedSequence)
	to.region, to.info, to.last = r, info, r.mu.version.FlushedSequence
	return to, nil
}

// finish continues the sequences after the last one that the log knows.
func (rec *recovery) finish(report wal.Report) {
	for _, d := range append(report.Damage, report.Torn...) {
		if to := rec.regions[d.Region]; d.HeaderIntact && to != nil {
			to.last = max(to.last, d.Sequence)
		}
	}
	for id, to := range rec.regions {
		if to.region == nil {
			if _, ok := rec.e.opts.Tables.TableByID(id.Table()); !ok {
				rec.e.log.Forget(id)
			}
			continue
		}
		to.region.mu.Lock()
		to.region.mu.assigned, to.region.mu.applied = to.last, to.last
		to.region.mu.Unlock()
	}
	rec.e.opts.Logger.Info("storage: recovered", "segments", report.Segments, "records", report.Records,
		"damaged", len(report.Damage), "torn", len(report.Torn), "skipped", rec.skipped, "broken", rec.broken, "regions", len(rec.regions),
		"flushes", rec.relief.flushes, "peak_bytes", rec.relief.peak)
	rec.e.recovered = rec.relief
}
