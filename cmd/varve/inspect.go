package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/objectstore/editlog"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/storage/walpayload"
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
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return inspect(cmd.Context(), cmd.OutOrStdout(), filepath.ToSlash(filepath.Clean(args[0])))
			},
		})
	}
	add("wal", "the records of a segment, or of all segments of a directory", inspectWAL)
	add("manifest", "the edits and files of a region; PATH is its manifest directory", inspectManifest)
	add("catalog", "the edits, databases and tables; PATH is the catalog directory", inspectCatalog)
	add("sst", "the schema and the layout of a Parquet file", inspectSST)
	return cmd
}

func inspectWAL(_ context.Context, w io.Writer, name string) error {
	disk := objectstore.OSDisk()
	info, err := disk.Stat(name)
	if err != nil {
		return err
	}
	segments := []string{name}
	if info.IsDir() {
		if segments, err = wal.Segments(disk, name); err != nil {
			return err
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
		return fmt.Errorf("%d stretches do not read as records; in the newest segment they may be what a crash left of writes that were never acknowledged", damaged)
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
	fmt.Fprintf(w, "flushed up to sequence %d, schema version %d, %d files\n", v.FlushedSequence, v.SchemaVersion, len(v.Files))
	for _, f := range v.Files {
		fmt.Fprintf(w, "  %s: level %d, %d rows, %d bytes, times %d … %d, sequences %d … %d, %d deletes\n", f.Name, f.Level,
			f.Rows, f.Size, f.Times.Min, f.Times.Max, f.MinSequence, f.MaxSequence, f.Deletes)
	}
	return damage(damaged)
}

func inspectCatalog(ctx context.Context, w io.Writer, dir string) error {
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
	if objects == 0 {
		return nil
	}
	return fmt.Errorf("%d objects are damaged or missing", objects)
}

func inspectSST(ctx context.Context, w io.Writer, name string) error {
	if info, err := os.Stat(name); err != nil {
		return err
	} else if info.IsDir() {
		return fmt.Errorf("%s is a directory; give a file", name)
	}
	dir, file := path.Split(name)
	bucket, err := objectstore.ViewDir(objectstore.OSDisk(), path.Clean(dir))
	if err != nil {
		return err
	}
	return sst.Describe(ctx, bucket, file, w)
}
