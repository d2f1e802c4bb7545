package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/storage/manifest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/storage/wal"
	"github.com/varvedb/varve/storage/walpayload"
	"github.com/varvedb/varve/table"
)

// A CheckReport says what Check looked at and what is wrong.
type CheckReport struct {
	Regions, Files int
	FileRows       int64
	Segments       int
	Records        int64
	RecordRows     int64
	Unflushed      int64     // records that a recovery would apply
	Orphans        []string  // files that no manifest names, and whose rows are elsewhere; they only take room
	Leftover       []string  // files of dropped tables; the next start of the server removes them
	LastTable      table.ID  // the largest id of a table that has files or logged writes
	Torn           []string  // what a crash left of writes that were never acknowledged
	Problems       []Problem // what is lost, or may be
}

// A Problem is one thing that is wrong.
type Problem struct {
	Path   string // key in the bucket or path on the disk
	Reason string
}

// String says where the problem is and what it is.
func (p Problem) String() string { return p.Path + ": " + p.Reason }

// CheckOptions says what Check cannot see by itself. A zero field means its
// default.
type CheckOptions struct {
	Prefix  string              // of the keys in the bucket; "table"
	Dropped func(table.ID) bool // tables that are known to be dropped; none
}

// Check reads everything of a store that is not open: manifests, files and the
// log. It verifies every checksum, the order of rows, and that the parts agree,
// and changes nothing. Only what keeps it from going on is an error.
func Check(ctx context.Context, disk objectstore.Disk, dataDir string, bucket objectstore.Bucket, opts CheckOptions) (*CheckReport, error) {
	orElse(&opts.Prefix, "table")
	if opts.Dropped == nil {
		opts.Dropped = func(table.ID) bool { return false }
	}
	c := &checker{ctx: ctx, disk: disk, bucket: bucket, opts: opts,
		flushed: make(map[table.RegionID]uint64), unknown: make(map[table.RegionID]bool), logged: make(map[table.RegionID]*logged)}
	objects, err := bucket.List(ctx, opts.Prefix+"/")
	if err != nil {
		return nil, fmt.Errorf("check: list the bucket: %w", err)
	}
	for _, r := range groupByRegion(objects) {
		if err := c.region(r); err != nil {
			return nil, fmt.Errorf("check region %s: %w", r.prefix, err)
		}
	}
	if err := c.log(WALDir(dataDir)); err != nil {
		return nil, fmt.Errorf("check the log: %w", err)
	}
	if err := c.compare(WALDir(dataDir)); err != nil {
		return nil, fmt.Errorf("check the log beside the files: %w", err)
	}
	return &c.report, nil
}

type checker struct {
	ctx     context.Context // of one Check
	disk    objectstore.Disk
	bucket  objectstore.Bucket
	opts    CheckOptions
	flushed map[table.RegionID]uint64
	unknown map[table.RegionID]bool // regions whose manifest cannot be read
	logged  map[table.RegionID]*logged
	orphans []orphan
	missing []uint64 // segments
	report  CheckReport
}

func (c *checker) problem(path, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Problem{path, fmt.Sprintf(format, args...)})
}

// regionObjects are the objects of one region.
type regionObjects struct {
	prefix string
	id     table.RegionID
	files  map[string]objectstore.Object // by key
}

// groupByRegion sorts objects under their regions, <prefix>/<table>/<region>/.
func groupByRegion(objects []objectstore.Object) (regions []*regionObjects) {
	byPrefix := make(map[string]*regionObjects)
	for _, o := range objects {
		words := strings.Split(o.Key, "/")
		if len(words) < 4 {
			continue
		}
		n := len(words) - 4
		id, err := strconv.ParseUint(words[n], 10, 32)
		number, err2 := strconv.ParseUint(words[n+1], 10, 32)
		if err != nil || err2 != nil {
			continue
		}
		prefix := strings.Join(words[:n+2], "/") + "/"
		r := byPrefix[prefix]
		if r == nil {
			r = &regionObjects{prefix: prefix, id: table.ID(id).Region(uint32(number)), files: make(map[string]objectstore.Object)}
			byPrefix[prefix] = r
			regions = append(regions, r)
		}
		if words[n+2] == "sst" {
			r.files[o.Key] = o
		}
	}
	return regions
}

func (c *checker) region(r *regionObjects) error {
	c.report.Regions++
	c.report.LastTable = max(c.report.LastTable, r.id.Table())
	if c.opts.Dropped(r.id.Table()) {
		c.report.Leftover = append(c.report.Leftover, slices.Sorted(maps.Keys(r.files))...)
		return nil
	}
	m, err := manifest.Open(c.ctx, c.bucket, manifestPrefix(r.prefix), manifest.Options{
		Salvage: func(key string, err error) { c.problem(key, "%v", err) },
	})
	if err != nil {
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		c.problem(manifestPrefix(r.prefix), "%v", err)
		c.unknown[r.id] = true
		return nil
	}
	v := m.Version()
	c.flushed[r.id] = v.FlushedSequence
	for _, f := range v.Files {
		key := sstKey(r.prefix, f.Name)
		delete(r.files, key)
		c.report.Files++
		c.report.FileRows += f.Rows
		if err := sst.Verify(c.ctx, c.bucket, key, f.Meta); err != nil {
			if c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			c.problem(key, "%v", err)
		}
		if f.MaxSequence > v.FlushedSequence {
			c.problem(key, "it holds sequence %d, and the manifest says that %d is the last flushed one", f.MaxSequence, v.FlushedSequence)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.files)) {
		c.orphans = append(c.orphans, orphan{r.id, key})
	}
	return nil
}

func (c *checker) log(dir string) error {
	report, err := wal.Check(c.ctx, c.disk, dir, func(segment uint64, r wal.Record) error {
		c.record(dir, segment, r)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.report.Segments, c.missing = report.Segments, report.Missing
	for _, d := range report.Damage {
		c.problem(dir, "%s", d.String())
		if d.HeaderIntact { // said already; not missing besides
			c.loggedOf(d.Region).add(d.Segment, d.Sequence)
		}
	}
	for _, d := range report.Torn {
		c.report.Torn = append(c.report.Torn, dir+": "+d.String())
	}
	return nil
}

func (c *checker) record(dir string, segment uint64, r wal.Record) {
	c.report.Records++
	c.loggedOf(r.Region).add(segment, r.Sequence)
	c.report.LastTable = max(c.report.LastTable, r.Region.Table())
	if r.Sequence > c.flushed[r.Region] {
		c.report.Unflushed++
	}
	rows, err := walpayload.Decode(r.Payload)
	if err != nil {
		c.problem(dir, "the record of region %d, sequence %d: %v", r.Region, r.Sequence, err)
		return
	}
	c.report.RecordRows += int64(rows.Len())
}
