package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zeebo/xxh3"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/ingest/lineprotocol"
	"github.com/varvedb/varve/table"
)

// write writes what was decoded, and reports what was not.
func (in *Ingester) write(ctx context.Context, result *lineprotocol.Result) (*Report, error) {
	report := &Report{Rows: result.Rows, Dropped: result.Dropped, Errors: slices.Clone(result.Errors)}
	errs := make([]error, len(result.Tables))
	if len(errs) == 1 {
		errs[0] = in.Rows(ctx, result.Tables[0].Info, result.Tables[0].Rows)
	} else {
		var g errgroup.Group
		g.SetLimit(in.opts.ParallelWrite)
		for i, t := range result.Tables {
			g.Go(func() error {
				errs[i] = in.Rows(ctx, t.Info, t.Rows)
				return nil
			})
		}
		_ = g.Wait() // the errors are in errs
	}
	// One passing failure makes the request one to repeat: what was written
	// already will then be written again, to the same effect.
	for _, err := range errs {
		if err != nil && fault.Retryable(err) {
			return nil, err
		}
	}
	for i, err := range errs {
		if err != nil {
			n := result.Tables[i].Rows.Len()
			report.Rows -= n
			report.Dropped += n
			report.Errors = append(report.Errors, lineprotocol.LineError{Reason: err.Error()})
		}
	}
	return report, nil
}

// Rows writes rows to the regions of a table. info must be the version of the
// table that the column ids and keys in rows come from.
func (in *Ingester) Rows(ctx context.Context, info *table.Info, rows *table.Rows) error {
	var err error
	if info.Regions <= 1 {
		err = in.writer.Write(ctx, info, 0, rows)
	} else {
		err = in.writeSplit(ctx, info, rows)
	}
	switch {
	case err == nil:
		return nil
	case fault.KindOf(err) == fault.TableNotFound:
		// It was dropped since it was looked up. A repeated request finds that
		// out, and may create it.
		return fault.Errorf(fault.Unavailable, "write to table %q: it was dropped meanwhile: %w", info.Name, err)
	default:
		return fmt.Errorf("write to table %q: %w", info.Name, err)
	}
}

// writeSplit writes to several regions at once.
func (in *Ingester) writeSplit(ctx context.Context, info *table.Info, rows *table.Rows) error {
	parts := split(rows, info.Regions)
	errs := make([]error, len(parts))
	var g errgroup.Group
	g.SetLimit(in.opts.ParallelWrite)
	for region, part := range parts {
		if part == nil {
			continue
		}
		g.Go(func() error {
			errs[region] = in.writer.Write(ctx, info, uint32(region), part)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	for _, err := range errs {
		if err != nil && fault.Retryable(err) {
			return err
		}
	}
	return errors.Join(errs...)
}

// RegionOf returns the region of a table that a series belongs to. It is for
// ever the same for a key, and a key does not change when tags are added.
func RegionOf(key []byte, regions uint32) uint32 {
	return uint32(xxh3.Hash(key) % uint64(regions))
}

// split returns the rows of each region; nil if it has none.
func split(rows *table.Rows, regions uint32) []*table.Rows {
	parts := make([]*table.Rows, regions)
	regionOf := make([]uint32, rows.Keys.Len()) // by series
	indexOf := make([]uint32, rows.Keys.Len())  // its index in its part
	for i := range regionOf {
		region := RegionOf(rows.Keys.Key(i), regions)
		if parts[region] == nil {
			parts[region] = &table.Rows{Op: rows.Op}
		}
		regionOf[i] = region
		indexOf[i] = parts[region].Keys.Append(rows.Keys.Key(i), rows.Keys.Hashes[i])
	}
	selected := make([][]int, regions)
	for row, series := range rows.Series {
		part := parts[regionOf[series]]
		part.Series = append(part.Series, indexOf[series])
		part.Times = append(part.Times, rows.Times[row])
		selected[regionOf[series]] = append(selected[regionOf[series]], row)
	}
	for region, part := range parts {
		if part == nil {
			continue
		}
		for i := range rows.Fields {
			f := &rows.Fields[i]
			part.Fields = append(part.Fields, table.FieldVector{ID: f.ID, Vector: pick(&f.Vector, selected[region])})
		}
	}
	return parts
}

// pick returns the values of some rows of v.
func pick(v *table.Vector, rows []int) table.Vector {
	p := table.Vector{Type: v.Type, Len: len(rows), Dict: v.Dict}
	if v.Valid != nil {
		p.Valid = table.NewBitmap(len(rows))
		for i, row := range rows {
			if v.Valid.Get(row) {
				p.Valid.Set(i)
			}
		}
	}
	switch v.Type.Layout() {
	case table.Ints:
		p.Ints = pickFrom(v.Ints, rows)
	case table.Floats:
		p.Floats = pickFrom(v.Floats, rows)
	case table.Bools:
		p.Bools = pickFrom(v.Bools, rows)
	case table.Bytes:
		if v.Dict != nil {
			p.Codes = pickFrom(v.Codes, rows)
			break
		}
		p.Offsets = make([]uint32, 1, len(rows)+1)
		for _, row := range rows {
			p.Data = append(p.Data, v.Bytes(row)...)
			p.Offsets = append(p.Offsets, uint32(len(p.Data)))
		}
	}
	return p
}

func pickFrom[T any](from []T, rows []int) []T {
	to := make([]T, len(rows))
	for i, row := range rows {
		to[i] = from[row]
	}
	return to
}
