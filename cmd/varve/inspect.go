package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

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
	"github.com/varvedb/varve/table"
)

func newInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Print what is in a file of a data directory; changes nothing",
	}
	add := func(kind, short string, inspect func(ctx context.Context, w io.Writer, path string) error) {
		cmd.AddCommand(&cobra.Command{
			Use:   kind + " PATH",
			Short: short,
			Args:  onePath,
			RunE: func(cmd *cobra.Command, args []string) error {
				return inspect(cmd.Context(), cmd.OutOrStdout(), filepath.ToSlash(filepath.Clean(args[0])))
			},
		})
	}
	add("wal", "The records of the log; PATH is DATA_HOME, its wal directory, or a segment", inspectWAL)
	add("manifest", "The edits and files of a region; PATH is DATA_HOME/data/table/TABLE/REGION/manifest", inspectManifest)
	add("catalog", "The edits, databases and tables; PATH is DATA_HOME or its data/catalog", inspectCatalog)
	add("sst", "The schema and the layout of a Parquet file", inspectSST)
	return group(cmd)
}

func inspectWAL(_ context.Context, w io.Writer, name string) error {
	disk := objectstore.OSDisk()
	info, err := disk.Stat(name)
	if err != nil {
		return err
	}
	segments := []string{name}
	if info.IsDir() {
		if isDir(storage.WALDir(name)) {
			name = storage.WALDir(name)
		}
		if segments, err = wal.Segments(disk, name); err != nil {
			return err
		}
		if len(segments) == 0 && path.Base(name) == "wal" && isDir(path.Join(path.Dir(name), server.BucketDir)) {
			fmt.Fprintln(w, "the log has no segments: every row is in files, as after an orderly stop")
			return nil
		}
		if len(segments) == 0 {
			return fmt.Errorf("%s holds no segments of a log; give DATA_HOME, DATA_HOME/wal or one of its *.wal files", name)
		}
	}
	damaged := 0
	for _, s := range segments {
		fmt.Fprintf(w, "%s\n", s)
		info, err := wal.ReadSegment(disk, s, func(e wal.Entry) error {
			if e.Damage != nil {
				damaged++
			}
			fmt.Fprintf(w, "  %s\n", entryLine(e))
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  segment %d: %d bytes, records end at %d, after segment %d with %d bytes, header intact: %v\n",
			info.Number, info.Size, info.End, info.Previous, info.PreviousLength, info.HeaderIntact)
	}
	if damaged > 0 {
		return fmt.Errorf("stretches that do not read as records: %d; in the newest segment they may be what a crash left of writes that were never acknowledged", damaged)
	}
	return nil
}

func entryLine(e wal.Entry) string {
	if e.Damage != nil {
		return "DAMAGED " + e.Damage.String()
	}
	r := e.Record
	line := fmt.Sprintf("%10d  table %d region %d sequence %d, %d bytes: ", e.Offset, r.Region.Table(), uint32(r.Region), r.Sequence, e.Length)
	rows, err := walpayload.Decode(r.Payload)
	if err != nil {
		return line + "payload does not decode: " + err.Error()
	}
	return line + fmt.Sprintf("%d rows of %d series, %d fields, op %d", len(rows.Times), rows.Keys.Len(), len(rows.Fields), rows.Op)
}

// openLog opens the edit log in a directory for reading. Damaged objects are
// told to w, and counted.
func openLog(ctx context.Context, w io.Writer, dir string) (objectstore.Bucket, editlog.State, int, error) {
	bucket, err := objectstore.ViewDir(objectstore.OSDisk(), dir)
	if err != nil {
		return nil, editlog.State{}, 0, err
	}
	if err := checkLogDir(ctx, bucket, dir); err != nil {
		return nil, editlog.State{}, 0, err
	}
	if err := printObjects(ctx, w, bucket); err != nil {
		return nil, editlog.State{}, 0, err
	}
	damaged := 0
	_, state, err := editlog.Open(ctx, bucket, "", editlog.Options{Salvage: func(key string, err error) {
		damaged++
		fmt.Fprintf(w, "DAMAGED %s: %v\n", key, err)
	}})
	return bucket, state, damaged, err
}

// logObject matches the names of an edit log's objects.
var logObject = regexp.MustCompile(`^([0-9]{20}|current)$`)

// checkLogDir refuses a directory that is no edit log's, before what it holds
// is called damaged.
func checkLogDir(ctx context.Context, bucket objectstore.Bucket, dir string) error {
	objects, err := bucket.List(ctx, "")
	if err != nil {
		return err
	}
	const want = "expected DATA_HOME/data/catalog or DATA_HOME/data/table/TABLE/REGION/manifest"
	for _, o := range objects {
		if strings.HasPrefix(o.Key, "manifest/") {
			return fmt.Errorf("%s is no edit log; did you mean %s?", dir, path.Join(dir, "manifest"))
		}
		if !logObject.MatchString(o.Key) {
			return fmt.Errorf("%s is no edit log, for it holds %s; %s", dir, o.Key, want)
		}
	}
	if len(objects) == 0 {
		return fmt.Errorf("%s is empty; %s", dir, want)
	}
	return nil
}

func printObjects(ctx context.Context, w io.Writer, bucket objectstore.Bucket) error {
	objects, err := bucket.List(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range objects {
		data, err := bucket.Read(ctx, o.Key)
		if err != nil {
			return err
		}
		obj, err := editlog.DecodeObject(data)
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", o.Key, err)
			continue
		}
		fmt.Fprintf(w, "%s: %v %d, %d bytes, voids %d, writer %x\n", o.Key, obj.Kind, obj.Number, len(obj.Payload), obj.Voids, obj.Writer)
		if json.Valid(obj.Payload) {
			fmt.Fprintf(w, "  %s\n", obj.Payload)
		}
	}
	return nil
}

func inspectManifest(ctx context.Context, w io.Writer, dir string) error {
	bucket, _, damaged, err := openLog(ctx, w, dir)
	if err != nil {
		return err
	}
	m, err := manifest.Open(ctx, bucket, "", manifest.Options{Salvage: func(string, error) {}}) // told above
	if err != nil {
		return err
	}
	v := m.Version()
	typ := timeType(ctx, dir)
	fmt.Fprintf(w, "flushed up to sequence %d, schema version %d, %d files\n", v.FlushedSequence, v.SchemaVersion, len(v.Files))
	for _, f := range v.Files {
		fmt.Fprintf(w, "  %s: level %d, %d rows, %d bytes, times %s … %s, sequences %d … %d, %d deletes\n", f.Name, f.Level,
			f.Rows, f.Size, formatTime(f.Times.Min, typ), formatTime(f.Times.Max, typ), f.MinSequence, f.MaxSequence, f.Deletes)
	}
	return damage(damaged)
}

// formatTime writes a time as it is stored and, if the type is known, as
// people do.
func formatTime(raw int64, typ table.Type) string {
	if !typ.IsTimestamp() {
		return strconv.FormatInt(raw, 10)
	}
	return fmt.Sprintf("%d (%s)", raw, typ.Time(raw).Format(time.RFC3339Nano))
}

// timeType asks the catalog beside a manifest for the type of its time index. A
// directory elsewhere, such as a copy, has none.
func timeType(ctx context.Context, manifestDir string) table.Type {
	dir := path.Join(manifestDir, "../../../..", server.CatalogPrefix)
	id, err := strconv.ParseUint(path.Base(path.Join(manifestDir, "../..")), 10, 32)
	if err != nil {
		return table.InvalidType
	}
	bucket, err := objectstore.ViewDir(objectstore.OSDisk(), dir)
	if err != nil {
		return table.InvalidType
	}
	_, state, err := editlog.Open(ctx, bucket, "", editlog.Options{Salvage: func(string, error) {}})
	if err != nil {
		return table.InvalidType
	}
	view, err := catalog.Replay(state)
	if err != nil {
		return table.InvalidType
	}
	info, ok := view.TableByID(table.ID(id))
	if !ok {
		return table.InvalidType
	}
	return info.Schema.TimeIndex().Type
}

func inspectCatalog(ctx context.Context, w io.Writer, dir string) error {
	if home := path.Join(dir, server.BucketDir, server.CatalogPrefix); isDir(home) {
		dir = home
	}
	_, state, damaged, err := openLog(ctx, w, dir)
	if err != nil {
		return err
	}
	view, err := catalog.Replay(state)
	if err != nil {
		return err
	}
	for _, db := range view.Databases() {
		fmt.Fprintf(w, "database %s\n", db.Name)
		tables, err := view.Tables(db.Name)
		if err != nil {
			return err
		}
		for _, t := range tables {
			fmt.Fprintf(w, "  table %d %s: %v, %d regions, schema version %d\n", t.ID, t.Name, t.Merge, t.Regions, t.Schema.Version)
			for _, c := range t.Schema.Columns {
				fmt.Fprintf(w, "    %d %s %s %v\n", c.ID, c.Name, c.Type.SQL(), c.Role)
			}
		}
	}
	return damage(damaged)
}

func damage(objects int) error {
	switch objects {
	case 0:
		return nil
	case 1:
		return errors.New("one object is damaged or missing")
	}
	return fmt.Errorf("%d objects are damaged or missing", objects)
}

func inspectSST(ctx context.Context, w io.Writer, name string) error {
	if _, err := os.Stat(name); err != nil {
		return err
	}
	if isDir(name) {
		return fmt.Errorf("%s is a directory; expected a file DATA_HOME/data/table/TABLE/REGION/sst/*.parquet", name)
	}
	dir, file := path.Split(name)
	bucket, err := objectstore.ViewDir(objectstore.OSDisk(), path.Clean(dir))
	if err != nil {
		return err
	}
	return sst.Describe(ctx, bucket, file, w)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
