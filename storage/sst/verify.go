package sst

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// Verify reads the whole file and checks every checksum, the order and the
// number of rows, and that they agree with meta. A failed check is *Damaged.
func Verify(ctx context.Context, bucket objectstore.Bucket, key string, meta Meta) (err error) {
	r, err := Open(ctx, bucket, key, meta, nil, 0)
	if err != nil {
		return err
	}
	defer r.guard(0, &err)
	head := make([]byte, len(magic))
	if err := r.read(ctx, 0, head); err != nil {
		return err
	}
	if string(head) != magic {
		return r.damaged(0, fmt.Errorf("file does not begin with %s", magic))
	}
	if err := r.verifyExtents(); err != nil {
		return err
	}
	v := verifier{r: r, found: Meta{Times: table.TimeRange{Min: 1, Max: 0}}}
	if v.series, err = r.Series(ctx, new(table.ScanStats)); err != nil {
		return err
	}
	for g := range r.footer.groups {
		if err := r.verifyPages(ctx, g); err != nil {
			return err
		}
		if err := v.verifyRows(ctx, g); err != nil {
			return err
		}
	}
	return v.compare()
}

// verifyExtents checks that pages and bloom filters cover the file without
// gaps, so that every byte has a checksum.
func (r *Reader) verifyExtents() error {
	var all []extent
	for g := range r.footer.groups {
		for c := range r.footer.info.Columns {
			info, err := r.chunk(g, c)
			if err != nil {
				return err
			}
			for _, p := range info.pages {
				all = append(all, p.extent)
			}
			all = append(all, info.dict, info.bloom)
		}
	}
	if s := r.footer.info.Series; s != nil {
		all = append(all, extent{offset: s.Offset, size: s.Size})
	}
	all = slices.DeleteFunc(all, func(x extent) bool { return x.size == 0 })
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.offset, b.offset) })
	at := int64(len(magic))
	for _, x := range all {
		if x.offset != at {
			break
		}
		at += int64(x.size)
	}
	if at != r.meta.TailOffset {
		return r.damaged(at, fmt.Errorf("no page begins here"))
	}
	return nil
}

