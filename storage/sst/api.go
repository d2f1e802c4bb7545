package sst

import (
	"context"
	"errors"
	"io"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/cache"
	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

var errNotYet = errors.New("sst: being built")

// Write writes the rows of src, which answers Input(schema), as one SST to w
// and describes it. It holds about one row group in memory. It fails if src
// has no rows or is not sorted, and does not close src.
func Write(ctx context.Context, w io.Writer, schema *table.Schema, src run.Source, opts WriteOptions) (Meta, error) {
	return Meta{}, errNotYet
}

// A Reader reads one SST. Any number of goroutines may use it. It holds the
// decoded footer and nothing else: drop it to free the memory.
type Reader struct{}

// Open reads and verifies the footer of the SST at key. The pages that scans
// decode are kept in c.
func Open(ctx context.Context, bucket objectstore.Bucket, key string, meta Meta, c *cache.Cache) (*Reader, error) {
	return nil, errNotYet
}

// Meta returns the file's description as given to Open.
func (r *Reader) Meta() Meta { return Meta{} }

// Size returns about how many bytes the Reader holds in memory.
func (r *Reader) Size() int64 { return 0 }

// A RowGroup describes one row group, the smallest unit of parallel scanning.
type RowGroup struct {
	Rows              int64
	Times             table.TimeRange
	FirstKey, LastKey []byte
}

// RowGroups returns the file's row groups in order.
func (r *Reader) RowGroups() []RowGroup { return nil }

// Scan returns the rows of row groups [first, end) that req asks for.
func (r *Reader) Scan(req run.Request, first, end int) run.Source { return nil }

// Verify reads the whole file and checks every checksum, the order and the
// number of rows, and that they agree with meta. A failed check is *Damaged.
func Verify(ctx context.Context, bucket objectstore.Bucket, key string, meta Meta) error {
	return errNotYet
}

// Describe prints a file: its schema, row groups, and column chunks with
// encodings and sizes. It needs no Meta, and so cannot verify the footer.
func Describe(ctx context.Context, bucket objectstore.Bucket, key string, w io.Writer) error {
	return errNotYet
}
