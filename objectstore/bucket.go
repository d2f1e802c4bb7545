package objectstore

import (
	"context"
	"errors"
	"io"
	"time"
)

// A Bucket is a flat space of immutable objects. An object appears whole or
// not at all, and is durable when the call that made it returns. Keys are
// slash-separated. Safe for use by several goroutines.
type Bucket interface {
	// Create starts an object. With ifAbsent, Commit fails with ErrExists when
	// the key is taken by then; of several racing writers exactly one wins.
	Create(ctx context.Context, key string, ifAbsent bool) (Writer, error)
	// Read returns an object whole; ErrNotFound if absent.
	Read(ctx context.Context, key string) ([]byte, error)
	// ReadRange fills p with the object's bytes from offset on; an object that
	// ends before p is full is io.ErrUnexpectedEOF.
	ReadRange(ctx context.Context, key string, offset int64, p []byte) error
	// Stat describes an object; ErrNotFound if absent.
	Stat(ctx context.Context, key string) (Object, error)
	// List returns the objects whose keys start with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object; removing an absent one is no error.
	Delete(ctx context.Context, key string) error
	// Close releases the bucket's connections.
	Close() error
}

// A Writer takes the bytes of one new object. Commit or Abort ends it; Abort
// after Commit does nothing, so that it can be deferred.
type Writer interface {
	io.Writer
	Commit() error
	Abort()
}

// An Object describes one object of a Bucket.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// The errors that callers react to.
var (
	ErrNotFound = errors.New("objectstore: object not found")
	ErrExists   = errors.New("objectstore: object exists")
)

// Put writes a small object in one call.
func Put(ctx context.Context, b Bucket, key string, data []byte, ifAbsent bool) error {
	w, err := b.Create(ctx, key, ifAbsent)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Commit()
}
