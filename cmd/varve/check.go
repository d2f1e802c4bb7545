package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/server"
	"github.com/varvedb/varve/storage"
	"github.com/varvedb/varve/table"
)

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DATA_HOME",
		Short: "Verify every checksum and the order of rows in a data directory; changes nothing",
		Long: "check reads everything in the data directory of a stopped server: the catalog, the\n" +
			"manifests, every page of every SST, and every record of the WAL. It prints what is\n" +
			"wrong, and exits with 1 if anything is.",
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.Context(), cmd.OutOrStdout(), filepath.ToSlash(filepath.Clean(args[0])))
		},
	}
}

func check(ctx context.Context, w io.Writer, home string) error {
	disk := objectstore.OSDisk()
	unlock, err := lockForReading(disk, path.Join(home, server.LockName))
	if err != nil {
		return err
	}
	defer unlock()
	bucket, err := objectstore.ViewDir(disk, path.Join(home, server.BucketDir))
	if err != nil {
		return fmt.Errorf("%s is not a data directory: %w", home, err)
	}
	problems, view, err := checkCatalog(ctx, bucket)
	if err != nil {
		return err
	}
	report, err := storage.Check(ctx, disk, home, bucket, checkOptions(view, len(problems) == 0))
	if err != nil {
		return err
	}
	problems = append(problems, report.Problems...)
	next, tables := table.ID(0), 0
	if view != nil {
		next, tables = view.NextID(), countTables(view)
	}
	if next > 0 && report.LastTable >= next {
		problems = append(problems, storage.Problem{Path: server.CatalogPrefix, Reason: fmt.Sprintf(
			"it is older than the data: there is a table %d, and its next new table would be number %d", report.LastTable, next)})
	}
	for _, key := range report.Orphans {
		fmt.Fprintf(w, "not in any manifest, harmless: %s\n", key)
	}
	for _, key := range report.Leftover {
		fmt.Fprintf(w, "of a dropped table, removed by the next start: %s\n", key)
	}
	for _, torn := range report.Torn {
		fmt.Fprintf(w, "torn, as a crash leaves it, or cut off later: %s\n", torn)
	}
	for _, p := range problems {
		fmt.Fprintf(w, "WRONG %v\n", p)
	}
	fmt.Fprintf(w, "tables: %d; regions: %d, files: %d, rows in them: %d; WAL segments: %d, records: %d, rows in them: %d\n", tables,
		report.Regions, report.Files, report.FileRows, report.Segments, report.Records, report.RecordRows)
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("one thing is wrong in %s", home)
	default:
		return fmt.Errorf("%d things are wrong in %s", len(problems), home)
	}
}

// lockForReading keeps servers away. A directory without a lock file gets
// none: it is the copy of a data directory, perhaps on a medium that cannot be
// written.
func lockForReading(disk objectstore.Disk, name string) (unlock func(), err error) {
	if _, err := disk.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	l, err := disk.Lock(name)
	if errors.Is(err, objectstore.ErrLocked) {
		return nil, fmt.Errorf("a server is using %s; stop it first", path.Dir(name))
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil // the end of the process would do it too
}

// checkCatalog returns what is wrong with the catalog, and the catalog as far
// as it can be read, nil if not at all.
func checkCatalog(ctx context.Context, bucket objectstore.Bucket) (problems []storage.Problem, view *catalog.View, err error) {
	wrong := func(key string, err error) {
		problems = append(problems, storage.Problem{Path: key, Reason: err.Error()})
	}
	_, state, err := editlog.Open(ctx, bucket, server.CatalogPrefix, editlog.Options{Salvage: wrong})
	if err != nil {
		return nil, nil, err
	}
	if view, err = catalog.Replay(state); err != nil {
		wrong(server.CatalogPrefix, err)
		return problems, nil, nil
	}
	return problems, view, nil
}

// checkOptions says which tables are dropped, which only an intact catalog knows.
func checkOptions(view *catalog.View, intact bool) storage.CheckOptions {
	if view == nil || !intact {
		return storage.CheckOptions{}
	}
	return storage.CheckOptions{Dropped: func(id table.ID) bool {
		_, there := view.TableByID(id)
		return !there && id < view.NextID()
	}}
}

func countTables(view *catalog.View) (n int) {
	for _, db := range view.Databases() {
		if list, err := view.Tables(db.Name); err == nil {
			n += len(list)
		}
	}
	return n
}
