// Package objectstoretest has what tests of durable things need: a disk in
// memory that can crash, wrappers that make any operation of a disk or bucket
// fail, and the conformance suites of the two interfaces.
package objectstoretest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/varvedb/varve/objectstore"
)

// ErrCrashed is the error of every operation on a disk after its crash.
var ErrCrashed = errors.New("objectstoretest: the machine has crashed")

// A MemDisk is a disk in memory that knows what has been synced. The zero
// value is not usable; NewMemDisk makes one.
type MemDisk struct {
	mu struct {
		sync.Mutex
		root    *node
		locks   map[string]bool
		crashed bool
	}
}

// A node is a file or a directory. What is durable of it is kept beside what
// is visible.
type node struct {
	dir      bool
	modified time.Time

	data    []byte // a file's bytes
	durable []byte // those of the last Sync; shares memory with data while they agree

	names map[string]*node // a directory's entries
	saved map[string]*node // those of the last SyncDir
	log   []change         // what has changed since, in order
}

// A change of a directory happens whole or not at all, and not before those
// made earlier, as with a journal.
type change struct {
	removed string // "": none
	name    string // "": none
	node    *node
}

func (c change) apply(names map[string]*node) {
	delete(names, c.removed)
	if c.name != "" {
		names[c.name] = c.node
	}
}

func newDir() *node {
	return &node{dir: true, modified: time.Now(), names: map[string]*node{}, saved: map[string]*node{}}
}

// NewMemDisk returns an empty disk.
func NewMemDisk() *MemDisk {
	d := &MemDisk{}
	d.mu.root = newDir()
	d.mu.locks = map[string]bool{}
	return d
}

// Crash ends the machine: every operation on d fails from now on. It returns
// the disk as it is after the reboot, with exactly what was synced.
func (d *MemDisk) Crash() *MemDisk { return d.crash(nil) }

// CrashTorn is Crash, but what was not synced survives in part, as on real
// disks: of a directory's changes the first few, of a file's bytes some
// blocks, the others being what they were before or zero. The same seed keeps
// the same.
func (d *MemDisk) CrashTorn(seed uint64) *MemDisk {
	return d.crash(rand.New(rand.NewPCG(seed, 0)))
}

func (d *MemDisk) crash(r *rand.Rand) *MemDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.crashed = true
	after := NewMemDisk()
	after.mu.root = survive(d.mu.root, r, map[*node]*node{})
	return after
}

// survive copies a node as it is after a crash. A file with two names is
// copied once.
func survive(n *node, r *rand.Rand, done map[*node]*node) *node {
	if c := done[n]; c != nil {
		return c
	}
	c := &node{dir: n.dir, modified: n.modified}
	done[n] = c
	if !n.dir {
		c.data = surviveBytes(n, r)
		c.durable = c.data
		return c
	}
	names := maps.Clone(n.saved)
	if r != nil {
		for _, change := range n.log[:r.IntN(len(n.log)+1)] {
			change.apply(names)
		}
	}
	c.names = map[string]*node{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.names[name] = survive(names[name], r, done)
	}
	c.saved = maps.Clone(c.names)
	return c
}

// blockBytes is the unit in which a crash keeps or loses bytes.
const blockBytes = 512

func surviveBytes(n *node, r *rand.Rand) []byte {
	if r == nil || r.IntN(3) == 0 {
		return slices.Clone(n.durable)
	}
	if r.IntN(3) == 0 { // a clean cut
		if len(n.data) >= len(n.durable) {
			return slices.Clone(n.data[:len(n.durable)+r.IntN(len(n.data)-len(n.durable)+1)])
		}
		return slices.Clone(n.data)
	}
	size := min(len(n.data), len(n.durable))
	if len(n.data) > size {
		size += r.IntN(len(n.data) - size + 1)
	}
	out := make([]byte, size)
	copy(out, n.durable)
	for start := 0; start < size; start += blockBytes {
		if end := min(start+blockBytes, size); r.IntN(2) == 0 {
			copy(out[start:end], n.data[start:end])
		}
	}
	return out
}

// begin locks the disk for one operation.
func (d *MemDisk) begin(op, name string) (end func(), err error) {
	d.mu.Lock()
	if d.mu.crashed {
		d.mu.Unlock()
		return nil, &fs.PathError{Op: op, Path: name, Err: ErrCrashed}
	}
	return d.mu.Unlock, nil
}

