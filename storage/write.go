package storage

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/storage/memtable"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/storage/walpayload"
	"github.com/varvedb/varve/table"
)

// maxWriteBytes bounds one batch, so that a memtable cannot jump far over its
// limits.
const maxWriteBytes = 256 << 20

// Write returns when the rows are durable and visible to every later Snapshot.
func (e *Engine) Write(ctx context.Context, info *table.Info, number uint32, rows *table.Rows) error {
	if err := checkRows(info, number, rows); err != nil || rows.Len() == 0 {
		return err
	}
	size := rowsBytes(rows)
	if size > maxWriteBytes {
		return fault.Errorf(fault.TooLarge, "a batch of %d bytes is over the limit of %d", size, maxWriteBytes)
	}
	if err := e.waitForRoom(ctx); err != nil {
		return err
	}
	r, err := e.region(ctx, info.ID.Region(number))
	if err != nil {
		return err
	}
	if err := r.write(ctx, info, rows); err != nil {
		return err
	}
	e.metrics.wrote(rows.Len(), size)
	return nil
}

// checkRows refuses rows that do not fit the table or contradict themselves:
// behind this point they are in the log for good.
func checkRows(info *table.Info, number uint32, rows *table.Rows) error {
	n := rows.Len()
	switch {
	case number >= max(info.Regions, 1):
		return fault.Errorf(fault.Invalid, "table %q has no region %d", info.Name, number)
	case len(rows.Series) != n:
		return fault.Errorf(fault.Invalid, "table %q: %d rows have %d series", info.Name, n, len(rows.Series))
	case n > math.MaxInt32/4:
		return fault.Errorf(fault.TooLarge, "a batch of %d rows is too large", n)
	case rows.Op == table.Delete && info.Merge == table.Append:
		return fault.Errorf(fault.Unsupported, "table %q keeps every row (append_mode), so that rows cannot be deleted", info.Name)
	}
	for _, s := range rows.Series {
		if int(s) >= rows.Keys.Len() {
			return fault.Errorf(fault.Invalid, "table %q: a row has series %d of %d", info.Name, s, rows.Keys.Len())
		}
	}
	for i := range rows.Fields {
		f := &rows.Fields[i]
		switch c := info.Schema.Column(f.ID); {
		case c == nil || c.Role != table.Field:
			return fault.Errorf(fault.ColumnNotFound, "table %q has no field with id %d", info.Name, f.ID)
		case c.Type != f.Type:
			return fault.Errorf(fault.Invalid, "column %q of table %q is %s, and cannot be written as %s", c.Name, info.Name, c.Type, f.Type)
		case !holdsRows(&f.Vector, n):
			return fault.Errorf(fault.Invalid, "column %q of table %q does not have %d values", c.Name, info.Name, n)
		}
	}
	return nil
}

// holdsRows reports whether v has n values.
func holdsRows(v *table.Vector, n int) bool {
	if v.Valid != nil && len(v.Valid) < (n+63)/64 {
		return false
	}
	switch v.Type.Layout() {
	case table.Ints:
		return len(v.Ints) >= n
	case table.Floats:
		return len(v.Floats) >= n
	case table.Bools:
		return len(v.Bools) >= n
	case table.Bytes:
		return v.Dict != nil && len(v.Codes) >= n || v.Dict == nil && len(v.Offsets) > n
	default:
		return false
	}
}

// rowsBytes returns about how many bytes rows will take in memory.
func rowsBytes(rows *table.Rows) int64 {
	n := int64(rows.Len())
	size := 24*n + int64(len(rows.Keys.Data))
	for i := range rows.Fields {
		v := &rows.Fields[i].Vector
		switch {
		case v.Type.Layout() != table.Bytes:
			size += 8 * n
		case v.Dict != nil:
			for _, c := range v.Codes[:n] {
				size += 4 + int64(v.Dict.Offsets[c+1]-v.Dict.Offsets[c])
			}
		default:
			size += 4*n + int64(v.Offsets[n]-v.Offsets[0])
		}
	}
	return size
}

// payloads keeps buffers for encoding.
var payloads = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledPayload = 4 << 20

// write logs the rows, waits for its turn, and applies them.
func (r *region) write(ctx context.Context, info *table.Info, rows *table.Rows) error {
	width, err := givenWindow(info)
	if err != nil {
		return err
	}
	sequence, err := r.begin()
	if err != nil {
		return err
	}
	if info.Options[skipWALOption] != "true" {
		buf := payloads.Get().(*[]byte)
		*buf = walpayload.Append((*buf)[:0], rows)
		err = r.e.log.Append(ctx, wal.Record{Region: r.id, Sequence: sequence, Payload: *buf})
		if cap(*buf) <= maxPooledPayload {
			payloads.Put(buf)
		}
	}
	r.awaitTurn(sequence)
	full := r.finish(sequence, info, width.Nanoseconds(), rows, err)
	if full {
		r.e.wakeFlusher()
	}
	return err
}

