package objectstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// OSDisk returns the operating system's file system.
func OSDisk() Disk { return osDisk{} }

// osDisk hands out *os.File, wrapped only for Size.
type osDisk struct{}

type osFile struct{ *os.File }

// Size returns the current size in bytes.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osDisk) Open(name string) (File, error)             { return openOS(name, os.O_RDONLY) }
func (osDisk) Link(oldPath, newPath string) error         { return os.Link(oldPath, newPath) }
func (osDisk) Rename(oldPath, newPath string) error       { return os.Rename(oldPath, newPath) }
func (osDisk) Remove(name string) error                   { return os.Remove(name) }
func (osDisk) MkdirAll(name string) error                 { return os.MkdirAll(name, 0o755) }
func (osDisk) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osDisk) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

func (osDisk) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// Lock takes a flock, which the kernel drops when the process ends, so that a
// killed server leaves no stale lock. The file itself stays.
func (osDisk) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
}

// MakeDir makes a directory and its missing parents, and makes their names
// durable. The directory's own name is synced even if it exists: whoever made
// it may have died before.
func MakeDir(d Disk, dir string) error {
	missing, err := missingParents(d, dir)
	if err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	if err := d.MkdirAll(dir); err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	for _, name := range append(missing, dir) {
		if err := d.SyncDir(path.Dir(name)); err != nil {
			return fmt.Errorf("make directory %s: sync %s: %w", dir, path.Dir(name), err)
		}
	}
	return nil
}

// missingParents returns the ancestors of dir that do not exist, nearest first.
func missingParents(d Disk, dir string) ([]string, error) {
	var missing []string
	for p := path.Dir(dir); p != "." && p != "/"; p = path.Dir(p) {
		_, err := d.Stat(p)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, p)
	}
	return missing, nil
}