func parts(name string) []string {
	name = strings.Trim(path.Clean(name), "/")
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// lookupLocked finds a node; the error is a syscall.Errno, as on a real disk.
func (d *MemDisk) lookupLocked(name string) (*node, error) {
	n := d.mu.root
	for _, part := range parts(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[part]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

func (d *MemDisk) parentLocked(name string) (dir *node, base string, err error) {
	dir, err = d.lookupLocked(path.Dir(path.Clean(name)))
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, path.Base(name), err
}

func (n *node) change(c change) {
	c.apply(n.names)
	n.log = append(n.log, c)
	n.modified = time.Now()
}

// Create makes a file.
func (d *MemDisk) Create(name string) (objectstore.File, error) {
	end, err := d.begin("create", name)
	if err != nil {
		return nil, err
	}
	defer end()
	dir, base, err := d.parentLocked(name)
	if err == nil && dir.names[base] != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	n := &node{modified: time.Now()}
	dir.change(change{name: base, node: n})
	return &memFile{disk: d, name: name, node: n, writable: true}, nil
}

// Open opens a file for reading.
func (d *MemDisk) Open(name string) (objectstore.File, error) {
	end, err := d.begin("open", name)
	if err != nil {
		return nil, err
	}
	defer end()
	n, err := d.lookupLocked(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &memFile{disk: d, name: name, node: n}, nil
}

// Link gives a file a second name.
func (d *MemDisk) Link(oldPath, newPath string) error {
	end, err := d.begin("link", newPath)
	if err != nil {
		return err
	}
	defer end()
	n, err := d.lookupLocked(oldPath)
	if err != nil {
		return &fs.PathError{Op: "link", Path: oldPath, Err: err}
	}
	dir, base, err := d.parentLocked(newPath)
	switch {
	case err != nil:
	case n.dir:
		err = syscall.EPERM
	case dir.names[base] != nil:
		err = syscall.EEXIST
	default:
		dir.change(change{name: base, node: n})
		return nil
	}
	return &fs.PathError{Op: "link", Path: newPath, Err: err}
}

// Rename gives a file another name. Between two directories it is not one
// change here, and either half may be lost.
func (d *MemDisk) Rename(oldPath, newPath string) error {
	end, err := d.begin("rename", newPath)
	if err != nil {
		return err
	}
	defer end()
	oldDir, oldBase, err := d.parentLocked(oldPath)
	if err == nil && oldDir.names[oldBase] == nil {
		err = syscall.ENOENT
	}
	if err != nil {
		return &fs.PathError{Op: "rename", Path: oldPath, Err: err}
	}
	newDir, newBase, err := d.parentLocked(newPath)
	if err == nil && newDir.names[newBase] != nil && newDir.names[newBase].dir {
		err = syscall.EISDIR
	}
	if err != nil {
		return &fs.PathError{Op: "rename", Path: newPath, Err: err}
	}
	n := oldDir.names[oldBase]
	if oldDir == newDir {
		oldDir.change(change{removed: oldBase, name: newBase, node: n})
		return nil
	}
	newDir.change(change{name: newBase, node: n})
	oldDir.change(change{removed: oldBase})
	return nil
}

// Remove removes a file or an empty directory.
func (d *MemDisk) Remove(name string) error {
	end, err := d.begin("remove", name)
	if err != nil {
		return err
	}
	defer end()
	dir, base, err := d.parentLocked(name)
	switch {
	case err != nil:
	case dir.names[base] == nil:
		err = syscall.ENOENT
	case len(dir.names[base].names) > 0:
		err = syscall.ENOTEMPTY
	default:
		dir.change(change{removed: base})
		return nil
	}
	return &fs.PathError{Op: "remove", Path: name, Err: err}
}

// MkdirAll makes a directory and its parents.
func (d *MemDisk) MkdirAll(name string) error {
	end, err := d.begin("mkdir", name)
	if err != nil {
		return err
	}
	defer end()
	n := d.mu.root
	for _, part := range parts(name) {
		child := n.names[part]
		if child == nil {
			child = newDir()
			n.change(change{name: part, node: child})
		}
		if n = child; !n.dir {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
	}
	return nil
}

// ReadDir lists a directory, sorted by name.
func (d *MemDisk) ReadDir(name string) ([]fs.DirEntry, error) {
	end, err := d.begin("readdir", name)
	if err != nil {
		return nil, err
	}
	defer end()
	n, err := d.lookupLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	var entries []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		entries = append(entries, fs.FileInfoToDirEntry(infoOf(base, n.names[base])))
	}
	return entries, nil
}

// Stat describes a file or directory.
func (d *MemDisk) Stat(name string) (fs.FileInfo, error) {
	end, err := d.begin("stat", name)
	if err != nil {
		return nil, err
	}
	defer end()
	n, err := d.lookupLocked(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return infoOf(path.Base(name), n), nil
}

// SyncDir makes the names in a directory durable.
func (d *MemDisk) SyncDir(name string) error {
	end, err := d.begin("syncdir", name)
	if err != nil {
		return err
	}
	defer end()
	n, err := d.lookupLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: err}
	}
	n.saved, n.log = maps.Clone(n.names), nil
	return nil
}

// Lock takes the lock file at name.
func (d *MemDisk) Lock(name string) (io.Closer, error) {
	end, err := d.begin("lock", name)
	if err != nil {
		return nil, err
	}
	defer end()
	dir, base, err := d.parentLocked(name)
	if err == nil && d.mu.locks[path.Clean(name)] {
		err = objectstore.ErrLocked
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	if dir.names[base] == nil {
		dir.change(change{name: base, node: &node{modified: time.Now()}})
	}
	d.mu.locks[path.Clean(name)] = true
	return &memLock{disk: d, name: path.Clean(name)}, nil
}

type memLock struct {
	disk *MemDisk
	name string
	once sync.Once
}

// Close gives the lock back.
func (l *memLock) Close() error {
	l.once.Do(func() {
		l.disk.mu.Lock()
		defer l.disk.mu.Unlock()
		delete(l.disk.mu.locks, l.name)
	})
	return nil
}
