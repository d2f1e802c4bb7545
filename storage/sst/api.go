package sst

import (
	"context"
	"errors"
	"io"

	"github.com/varvedb/varve/objectstore"
)

var errNotYet = errors.New("sst: being built")

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
