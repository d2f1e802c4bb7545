package objectstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// tempPrefix starts the names of files that are not objects yet.
const tempPrefix = ".tmp-"

// maxNamePart is the longest file name that common file systems take.
const maxNamePart = 255

// A dirDriver is a gocloud driver over a Disk.
//
// An object is written in these steps, so that it appears whole or not at all
// and stays:
//
//  1. its directory and missing parents are made, and their names synced;
//  2. the bytes go to a temp file in that directory, which is synced;
//  3. if-absent: link(2) gives it its name, which fails if the name is taken;
//     else rename replaces what had the name;
//  4. the directory is synced;
//  5. after a link the temp name is removed.
//
// A name that is taken is synced before the loser is told, so that "exists"
// always means a durable object. A process killed between 3 and 4 of a link
// leaves the temp name, which tells the next open to sync that directory.
//
// Attributes other than size and time are not kept.
type dirDriver struct {
	disk     Disk
	root     string
	readOnly bool
	changed  func(name string) // called after a name was removed or replaced

	mu struct {
		sync.Mutex
		durable map[string]bool // directories whose whole path is known to be durable
	}
}

// The errors that ErrorCode tells apart.
var (
	errKey         = errors.New("the key cannot be a file name")
	errReadOnly    = errors.New("the bucket is open for reading only")
	errUnsupported = errors.New("a directory bucket does not support this")
)

func newDirDriver(d Disk, root string) *dirDriver {
	drv := &dirDriver{disk: d, root: path.Clean(root), changed: func(string) {}}
	drv.mu.durable = map[string]bool{}
	return drv
}

// path returns the file of a key.
func (d *dirDriver) path(key string) (string, error) {
	for part := range strings.SplitSeq(key, "/") {
		bad := part == "" || part == "." || part == ".." || len(part) > maxNamePart ||
			strings.HasPrefix(part, tempPrefix) || strings.ContainsRune(part, 0)
		if bad {
			return "", fmt.Errorf("%w: %q", errKey, key)
		}
	}
	return path.Join(d.root, key), nil
}

// recover makes the root and removes temp files and empty directories.
func (d *dirDriver) recover() error {
	if err := MakeDir(d.disk, d.root); err != nil {
		return err
	}
	if _, err := d.clean(d.root); err != nil {
		return fmt.Errorf("clean bucket %s: %w", d.root, err)
	}
	return nil
}

// clean cleans a directory and reports whether nothing is left in it.
func (d *dirDriver) clean(dir string) (empty bool, err error) {
	entries, err := d.disk.ReadDir(dir)
	if err != nil {
		return false, err
	}
	left, synced := len(entries), false
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			empty, err := d.clean(name)
			if err != nil {
				return false, err
			}
			if !empty {
				continue
			}
		case !strings.HasPrefix(e.Name(), tempPrefix):
			continue
		case !synced: // see dirDriver: the object's name may not be durable yet
			if err := d.disk.SyncDir(dir); err != nil {
				return false, err
			}
			synced = true
		}
		if err := d.disk.Remove(name); err != nil {
			return false, err
		}
		left--
	}
	return left == 0, nil
}

// ensureDir makes a directory durable, once in the life of the driver.
func (d *dirDriver) ensureDir(dir string) error {
	if dir == d.root {
		return nil
	}
	d.mu.Lock()
	known := d.mu.durable[dir]
	d.mu.Unlock()
	if known {
		return nil
	}
	parent := path.Dir(dir)
	if err := d.ensureDir(parent); err != nil {
		return err
	}
	if err := d.disk.MkdirAll(dir); err != nil {
		return err
	}
	if err := d.disk.SyncDir(parent); err != nil {
		return err
	}
	d.mu.Lock()
	d.mu.durable[dir] = true
	d.mu.Unlock()
	return nil
}

// NewTypedWriter starts an object. The driver is told to abort by a cancelled
// ctx at Close.
func (d *dirDriver) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if d.readOnly {
		return nil, errReadOnly
	}
	if len(opts.Metadata) > 0 {
		return nil, fmt.Errorf("metadata: %w", errUnsupported)
	}
	name, err := d.path(key)
	if err != nil {
		return nil, err
	}
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	dir := path.Dir(name)
	if err := d.ensureDir(dir); err != nil {
		return nil, err
	}
	temp := path.Join(dir, tempPrefix+randomName())
	f, err := d.disk.Create(temp)
	if err != nil {
		return nil, err
	}
	return &dirWriter{ctx: ctx, d: d, f: f, temp: temp, name: name, ifAbsent: opts.IfNotExist}, nil
}

func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// A dirWriter is the temp file of an object to be.
type dirWriter struct {
	ctx            context.Context // of the whole write, as gocloud wants it
	d              *dirDriver
	f              File
	temp, name     string
	ifAbsent, fail bool
}

