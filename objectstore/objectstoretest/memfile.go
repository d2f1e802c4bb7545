package objectstoretest

import (
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
	"time"
)

// A memFile is an open file of a MemDisk. Its offset is used by one goroutine
// at a time, like that of any file.
type memFile struct {
	disk     *MemDisk
	name     string
	node     *node
	writable bool
	offset   int64
	closed   atomic.Bool
}

func (f *memFile) begin(op string) (end func(), err error) {
	if f.closed.Load() {
		return nil, &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	}
	if f.node.dir {
		return nil, &fs.PathError{Op: op, Path: f.name, Err: syscall.EISDIR}
	}
	return f.disk.begin(op, f.name)
}

func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	end, err := f.begin("read")
	if err != nil {
		return 0, err
	}
	defer end()
	if len(p) == 0 {
		return 0, nil
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EINVAL}
	}
	if offset >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	end, err := f.beginWrite("write")
	if err != nil {
		return 0, err
	}
	defer end()
	n := f.node
	if f.offset < int64(len(n.durable)) { // leave the durable bytes alone
		n.data = append([]byte(nil), n.data...)
	}
	for int64(len(n.data)) < f.offset {
		n.data = append(n.data, 0)
	}
	over := copy(n.data[f.offset:], p)
	n.data = append(n.data, p[over:]...)
	f.offset += int64(len(p))
	n.modified = time.Now()
	return len(p), nil
}

func (f *memFile) beginWrite(op string) (end func(), err error) {
	if !f.writable {
		return nil, &fs.PathError{Op: op, Path: f.name, Err: syscall.EBADF}
	}
	return f.begin(op)
}

func (f *memFile) Sync() error {
	end, err := f.begin("sync")
	if err != nil {
		return err
	}
	defer end()
	f.node.durable = f.node.data
	return nil
}

func (f *memFile) Size() (int64, error) {
	end, err := f.begin("size")
	if err != nil {
		return 0, err
	}
	defer end()
	return int64(len(f.node.data)), nil
}

func (f *memFile) Truncate(size int64) error {
	end, err := f.beginWrite("truncate")
	if err != nil {
		return err
	}
	defer end()
	data := make([]byte, size)
	copy(data, f.node.data)
	f.node.data = data
	return nil
}

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

type memInfo struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func infoOf(name string, n *node) memInfo {
	i := memInfo{name: name, size: int64(len(n.data)), mode: 0o644, modified: n.modified}
	if n.dir {
		i.mode = fs.ModeDir | 0o755
	}
	return i
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
