package catalog

import (
	"context"
	"errors"

	"github.com/varvedb/varve/objectstore"
)

// Open reads the catalog kept under prefix in bucket, or starts an empty one.
// A record that is damaged is an error that names its key.
func Open(ctx context.Context, bucket objectstore.Bucket, prefix string, opts Options) (*Catalog, error) {
	return nil, errors.ErrUnsupported
}
