package catalog

import (
	"maps"
	"testing"

	"github.com/varvedb/varve/table"
)

// A table made in a database takes over what docs/sql/statements.md lists.
func TestInherit(t *testing.T) {
	type options = map[string]string
	f := func(database, own options, otherwise table.MergeMode, want options, merge table.MergeMode) {
		t.Helper()
		db := &Database{Options: database}
		got, mode := db.Inherit(own, otherwise)
		if !maps.Equal(got, want) || mode != merge {
			t.Errorf("%v in %v: %v, %s", own, database, got, mode)
		}
	}
	f(nil, nil, table.LastNonNull, nil, table.LastNonNull)
	all := options{"skip_wal": "true", "sst_format": "flat", "compaction.twcs.time_window": "2h", "append_mode": "true"}
	f(all, nil, table.LastNonNull, all, table.Append)
	f(options{"ttl": "7d", "skip_wal": "true"}, nil, table.LastRow, options{"skip_wal": "true"}, table.LastRow)
	f(options{"compaction.twcs.time_window": "2h"}, options{"compaction.twcs.time_window": "1d"}, table.LastRow,
		options{"compaction.twcs.time_window": "1d"}, table.LastRow)
	f(options{"append_mode": "true"}, options{"merge_mode": "last_non_null"}, table.LastRow,
		options{"merge_mode": "last_non_null"}, table.LastNonNull)
	f(options{"merge_mode": "last_row"}, nil, table.LastNonNull, options{"merge_mode": "last_row"}, table.LastRow)
}
