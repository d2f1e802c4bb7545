package objectstore

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"gocloud.dev/blob/driver"
)

// isAbsent reports whether err means that there is no such object: no such
// file, or a key that goes through an object or ends at a directory.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}

// ListPaged lists objects in the order of their keys. Without a page size all
// come in one page.
func (d *dirDriver) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	l := lister{ctx: ctx, d: d, opts: opts, after: string(opts.PageToken)}
	if err := l.walk(d.root, ""); err != nil && !errors.Is(err, fs.SkipAll) {
		return nil, err
	}
	return &l.page, nil
}

type lister struct {
	ctx   context.Context // of one ListPaged call
	d     *dirDriver
	opts  *driver.ListOptions
	after string // the last key of the page before
	page  driver.ListPage
}

// walk adds the objects of a directory, whose keys start with base; it returns
// fs.SkipAll when the page is full.
func (l *lister) walk(dir, base string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	entries, err := l.d.disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) && base != "" {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	for _, e := range entries {
		key := base + keyOf(e)
		if e.IsDir() {
			if l.mayHold(key) {
				err = l.walk(path.Join(dir, e.Name()), key)
			}
		} else if strings.HasPrefix(key, l.opts.Prefix) && !strings.HasPrefix(e.Name(), tempPrefix) {
			err = l.add(key, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns an entry's part of the key. With the slash of a directory the
// entries sort as the keys below them do.
func keyOf(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// mayHold reports whether keys below a directory can belong to the page.
func (l *lister) mayHold(dirKey string) bool {
	n := min(len(dirKey), len(l.opts.Prefix))
	if dirKey[:n] != l.opts.Prefix[:n] {
		return false
	}
	return dirKey > l.after || strings.HasPrefix(l.after, dirKey)
}

func (l *lister) add(key string, e fs.DirEntry) error {
	o := &driver.ListObject{Key: key}
	if l.opts.Delimiter != "" {
		if i := strings.Index(key[len(l.opts.Prefix):], l.opts.Delimiter); i >= 0 {
			o.Key, o.IsDir = key[:len(l.opts.Prefix)+i+len(l.opts.Delimiter)], true
		}
	}
	n := len(l.page.Objects)
	if o.Key <= l.after || n > 0 && l.page.Objects[n-1].Key == o.Key {
		return nil
	}
	if l.opts.PageSize > 0 && n == l.opts.PageSize {
		l.page.NextPageToken = []byte(l.page.Objects[n-1].Key)
		return fs.SkipAll
	}
	if !o.IsDir {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		o.Size, o.ModTime = info.Size(), info.ModTime()
	}
	l.page.Objects = append(l.page.Objects, o)
	return nil
}
