package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/objectstore"
)

// The layout of a data directory. The log is where storage.WALDir says.
const (
	LockName      = "varve.lock" // held by the process that owns the directory
	BucketDir     = "data"       // SSTs, manifests, catalog: what a bucket holds elsewhere
	CatalogPrefix = "catalog/"   // of the catalog's keys in it

	pidName    = "varve.pid" // that process's id, for error messages only
	scratchDir = "tmp"       // what DuckDB spills; worthless after the process
)

// A home is a data directory that this process owns until Close.
type home struct {
	dir  string
	lock io.Closer
}

// openHome makes the directory if it is missing and locks it.
func openHome(disk objectstore.Disk, dir string) (*home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	dir = filepath.ToSlash(dir)
	if err := objectstore.MakeDir(disk, dir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	h := &home{dir: dir}
	h.lock, err = disk.Lock(h.path(LockName))
	if errors.Is(err, objectstore.ErrLocked) {
		return nil, fault.Errorf(fault.Invalid, "data directory %s is in use by another varve%s; "+
			"stop that one, or choose another directory with --data-home", dir, h.owner())
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.WriteFile(h.path(pidName), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory: %w", err), h.lock.Close())
	}
	return h, nil
}

func (h *home) path(name string) string { return h.dir + "/" + name }

// owner names the process that holds the lock, if it left its id.
func (h *home) owner() string {
	text, err := os.ReadFile(h.path(pidName))
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return fmt.Sprintf(" (process %s)", pid)
	}
	return ""
}

// Close gives the directory up.
func (h *home) Close() error {
	err := os.Remove(h.path(pidName))
	return errors.Join(err, h.lock.Close())
}
