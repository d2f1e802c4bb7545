package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/storagetest"
	"github.com/varvedb/varve/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReadersSeeWholeWrites runs writers, readers and flushes side by side.
// Each write is one row for each of its series at one time: a reader sees all
// of them or none, and everything that was acknowledged before its snapshot.
func TestReadersSeeWholeWrites(t *testing.T) {
	const writers, writes, series = 3, 60, 7
	store := storagetest.New(t, func(o *storage.Options) { o.FlushBytes, o.MemtableBytes = 64<<10, 1<<20 })
	info := storagetest.Table(1, "m", table.LastNonNull, "h String tag", "ts TimestampMillisecond time", "n Int64", "s String")
	store.Tables.Put(info)
	var acked [writers]atomic.Int64
	var wg, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for n := range writes {
				var rows [][]any
				for i := range series {
					var text any
					if n%3 > 0 {
						text = fmt.Sprint("w", w)
					}
					rows = append(rows, []any{fmt.Sprint("w", w, "-", i+n%2*series), n*1000 + w, n, text})
				}
				if err := store.Write(context.Background(), info, 0, storagetest.Rows(info, table.Put, rows...)); err != nil {
					t.Error(err)
				}
				acked[w].Store(int64(n + 1))
			}
		})
	}
	for r := range 2 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 0))
			for {
				select {
				case <-done:
					return
				default:
				}
				var before [writers]int64
				for w := range before {
					before[w] = acked[w].Load()
				}
				spec := table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{2}}
				if rng.IntN(2) == 0 {
					spec.Columns = []table.ColumnID{2, 1, 3, 4}
				}
				checkWhole(t, store, info, spec, before[:], series)
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := store.Flush(context.Background(), info); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	close(done)
	readers.Wait()
	checkWhole(t, store, info, table.ScanSpec{Times: table.AllTime, Columns: []table.ColumnID{2}}, []int64{writes, writes, writes}, series)
}

func checkWhole(t *testing.T, store *storagetest.Store, info *table.Info, spec table.ScanSpec, acked []int64, series int) {
	t.Helper()
	rows := make(map[int]int) // by time
	for _, line := range storagetest.Read(t, store, info, spec) {
		rows[atoi(line)]++
	}
	for at, n := range rows {
		if n != series {
			t.Errorf("a write of %d rows at time %d shows %d", series, at, n)
		}
	}
	for w, n := range acked {
		for i := range n {
			if rows[int(i)*1000+w] == 0 {
				t.Errorf("write %d of writer %d was acknowledged before the snapshot and is not in it", i, w)
			}
		}
	}
}