// verifyPages decodes every page and bloom filter of a row group.
func (r *Reader) verifyPages(ctx context.Context, group int) error {
	g := newGroupReader(r, group, new(table.ScanStats))
	rows := []span{{0, int(r.footer.groups[group].NumRows)}}
	for at := range r.footer.info.Columns {
		if err := g.want(at, rows); err != nil {
			return err
		}
		if err := g.fetch(ctx); err != nil {
			return err
		}
		c := &g.columns[at]
		for p := range c.info.pages {
			if _, err := g.page(at, p); err != nil {
				return err
			}
		}
		*c = columnReader{} // one column at a time
		if _, err := g.bloom(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// A verifier follows the rows of a file from first to last.
type verifier struct {
	r     *Reader
	found Meta
	key   []byte
	time  int64
	seq   uint64

	series *SeriesIndex // what the file says of its series; may be nil
	have   seriesSeen
}

// A seriesSeen is the rows seen of the series number n-1 of the file.
type seriesSeen struct {
	n     uint32
	times table.TimeRange
	mixed bool
}

// verifyRows checks the order of a row group and that its description fits.
func (v *verifier) verifyRows(ctx context.Context, group int) error {
	info := &v.r.footer.info.Groups[group]
	req := run.Request{Schema: new(table.Schema), Times: table.AllTime, Identity: true, Stats: new(table.ScanStats)}
	src := v.r.Scan(req, nil, group, group+1) // keys are read from pages, to be compared with the index
	defer src.Close()
	rows, times := int64(0), table.TimeRange{Min: 1, Max: 0}
	for {
		b, err := src.Next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if rows == 0 && !bytes.Equal(b.Keys[0], info.FirstKey) {
			return v.fail("row group %d begins with series %x, not %x", group, b.Keys[0], info.FirstKey)
		}
		for s := range b.Keys {
			for i := int(b.Starts[s]); i < b.StretchEnd(s); i++ {
				if err := v.row(b, s, i); err != nil {
					return err
				}
				times = times.Union(table.TimeRange{Min: b.Times[i], Max: b.Times[i]})
			}
		}
		rows += int64(b.Len)
	}
	v.found.Times = v.found.Times.Union(times)
	if rows != info.Rows || times != info.Times || !bytes.Equal(v.key, info.LastKey) {
		return v.fail("row group %d has %d rows with times %v up to series %x, not %d, %v, %x",
			group, rows, times, v.key, info.Rows, info.Times, info.LastKey)
	}
	return nil
}

// row checks a row of stretch s against the one before.
func (v *verifier) row(b *run.Batch, s, i int) error {
	key, time, seq := b.Keys[s], b.Times[i], b.SequenceOf(i)
	f := &v.found
	oddities := f.Repeats + f.Deletes
	if f.Rows == 0 || !bytes.Equal(v.key, key) {
		if err := cmp.Or(v.endSeries(), v.beginSeries(key)); err != nil {
			return err
		}
	}
	if f.Rows == 0 {
		f.FirstKey, f.MinSequence = bytes.Clone(key), seq
	} else {
		order := cmp.Or(bytes.Compare(v.key, key), cmp.Compare(v.time, time))
		if order > 0 || order == 0 && v.seq < seq {
			return v.fail("row %d (series %x, time %d, sequence %d) comes after (%x, %d, %d)",
				f.Rows, key, time, seq, v.key, v.time, v.seq)
		}
		if order == 0 {
			f.Repeats++
		}
	}
	if b.OpOf(i) == table.Delete {
		f.Deletes++
	}
	v.have.times = v.have.times.Union(table.TimeRange{Min: time, Max: time})
	v.have.mixed = v.have.mixed || f.Repeats+f.Deletes > oddities
	f.Rows++
	f.MinSequence, f.MaxSequence = min(f.MinSequence, seq), max(f.MaxSequence, seq)
	v.key, v.time, v.seq = append(v.key[:0], key...), time, seq
	return nil
}

// endSeries compares the series seen last, if any, with what the index says of
// it.
func (v *verifier) endSeries() error {
	x, h := v.series, &v.have
	if x == nil || h.n == 0 {
		return nil
	}
	s := h.n - 1
	if uint32(v.found.Rows) != x.starts[h.n] || h.times != x.times[s] || h.mixed != x.Mixed(s) {
		return v.fail("series %d ends at row %d with times %v, and the series index says %d, %v",
			s, v.found.Rows, h.times, x.starts[h.n], x.times[s])
	}
	return nil
}

// beginSeries compares the key of the next series with that of the index.
func (v *verifier) beginSeries(key []byte) error {
	x, h := v.series, &v.have
	if x == nil {
		return nil
	}
	if int(h.n) == x.Len() || !bytes.Equal(x.AppendKey(nil, h.n), key) {
		return v.fail("series %d is %x, and not that of the series index", h.n, key)
	}
	*h = seriesSeen{n: h.n + 1, times: table.TimeRange{Min: 1, Max: 0}}
	return nil
}

// compare compares what was found with what the manifest says.
func (v *verifier) compare() error {
	if err := v.endSeries(); err != nil {
		return err
	}
	if x := v.series; x != nil && int(v.have.n) != x.Len() {
		return v.fail("there are %d series, and the series index has %d", v.have.n, x.Len())
	}
	f, m := &v.found, &v.r.meta
	if f.Rows != m.Rows || f.Times != m.Times || f.MinSequence != m.MinSequence || f.MaxSequence != m.MaxSequence ||
		f.Deletes != m.Deletes || f.Repeats != m.Repeats ||
		!bytes.Equal(f.FirstKey, m.FirstKey) || !bytes.Equal(v.key, m.LastKey) {
		f.LastKey = v.key
		return v.fail("rows are %+v, and the manifest says %+v", *f, *m)
	}
	return nil
}

func (v *verifier) fail(format string, args ...any) error {
	return v.r.damaged(v.r.meta.TailOffset, fmt.Errorf(format, args...))
}
