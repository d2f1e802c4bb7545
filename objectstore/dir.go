package objectstore

import (
	"context"
	"errors"
	"io"

	"gocloud.dev/blob"
)

// OpenDir opens the bucket whose objects are the files under root, making the
// directory if it is missing, and removes what an earlier process left
// half-written. One process may have it open at a time; the caller holds a
// lock.
//
// A key "a/b" is the file b in the directory a, so that a key cannot at once
// be an object and the first part of another. Keys whose parts are empty, ".",
// ".." or start with ".tmp-" are refused.
func OpenDir(d Disk, root string) (Bucket, error) {
	drv := newDirDriver(d, root)
	if err := drv.recover(); err != nil {
		return nil, err
	}
	return newDirBucket(drv), nil
}

// ViewDir opens a directory that another process may have open, for reading.
// It changes nothing on the disk, and every change is refused.
func ViewDir(d Disk, root string) (Bucket, error) {
	if _, err := d.Stat(root); err != nil {
		return nil, err
	}
	drv := newDirDriver(d, root)
	drv.readOnly = true
	return newDirBucket(drv), nil
}

// OpenDirBlob is OpenDir for callers that want the gocloud bucket itself.
func OpenDirBlob(d Disk, root string) (*blob.Bucket, error) {
	drv := newDirDriver(d, root)
	if err := drv.recover(); err != nil {
		return nil, err
	}
	return blob.NewBucket(drv), nil
}

// A dirBucket goes through gocloud for everything but ReadRange: pages are
// read thousands of times a second, and one pread on an open file is what that
// should cost.
type dirBucket struct {
	Bucket
	drv   *dirDriver
	files *fileCache
}

func newDirBucket(drv *dirDriver) *dirBucket {
	b := &dirBucket{
		Bucket: FromBlob(blob.NewBucket(drv)),
		drv:    drv,
		files:  newFileCache(drv.disk, openFiles),
	}
	drv.changed = b.files.forget
	return b
}

func (b *dirBucket) ReadRange(ctx context.Context, key string, offset int64, p []byte) error {
	if err := ctx.Err(); err != nil {
		return ioError("read", key, err)
	}
	name, err := b.drv.path(key)
	if err != nil {
		return ioError("read", key, err)
	}
	err = b.files.readAt(name, p, offset)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return ioError("read", key, b.drv.mapError(err))
}

// Close also closes the files that reads keep open.
func (b *dirBucket) Close() error { return errors.Join(b.Bucket.Close(), b.files.close()) }