// begin takes a sequence.
func (r *region) begin() (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usableLocked(); err != nil {
		return 0, err
	}
	r.mu.assigned++
	return r.mu.assigned, nil
}

// awaitTurn returns when every write before sequence is applied or refused.
// None of them waits for anything but the log, which always answers.
func (r *region) awaitTurn(sequence uint64) {
	r.mu.Lock()
	if r.mu.applied == sequence-1 {
		r.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	r.mu.turns[sequence] = turn
	r.mu.Unlock()
	<-turn
}

// finish applies the rows, unless the log refused them, hands the turn on, and
// reports whether the region is due for a flush.
func (r *region) finish(sequence uint64, info *table.Info, widthNanos int64, rows *table.Rows, refused error) (full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused == nil && !r.mu.dropped {
		r.applyLocked(info, widthNanos, rows, sequence)
	}
	r.mu.applied = sequence
	if next, ok := r.mu.turns[sequence+1]; ok {
		delete(r.mu.turns, sequence+1)
		close(next)
	}
	return r.mu.bytes >= r.e.opts.FlushBytes || r.e.memBytes.Load() > r.e.softLimit()
}

// applyLocked puts the rows into the memtables of their windows. If one could
// become too long, all are sealed before, when they hold the rows up to the
// applied sequence.
func (r *region) applyLocked(info *table.Info, givenNanos int64, rows *table.Rows, sequence uint64) {
	if r.mu.info == nil || info.Schema.Version >= r.mu.info.Schema.Version {
		r.mu.info = info
	}
	if slices.ContainsFunc(r.memtablesLocked(), func(t *memtable.Table) bool { return t.Rows()+rows.Len() > r.e.maxTableRows }) {
		r.sealLocked()
		r.e.wakeFlusher()
	}
	width := r.widthLocked(info, givenNanos)
	if len(r.mu.windows) == 0 && r.mu.strays == nil {
		r.mu.since = r.e.opts.Now()
	}
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for _, t := range rows.Times {
		lo, hi = min(lo, t), max(hi, t)
	}
	if first := windowIndex(lo, width); first == windowIndex(hi, width) {
		r.appendLocked(first, width, rows, nil, sequence)
		return
	}
	parts := make(map[int64][]uint32)
	var order []int64 // of first appearance, so that a run can be repeated
	windows := len(r.mu.windows)
	for i, t := range rows.Times {
		w := windowIndex(t, width)
		_, open := r.mu.windows[w]
		if !open && parts[w] == nil && windows >= maxWindows {
			w = strayWindow
		}
		if parts[w] == nil {
			order = append(order, w)
			if !open && w != strayWindow {
				windows++
			}
		}
		parts[w] = append(parts[w], uint32(i))
	}
	for _, w := range order {
		r.appendLocked(w, width, rows, parts[w], sequence)
	}
}

// widthLocked returns the width of new windows. It stays the same as long as
// there are memtables: each window has one table.
func (r *region) widthLocked(info *table.Info, givenNanos int64) int64 {
	if r.mu.width != 0 && len(r.mu.windows) > 0 {
		return r.mu.width
	}
	nanos := givenNanos
	if nanos == 0 {
		nanos = r.mu.version.WindowNanos
	}
	if nanos == 0 {
		nanos = defaultWindow.Nanoseconds()
	}
	r.mu.width = max(nanos/info.Schema.TimeIndex().Type.UnitNanos(), 1)
	return r.mu.width
}

func (r *region) appendLocked(window, width int64, rows *table.Rows, sel []uint32, sequence uint64) {
	t := r.tableLocked(window, width)
	before := t.Bytes()
	t.Append(rows, sel, sequence)
	r.mu.bytes += t.Bytes() - before
}

func (r *region) tableLocked(window, width int64) *memtable.Table {
	t, ok := r.mu.windows[window]
	switch {
	case ok:
		return t
	case window == strayWindow || len(r.mu.windows) >= maxWindows:
		if r.mu.strays == nil {
			r.mu.strays = memtable.New(table.AllTime, &r.e.memBytes)
		}
		return r.mu.strays
	}
	t = memtable.New(windowRange(window, width), &r.e.memBytes)
	r.mu.windows[window] = t
	return t
}