func (w *dirWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if err != nil {
		w.fail = true
	}
	return n, err
}

// Close makes the object appear, or removes the temp file if the context was
// cancelled or a write failed.
func (w *dirWriter) Close() error {
	err := w.ctx.Err()
	if err == nil && w.fail {
		err = errors.New("an earlier write failed")
	}
	if err == nil {
		err = w.f.Sync()
	}
	err = errors.Join(err, w.f.Close())
	if err != nil {
		_ = w.d.disk.Remove(w.temp) // else the next open does it
		return err
	}
	return w.publish()
}

func (w *dirWriter) publish() error {
	d, dir := w.d, path.Dir(w.name)
	if !w.ifAbsent {
		if err := d.disk.Rename(w.temp, w.name); err != nil {
			_ = d.disk.Remove(w.temp)
			return err
		}
		d.changed(w.name)
		return d.disk.SyncDir(dir)
	}
	taken := d.disk.Link(w.temp, w.name)
	if taken != nil && !errors.Is(taken, fs.ErrExist) {
		_ = d.disk.Remove(w.temp)
		return taken
	}
	if err := d.disk.SyncDir(dir); err != nil {
		return err // the temp file stays and tells the next open to sync
	}
	_ = d.disk.Remove(w.temp)
	return taken
}

// NewRangeReader opens an object for reading length bytes from offset, or all
// if length is negative.
func (d *dirDriver) NewRangeReader(_ context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	name, err := d.path(key)
	if err != nil {
		return nil, err
	}
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	info, err := d.disk.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	f, err := d.disk.Open(name)
	if err != nil {
		return nil, err
	}
	if rest := info.Size() - offset; length < 0 || length > rest {
		length = max(rest, 0)
	}
	return &dirReader{
		SectionReader: io.NewSectionReader(f, offset, length),
		file:          f,
		attrs:         driver.ReaderAttributes{ModTime: info.ModTime(), Size: info.Size()},
	}, nil
}

type dirReader struct {
	*io.SectionReader
	file  File
	attrs driver.ReaderAttributes
}

func (r *dirReader) Close() error                         { return r.file.Close() }
func (r *dirReader) Attributes() *driver.ReaderAttributes { return &r.attrs }
func (r *dirReader) As(any) bool                          { return false }

// Attributes describes an object.
func (d *dirDriver) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	name, err := d.path(key)
	if err != nil {
		return nil, err
	}
	info, err := d.disk.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	return &driver.Attributes{
		ModTime: info.ModTime(),
		Size:    info.Size(),
		ETag:    fmt.Sprintf("\"%x-%x\"", info.ModTime().UnixNano(), info.Size()),
	}, nil
}

// Delete removes an object, durably.
func (d *dirDriver) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	if d.readOnly {
		return errReadOnly
	}
	name, err := d.path(key)
	if err != nil {
		return err
	}
	if info, err := d.disk.Stat(name); err != nil {
		return err
	} else if info.IsDir() {
		return fs.ErrNotExist
	}
	if err := d.disk.Remove(name); err != nil {
		return err
	}
	d.changed(name)
	return d.disk.SyncDir(path.Dir(name))
}

// Copy makes dstKey an object with the bytes of srcKey.
func (d *dirDriver) Copy(ctx context.Context, dstKey, srcKey string, opts *driver.CopyOptions) (err error) {
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(func(any) bool { return false }); err != nil {
			return err
		}
	}
	r, err := d.NewRangeReader(ctx, srcKey, 0, -1, &driver.ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := d.NewTypedWriter(ctx, dstKey, "", &driver.WriterOptions{})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel()
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// SignedURL is not supported: nothing serves the directory.
func (d *dirDriver) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnsupported
}

// ErrorCode sorts errors into gocloud's codes.
func (d *dirDriver) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case isAbsent(err):
		return gcerrors.NotFound
	case errors.Is(err, fs.ErrExist):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errKey):
		return gcerrors.InvalidArgument
	case errors.Is(err, errReadOnly):
		return gcerrors.PermissionDenied
	case errors.Is(err, errUnsupported):
		return gcerrors.Unimplemented
	default:
		return gcerrors.Unknown
	}
}

// mapError turns a Disk's error into ErrNotFound where it means that.
func (d *dirDriver) mapError(err error) error {
	if isAbsent(err) {
		return ErrNotFound
	}
	return err
}

// Close does nothing: no files are held.
func (d *dirDriver) Close() error { return nil }

// As gives access to nothing.
func (d *dirDriver) As(any) bool { return false }

// ErrorAs gives access to nothing.
func (d *dirDriver) ErrorAs(error, any) bool { return false }
