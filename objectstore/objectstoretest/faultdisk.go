package objectstoretest

import (
	"context"
	"io"
	"io/fs"

	"github.com/varvedb/varve/objectstore"
)

// Disk wraps a disk.
func (f *Faults) Disk(d objectstore.Disk) objectstore.Disk { return &faultDisk{f, d} }

type faultDisk struct {
	f *Faults
	d objectstore.Disk
}

// get is do for operations with a result; a result that nobody will see, since
// the operation is reported as failed, is closed.
func get[T any](f *Faults, name, path string, op func() (T, error)) (v T, err error) {
	err = f.do(name, path, func() error {
		var err error
		v, err = op()
		return err
	})
	if err != nil {
		if c, ok := any(v).(io.Closer); ok {
			_ = c.Close()
		}
		var none T
		return none, err
	}
	return v, nil
}

func (d *faultDisk) file(op, path string, open func(string) (objectstore.File, error)) (objectstore.File, error) {
	file, err := get(d.f, op, path, func() (objectstore.File, error) { return open(path) })
	if err != nil {
		return nil, err
	}
	return &faultFile{d.f, path, file}, nil
}

func (d *faultDisk) Create(path string) (objectstore.File, error) {
	return d.file("create", path, d.d.Create)
}

func (d *faultDisk) Open(path string) (objectstore.File, error) {
	return d.file("open", path, d.d.Open)
}

func (d *faultDisk) Link(oldPath, newPath string) error {
	return d.f.do("link", newPath, func() error { return d.d.Link(oldPath, newPath) })
}

func (d *faultDisk) Rename(oldPath, newPath string) error {
	return d.f.do("rename", newPath, func() error { return d.d.Rename(oldPath, newPath) })
}

func (d *faultDisk) Remove(path string) error {
	return d.f.do("remove", path, func() error { return d.d.Remove(path) })
}

func (d *faultDisk) MkdirAll(path string) error {
	return d.f.do("mkdir", path, func() error { return d.d.MkdirAll(path) })
}

func (d *faultDisk) ReadDir(path string) ([]fs.DirEntry, error) {
	return get(d.f, "readdir", path, func() ([]fs.DirEntry, error) { return d.d.ReadDir(path) })
}

func (d *faultDisk) Stat(path string) (fs.FileInfo, error) {
	return get(d.f, "stat", path, func() (fs.FileInfo, error) { return d.d.Stat(path) })
}

func (d *faultDisk) SyncDir(path string) error {
	return d.f.do("syncdir", path, func() error { return d.d.SyncDir(path) })
}

func (d *faultDisk) Lock(path string) (io.Closer, error) {
	return get(d.f, "lock", path, func() (io.Closer, error) { return d.d.Lock(path) })
}

type faultFile struct {
	f    *Faults
	path string
	file objectstore.File
}

func (f *faultFile) Read(p []byte) (int, error) {
	return get(f.f, "read", f.path, func() (int, error) { return f.file.Read(p) })
}

func (f *faultFile) ReadAt(p []byte, offset int64) (n int, err error) {
	err = f.f.do("read", f.path, func() error {
		n, err = f.file.ReadAt(p, offset)
		return err
	})
	return n, err
}

func (f *faultFile) Write(p []byte) (int, error) { return f.f.write(f.path, p, f.file.Write) }

func (f *faultFile) Sync() error { return f.f.do("sync", f.path, f.file.Sync) }

func (f *faultFile) Size() (int64, error) { return get(f.f, "size", f.path, f.file.Size) }

func (f *faultFile) Truncate(size int64) error {
	return f.f.do("truncate", f.path, func() error { return f.file.Truncate(size) })
}

func (f *faultFile) Close() error { return f.file.Close() }

// Bucket wraps a bucket.
func (f *Faults) Bucket(b objectstore.Bucket) objectstore.Bucket { return &faultBucket{f, b} }

type faultBucket struct {
	f *Faults
	b objectstore.Bucket
}

func (b *faultBucket) Create(ctx context.Context, key string, ifAbsent bool) (objectstore.Writer, error) {
	var w objectstore.Writer
	err := b.f.do("create", key, func() (err error) {
		w, err = b.b.Create(ctx, key, ifAbsent)
		return err
	})
	if err != nil {
		if w != nil {
			w.Abort()
		}
		return nil, err
	}
	return &faultWriter{b.f, key, w}, nil
}

func (b *faultBucket) Read(ctx context.Context, key string) ([]byte, error) {
	return get(b.f, "read", key, func() ([]byte, error) { return b.b.Read(ctx, key) })
}

func (b *faultBucket) ReadRange(ctx context.Context, key string, offset int64, p []byte) error {
	return b.f.do("read", key, func() error { return b.b.ReadRange(ctx, key, offset, p) })
}

func (b *faultBucket) Stat(ctx context.Context, key string) (objectstore.Object, error) {
	return get(b.f, "stat", key, func() (objectstore.Object, error) { return b.b.Stat(ctx, key) })
}

func (b *faultBucket) List(ctx context.Context, prefix string) ([]objectstore.Object, error) {
	return get(b.f, "list", prefix, func() ([]objectstore.Object, error) { return b.b.List(ctx, prefix) })
}

func (b *faultBucket) Delete(ctx context.Context, key string) error {
	return b.f.do("delete", key, func() error { return b.b.Delete(ctx, key) })
}

func (b *faultBucket) Close() error { return b.b.Close() }

type faultWriter struct {
	f   *Faults
	key string
	w   objectstore.Writer
}

func (w *faultWriter) Write(p []byte) (int, error) { return w.f.write(w.key, p, w.w.Write) }
func (w *faultWriter) Commit() error               { return w.f.do("commit", w.key, w.w.Commit) }
func (w *faultWriter) Abort()                      { w.w.Abort() }
