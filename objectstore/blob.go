package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

// MemBucket returns an empty bucket in memory.
func MemBucket() Bucket {
	return FromBlob(memblob.OpenBucket(&memblob.Options{NoMD5: true}))
}

// FromBlob makes a Bucket of a gocloud bucket and takes ownership of it.
// Objects are durable when the store behind it says that they are written.
func FromBlob(b *blob.Bucket) Bucket { return &blobBucket{b} }

type blobBucket struct{ b *blob.Bucket }

// ioError names the step and the object, and maps what callers react to.
func ioError(step, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		err = ErrNotFound
	}
	return fmt.Errorf("%s object %s: %w", step, key, err)
}

func (b *blobBucket) Create(ctx context.Context, key string, ifAbsent bool) (Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := b.b.NewWriter(ctx, key, &blob.WriterOptions{
		IfNotExist:                  ifAbsent,
		DisableContentTypeDetection: true,
	})
	if err != nil {
		cancel()
		return nil, ioError("create", key, err)
	}
	return &blobWriter{w: w, cancel: cancel, key: key, ifAbsent: ifAbsent}, nil
}

// A blobWriter aborts by cancelling the context that the gocloud writer was
// made with, which is gocloud's way to say so.
type blobWriter struct {
	w        *blob.Writer
	cancel   context.CancelFunc
	key      string
	ifAbsent bool
	ended    bool
}

func (w *blobWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	return n, ioError("write", w.key, err)
}

func (w *blobWriter) Commit() error {
	if w.ended {
		return fmt.Errorf("commit object %s: the writer has ended", w.key)
	}
	w.ended = true
	defer w.cancel()
	err := w.w.Close()
	if w.ifAbsent && isTaken(err) {
		return fmt.Errorf("commit object %s: %w", w.key, ErrExists)
	}
	return ioError("commit", w.key, err)
}

func isTaken(err error) bool {
	code := gcerrors.Code(err)
	return code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists
}

func (w *blobWriter) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	w.cancel()
	_ = w.w.Close() // says that the context was cancelled
}

func (b *blobBucket) Read(ctx context.Context, key string) ([]byte, error) {
	data, err := b.b.ReadAll(ctx, key)
	return data, ioError("read", key, err)
}

func (b *blobBucket) ReadRange(ctx context.Context, key string, offset int64, p []byte) error {
	r, err := b.b.NewRangeReader(ctx, key, offset, int64(len(p)), nil)
	if err != nil {
		return ioError("read", key, err)
	}
	_, err = io.ReadFull(r, p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return ioError("read", key, errors.Join(err, r.Close()))
}

func (b *blobBucket) Stat(ctx context.Context, key string) (Object, error) {
	a, err := b.b.Attributes(ctx, key)
	if err != nil {
		return Object{}, ioError("stat", key, err)
	}
	return Object{Key: key, Size: a.Size, Modified: a.ModTime}, nil
}

func (b *blobBucket) List(ctx context.Context, prefix string) ([]Object, error) {
	var objects []Object
	for it := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, ioError("list", prefix, err)
		}
		objects = append(objects, Object{Key: o.Key, Size: o.Size, Modified: o.ModTime})
	}
}

func (b *blobBucket) Delete(ctx context.Context, key string) error {
	err := b.b.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return ioError("delete", key, err)
}

func (b *blobBucket) Close() error { return b.b.Close() }
