// Package sst writes and reads sorted string tables: immutable Parquet files
// that hold rows of one region, sorted by series key, then time, then newest
// first. docs/format/sst.md describes the format.
//
// A file is trusted only as far as its checksums: the manifest knows the CRC
// of the footer, the footer knows the CRC of every page, and nothing is
// decoded before its CRC was verified. What does not verify is *Damaged.
package sst

import (
	"fmt"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/table"
)

// FormatVersion is the version of the files that Write makes.
const FormatVersion = 1

// Ids of the engine's own columns.
const (
	SequenceColumn = table.ReservedColumnID
	OpColumn       = table.ReservedColumnID + 1
)

// Meta is what the manifest keeps of a file. It is enough to decide whether
// the file can hold a row, and to verify the footer.
type Meta struct {
	Format      int             `json:"format"`
	Size        int64           `json:"size"` // bytes
	Rows        int64           `json:"rows"`
	Times       table.TimeRange `json:"times"`     // of its rows, in the unit of the time index
	FirstKey    []byte          `json:"first_key"` // smallest series key
	LastKey     []byte          `json:"last_key"`  // largest series key
	MinSequence uint64          `json:"min_sequence"`
	MaxSequence uint64          `json:"max_sequence"`

	// Deletes counts tombstones and Repeats rows with the identity of the row
	// before them. A file with neither needs no merge when it is read alone.
	Deletes int64 `json:"deletes,omitempty"`
	Repeats int64 `json:"repeats,omitempty"`

	// The footer is everything from TailOffset to the end: page indexes, the
	// Parquet footer, its length and magic. FooterCRC is its CRC32C.
	TailOffset int64  `json:"tail_offset"`
	FooterCRC  uint32 `json:"footer_crc"`
}

// Distinct reports whether every row has an identity of its own.
func (m *Meta) Distinct() bool { return m.Repeats == 0 }

// Damaged reports bytes of a file that are not what was written. The file is
// to be quarantined; the rest of the table can be served.
type Damaged struct {
	Key    string // of the file in its bucket
	Offset int64  // of the damaged extent
	Reason string
}

// Error says which file is damaged, where and how.
func (d *Damaged) Error() string {
	return fmt.Sprintf("sst %s is damaged at offset %d: %s", d.Key, d.Offset, d.Reason)
}

// WriteOptions tunes Write. A zero field means its default.
type WriteOptions struct {
	Region table.RegionID // recorded in the footer

	// Sequence, if not zero, is given to every row in place of its own. The
	// last run of a window has one, since nothing older is left to compare to.
	Sequence uint64

	RowGroupRows       int   // rows at which a row group ends; 102,400
	RowGroupBytes      int64 // bytes in memory at which it ends earlier; 64 MiB
	PageRows           int   // rows of a page of every column; 10,240
	PageBytes          int   // value bytes at which a page of a byte-string column ends earlier; 1 MiB
	SeriesRows         int   // rows a series must have on average for the file to get a series index; 8; negative: it gets none
	DictionaryMaxBytes int   // size of a dictionary's values above which a column is not dictionary-coded; 1 MiB
}

func (o WriteOptions) withDefaults() WriteOptions {
	setDefault(&o.RowGroupRows, 102_400)
	setDefault(&o.RowGroupBytes, 64<<20)
	setDefault(&o.PageRows, 10_240)
	setDefault(&o.PageBytes, 1<<20)
	setDefault(&o.DictionaryMaxBytes, 1<<20)
	if o.SeriesRows == 0 {
		o.SeriesRows = 8
	}
	return o
}

func setDefault[T int | int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Input returns the request that the source of a Write must answer: the fields
// of the schema in declared order, and identities. Tags and times are taken
// from the identities, once per series.
func Input(schema *table.Schema) run.Request {
	req := run.Request{Schema: schema, Times: table.AllTime, Identity: true, Stats: new(table.ScanStats)}
	for i := range schema.Columns {
		if schema.Columns[i].Role == table.Field {
			req.Columns = append(req.Columns, schema.Columns[i].ID)
		}
	}
	return req
}
