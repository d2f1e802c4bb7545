package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/server"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/storage/walpayload"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DATA_HOME",
		Short: "Verify every checksum and the order of rows in a data directory; changes nothing",
		Long: "check reads everything in the data directory of a stopped server: the catalog, the\n" +
			"manifests, every page of every SST, and every record of the WAL. It prints what is\n" +
			"wrong, and exits with 1 if anything is.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.Context(), cmd.OutOrStdout(), filepath.ToSlash(filepath.Clean(args[0])))
		},
	}
}

// A checker walks a data directory and counts what is wrong in it.
type checker struct {
	w        io.Writer
	disk     objectstore.Disk
	bucket   objectstore.Bucket
	problems int
	files    int
	rows     int64
}

func check(ctx context.Context, w io.Writer, home string) error {
	c := &checker{w: w, disk: objectstore.OSDisk()}
	unlock, err := c.lock(path.Join(home, server.LockName))
	if err != nil {
		return err
	}
	defer unlock()
	if c.bucket, err = objectstore.ViewDir(c.disk, path.Join(home, server.BucketDir)); err != nil {
		return fmt.Errorf("%s is not a data directory: %w", home, err)
	}
	tables, err := c.catalog(ctx)
	if err != nil {
		return err
	}
	regions, err := c.regions(ctx)
	if err != nil {
		return err
	}
	for _, r := range regions {
		if err := c.region(ctx, r); err != nil {
			return err
		}
	}
	records, err := c.wal(storage.WALDir(home))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d tables, %d regions, %d files with %d rows, %d WAL records\n", tables, len(regions), c.files, c.rows, records)
	if c.problems > 0 {
		return fmt.Errorf("%d things are wrong in %s", c.problems, home)
	}
	return nil
}

// lock keeps servers away. A directory without a lock file gets none: it is
// the copy of a data directory, perhaps on a medium that cannot be written.
func (c *checker) lock(name string) (unlock func(), err error) {
	if _, err := c.disk.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	l, err := c.disk.Lock(name)
	if errors.Is(err, objectstore.ErrLocked) {
		return nil, fmt.Errorf("a server is using %s; stop it first", path.Dir(name))
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil // the end of the process would do it too
}

func (c *checker) wrong(format string, args ...any) {
	c.problems++
	fmt.Fprintf(c.w, "WRONG "+format+"\n", args...)
}

// salvage reports a damaged object of an edit log.
func (c *checker) salvage(key string, err error) { c.wrong("%s: %v", key, err) }

// catalog checks the catalog and returns the number of its tables.
func (c *checker) catalog(ctx context.Context) (tables int, err error) {
	_, state, err := editlog.Open(ctx, c.bucket, server.CatalogPrefix, editlog.Options{Salvage: c.salvage})
	if err != nil {
		return 0, err
	}
	view, err := catalog.Replay(state)
	if err != nil {
		c.wrong("catalog: %v", err)
		return 0, nil
	}
	for _, db := range view.Databases() {
		list, err := view.Tables(db.Name)
		if err != nil {
			return 0, err
		}
		tables += len(list)
	}
	return tables, nil
}

var manifestKey = regexp.MustCompile(`^(table/[0-9]+/[0-9]+/)manifest/`)

// regions returns the key prefixes of all regions that have a manifest.
func (c *checker) regions(ctx context.Context) (prefixes []string, err error) {
	objects, err := c.bucket.List(ctx, "table/")
	if err != nil {
		return nil, err
	}
	for _, o := range objects { // sorted by key
		m := manifestKey.FindStringSubmatch(o.Key)
		if m != nil && (len(prefixes) == 0 || prefixes[len(prefixes)-1] != m[1]) {
			prefixes = append(prefixes, m[1])
		}
	}
	return prefixes, nil
}

// region checks the manifest under prefix and every file that it lists.
func (c *checker) region(ctx context.Context, prefix string) error {
	m, err := manifest.Open(ctx, c.bucket, prefix+"manifest/", manifest.Options{Salvage: c.salvage})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.wrong("%v", err)
		return nil
	}
	for _, f := range m.Version().Files {
		c.files++
		c.rows += f.Rows
		if err := sst.Verify(ctx, c.bucket, prefix+"sst/"+f.Name, f.Meta); err != nil {
			c.wrong("%v", err)
		}
	}
	return nil
}

// wal checks every segment and returns the number of intact records. What
// stands behind the last acknowledged record of a segment, as the next one
// tells it, is what a crash or a full disk left, and not wrong.
func (c *checker) wal(dir string) (records int, err error) {
	segments, err := wal.Segments(c.disk, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var before []wal.Damage // of the segment before
	for _, name := range segments {
		var damage []wal.Damage
		info, err := wal.ReadSegment(c.disk, name, func(e wal.Entry) error {
			if e.Damage != nil {
				damage = append(damage, *e.Damage)
				return nil
			}
			records++
			if _, err := walpayload.Decode(e.Record.Payload); err != nil {
				c.wrong("%s at %d: %v", name, e.Offset, err)
			}
			return nil
		})
		if err != nil {
			c.wrong("%v", err)
			continue
		}
		if !info.HeaderIntact {
			c.wrong("%s: the header is damaged", name)
		}
		c.tell(before, func(d wal.Damage) bool { return info.HeaderIntact && d.Offset >= info.PreviousLength })
		before = damage
		if name == segments[len(segments)-1] {
			c.tell(damage, func(d wal.Damage) bool { return d.Offset >= info.End })
		}
	}
	return records, nil
}

// tell reports the damage of one segment, except what is torn.
func (c *checker) tell(damage []wal.Damage, torn func(wal.Damage) bool) {
	for _, d := range damage {
		if torn(d) {
			fmt.Fprintf(c.w, "torn, as after a crash: %v\n", d)
		} else {
			c.wrong("wal: %v", d)
		}
	}
}
