// Package objectstore is how Varve reaches bytes that outlive it: the local
// disk under the WAL, and the buckets (local directory, memory, S3, GCS, …)
// that hold SSTs, manifests and the catalog.
//
// Both are interfaces, so that tests can crash and fail them at any operation.
package objectstore

import (
	"errors"
	"io"
	"io/fs"
)

// A Disk is a local file system, as much of it as Varve uses. Paths are
// slash-separated and cleaned. What is not synced may be lost in a crash: a
// file's bytes without File.Sync, a created, linked, renamed or removed name
// without SyncDir of its directory.
type Disk interface {
	// Create makes a file for writing and reading; it fails with fs.ErrExist if
	// the name is taken.
	Create(path string) (File, error)
	// Open opens a file for reading.
	Open(path string) (File, error)
	// Link gives a file a second name; it fails with fs.ErrExist if the name is
	// taken. It is how a finished file appears whole under its name, once.
	Link(oldPath, newPath string) error
	// Rename gives a file another name and replaces what had it.
	Rename(oldPath, newPath string) error
	// Remove removes a file or an empty directory; fs.ErrNotExist if absent.
	Remove(path string) error
	// MkdirAll makes a directory and its parents.
	MkdirAll(path string) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(path string) ([]fs.DirEntry, error)
	// Stat describes a file or directory.
	Stat(path string) (fs.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(path string) error
	// Lock takes the exclusive lock file at path, held until the returned
	// Closer is closed or the process ends. It fails with ErrLocked if another
	// process, or this one, holds it.
	Lock(path string) (io.Closer, error)
}

// A File is an open file of a Disk.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Sync makes the bytes written so far durable.
	Sync() error
	// Size returns the current size in bytes.
	Size() (int64, error)
	// Truncate cuts the file to size.
	Truncate(size int64) error
}

// ErrLocked reports that a lock file is held.
var ErrLocked = errors.New("objectstore: locked by another process")
