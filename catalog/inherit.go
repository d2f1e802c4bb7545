package catalog

import (
	"maps"

	"github.com/varvedb/varve/table"
)

// inheritedOptions are copied from a database to the tables that are made in
// it. The others are not: they shall be looked up in the database when they
// are needed.
var inheritedOptions = []string{"append_mode", "merge_mode", "skip_wal", "sst_format", "compaction.twcs.time_window"}

// Inherit returns the options of a new table: its own, and those of its
// database that it does not give itself. append_mode and merge_mode count as
// one choice. otherwise is how writes of one identity merge if neither says.
func (d *Database) Inherit(own map[string]string, otherwise table.MergeMode) (map[string]string, table.MergeMode) {
	options := maps.Clone(own)
	_, appends := own["append_mode"]
	_, merges := own["merge_mode"]
	for _, key := range inheritedOptions {
		value, ok := d.Options[key]
		_, given := own[key]
		if !ok || given || (appends || merges) && (key == "append_mode" || key == "merge_mode") {
			continue
		}
		if options == nil {
			options = map[string]string{}
		}
		options[key] = value
	}
	switch {
	case options["append_mode"] == "true":
		return options, table.Append
	case options["merge_mode"] == table.LastRow.String():
		return options, table.LastRow
	case options["merge_mode"] == table.LastNonNull.String():
		return options, table.LastNonNull
	default:
		return options, otherwise
	}
}
