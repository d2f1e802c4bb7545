// Package manifest keeps what is known of one region's files: a numbered log
// of edits in the bucket, whose sum is a Version. docs/format/manifest.md
// describes the format.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varvedb/varve/storage/sst"
)

// FormatVersion is the version of the edits and checkpoints that are written.
const FormatVersion = 1

// A File is one SST of a region.
type File struct {
	Name  string `json:"name"`  // within the region's sst folder; never used again
	Level int    `json:"level"` // 0: from a flush
	Width int64  `json:"width"` // of its time window, in the unit of the time index; 0: rows of several windows
	sst.Meta
}

// A Version is the state of a region at one moment. It is immutable.
type Version struct {
	Format          int     `json:"format"`
	Files           []*File `json:"files"`            // sorted by name
	FlushedSequence uint64  `json:"flushed_sequence"` // every write up to it is in Files
	SchemaVersion   uint64  `json:"schema_version"`   // the newest that a flush used
	WindowNanos     int64   `json:"window_nanos"`     // inferred width of new time windows; 0: not yet
}

// An Edit changes a Version. A zero field changes nothing.
type Edit struct {
	Format          int      `json:"format"`
	Add             []*File  `json:"add,omitempty"`
	Remove          []string `json:"remove,omitempty"` // names
	FlushedSequence uint64   `json:"flushed_sequence,omitempty"`
	SchemaVersion   uint64   `json:"schema_version,omitempty"`
	WindowNanos     int64    `json:"window_nanos,omitempty"`
}

// Apply returns the version after e. An edit that does not fit is an error:
// the log is not what a region wrote.
func (v *Version) Apply(e *Edit) (*Version, error) {
	next := *v
	next.Format = FormatVersion
	next.Files = slices.Clone(v.Files)
	for _, name := range e.Remove {
		i, found := slices.BinarySearchFunc(next.Files, name, byName)
		if !found {
			return nil, fmt.Errorf("edit removes file %q, which is not there", name)
		}
		next.Files = slices.Delete(next.Files, i, i+1)
	}
	for _, f := range e.Add {
		i, found := slices.BinarySearchFunc(next.Files, f.Name, byName)
		if found {
			return nil, fmt.Errorf("edit adds file %q, which is there", f.Name)
		}
		next.Files = slices.Insert(next.Files, i, f)
	}
	if e.FlushedSequence != 0 && e.FlushedSequence < v.FlushedSequence {
		return nil, fmt.Errorf("edit takes the flushed sequence from %d back to %d", v.FlushedSequence, e.FlushedSequence)
	}
	next.FlushedSequence = max(v.FlushedSequence, e.FlushedSequence)
	next.SchemaVersion = max(v.SchemaVersion, e.SchemaVersion)
	if e.WindowNanos != 0 {
		next.WindowNanos = e.WindowNanos
	}
	return &next, nil
}

func byName(f *File, name string) int { return strings.Compare(f.Name, name) }

// Encode returns the bytes of an edit.
func (e *Edit) Encode() []byte {
	c := *e
	c.Format = FormatVersion
	return mustEncode(&c)
}

// Encode returns the bytes of a checkpoint.
func (v *Version) Encode() []byte {
	c := *v
	c.Format = FormatVersion
	return mustEncode(&c)
}

func mustEncode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("manifest: encode: " + err.Error()) // plain data always encodes
	}
	return data
}

// DecodeEdit decodes an edit and checks what can be checked without a version.
func DecodeEdit(data []byte) (*Edit, error) {
	var e Edit
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("decode manifest edit: %w", err)
	}
	if err := checkFormat(e.Format); err != nil {
		return nil, fmt.Errorf("decode manifest edit: %w", err)
	}
	if err := checkFiles(e.Add); err != nil {
		return nil, fmt.Errorf("decode manifest edit: %w", err)
	}
	if e.WindowNanos < 0 {
		return nil, fmt.Errorf("decode manifest edit: window of %d ns", e.WindowNanos)
	}
	return &e, nil
}

// DecodeVersion decodes a checkpoint.
func DecodeVersion(data []byte) (*Version, error) {
	var v Version
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("decode manifest checkpoint: %w", err)
	}
	if err := checkFormat(v.Format); err != nil {
		return nil, fmt.Errorf("decode manifest checkpoint: %w", err)
	}
	if err := checkFiles(v.Files); err != nil {
		return nil, fmt.Errorf("decode manifest checkpoint: %w", err)
	}
	for i := 1; i < len(v.Files); i++ {
		if v.Files[i-1].Name >= v.Files[i].Name {
			return nil, fmt.Errorf("decode manifest checkpoint: file %q is out of order", v.Files[i].Name)
		}
	}
	if v.WindowNanos < 0 {
		return nil, fmt.Errorf("decode manifest checkpoint: window of %d ns", v.WindowNanos)
	}
	return &v, nil
}

// errFormat reports what another version of the program has written.
var errFormat = errors.New("unknown format")

func checkFormat(format int) error {
	if format < 1 || format > FormatVersion {
		return fmt.Errorf("%w: it is %d, and this program reads 1 to %d", errFormat, format, FormatVersion)
	}
	return nil
}

func checkFiles(files []*File) error {
	for _, f := range files {
		switch {
		case f == nil || f.Name == "" || strings.ContainsAny(f.Name, "/\\"):
			return fmt.Errorf("a file has no proper name")
		case f.Rows <= 0 || f.Size <= 0 || f.Times.Empty() || f.MinSequence > f.MaxSequence:
			return fmt.Errorf("the description of file %q contradicts itself", f.Name)
		}
	}
	return nil
}
