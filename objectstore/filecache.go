package objectstore

import (
	"container/list"
	"errors"
	"io"
	"sync"
)

// openFiles is how many files a directory bucket keeps open for reading: far
// below the usual limit of 1024 descriptors, well above the files that a few
// parallel queries touch at a time.
const openFiles = 256

// A fileCache keeps the most recently read files open. Objects are immutable,
// so an open file stays right until its name is removed or replaced; forget
// is called after that.
type fileCache struct {
	disk Disk
	max  int

	mu struct {
		sync.Mutex
		byName map[string]*openFile
		recent list.List // of *openFile, most recently used first
		closed bool
	}
}

// An openFile enters the cache before it is opened. A reader that finds it
// there waits for the opener, and a forget that comes after the name was
// removed is sure to find any entry that was opened before.
type openFile struct {
	name string
	once sync.Once
	file File
	err  error

	// Guarded by the cache's mutex.
	element *list.Element // nil once it left the cache
	users   int
}

func newFileCache(d Disk, limit int) *fileCache {
	c := &fileCache{disk: d, max: limit}
	c.mu.byName = map[string]*openFile{}
	return c
}

// readAt fills p from the file's bytes at offset.
func (c *fileCache) readAt(name string, p []byte, offset int64) error {
	f, err := c.acquire(name)
	if err != nil {
		return err
	}
	defer c.release(f)
	f.once.Do(func() { f.file, f.err = c.disk.Open(name) })
	if f.err != nil {
		c.drop(f)
		return f.err
	}
	n, err := f.file.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	return err
}

func (c *fileCache) acquire(name string) (*openFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, errors.New("the bucket is closed")
	}
	f := c.mu.byName[name]
	if f == nil {
		f = &openFile{name: name}
		f.element = c.mu.recent.PushFront(f)
		c.mu.byName[name] = f
	} else {
		c.mu.recent.MoveToFront(f.element)
	}
	f.users++
	return f, nil
}

// release ends a use and closes the files that are over the limit, outside
// the lock.
func (c *fileCache) release(f *openFile) {
	c.mu.Lock()
	f.users--
	idle := c.idleLocked(f, nil)
	for c.mu.recent.Len() > c.max {
		oldest := c.mu.recent.Back().Value.(*openFile)
		c.removeLocked(oldest)
		idle = c.idleLocked(oldest, idle)
	}
	c.mu.Unlock()
	closeAll(idle)
}

func (c *fileCache) drop(f *openFile) {
	c.mu.Lock()
	c.removeLocked(f)
	c.mu.Unlock()
}

func (c *fileCache) removeLocked(f *openFile) {
	if f.element == nil {
		return
	}
	c.mu.recent.Remove(f.element)
	f.element = nil
	delete(c.mu.byName, f.name)
}

// idleLocked appends f's file to idle if nobody uses or can find it.
func (c *fileCache) idleLocked(f *openFile, idle []File) []File {
	if f.users == 0 && f.element == nil && f.file != nil {
		return append(idle, f.file)
	}
	return idle
}

// forget takes a file out of the cache after its name was removed or replaced.
func (c *fileCache) forget(name string) {
	c.mu.Lock()
	var idle []File
	if f := c.mu.byName[name]; f != nil {
		c.removeLocked(f)
		idle = c.idleLocked(f, nil)
	}
	c.mu.Unlock()
	closeAll(idle)
}

// close closes every file that nobody uses; the others are closed by their
// last user.
func (c *fileCache) close() error {
	c.mu.Lock()
	c.mu.closed = true
	var idle []File
	for _, f := range c.mu.byName {
		c.removeLocked(f)
		idle = c.idleLocked(f, idle)
	}
	c.mu.Unlock()
	return closeAll(idle)
}

func closeAll[C io.Closer](files []C) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
