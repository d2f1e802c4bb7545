package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/table"
)

const benchPayload = 300 << 10

// benchData looks like a batch of integer-valued columns: it compresses to
// about half.
func benchData() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, benchPayload)
	for i := 0; i < len(data); i += 8 {
		v := r.Uint32()
		data[i], data[i+1], data[i+2] = byte(v), byte(v>>8), byte(v>>16)
	}
	return data
}

// BenchmarkAppend is the cost of one durable record of 300 kB on the disk that
// holds the temporary directory.
func BenchmarkAppend(b *testing.B) {
	data := benchData()
	for _, appenders := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("appenders=%d", appenders), func(b *testing.B) {
			l, err := Open(objectstore.OSDisk(), filepath.ToSlash(b.TempDir()), Options{Logger: quiet})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := l.Replay(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			var sequence atomic.Uint64
			b.SetBytes(benchPayload)
			b.ReportAllocs()
			b.SetParallelism(max(1, appenders/2)) // times GOMAXPROCS, 2 on the machine this is tuned on
			if appenders == 1 {
				for b.Loop() {
					benchAppend(b, l, sequence.Add(1), data)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						benchAppend(b, l, sequence.Add(1), data)
					}
				})
			}
			s := l.Stats()
			b.ReportMetric(float64(s.Records)/float64(max(s.Groups, 1)), "records/sync")
			b.ReportMetric(float64(s.SyncTime.Microseconds())/float64(max(s.Syncs, 1)), "µs/sync")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchAppend(b *testing.B, l *Log, sequence uint64, data []byte) {
	if err := l.Append(b.Context(), Record{Region: 1, Sequence: sequence, Payload: data}); err != nil {
		b.Error(err)
		return
	}
	if sequence%500 == 0 {
		l.Flushed(1, sequence-100) // bounds the disk that is used
	}
}

// BenchmarkPlainFile is what the same bytes cost without a log: write and sync
// of as many bytes as a record takes when compressed.
func BenchmarkPlainFile(b *testing.B) {
	stored := appendRecord(nil, Record{Payload: benchData()}, S2)
	d := objectstore.OSDisk()
	name := filepath.ToSlash(b.TempDir()) + "/plain"
	f, err := d.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(benchPayload)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := f.Write(stored); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if n%400 == 399 {
			if err := errors.Join(f.Close(), d.Remove(name)); err != nil {
				b.Fatal(err)
			}
			if f, err = d.Create(name); err != nil {
				b.Fatal(err)
			}
		}
	}
	_ = f.Close()
}

// BenchmarkEncode is what the appending goroutine does.
func BenchmarkEncode(b *testing.B) {
	data := benchData()
	var buf []byte
	b.SetBytes(benchPayload)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendRecord(buf[:0], Record{Region: table.RegionID(1), Payload: data}, S2)
	}
	b.ReportMetric(float64(len(buf))/benchPayload, "ratio")
}

// BenchmarkReplay reads a log of 64 records of 300 kB.
func BenchmarkReplay(b *testing.B) {
	d, dir := objectstore.OSDisk(), filepath.ToSlash(b.TempDir())
	l, err := Open(d, dir, Options{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := l.Replay(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	data := benchData()
	for i := range uint64(64) {
		benchAppend(b, l, i+1, data)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(64 * benchPayload)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		_, err := ReadSegment(d, segmentPath(dir, 1), func(e Entry) error {
			n += len(e.Record.Payload)
			return nil
		})
		if err != nil || n != 64*benchPayload {
			b.Fatal(n, err)
		}
	}
}
