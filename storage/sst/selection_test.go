package sst_test

import (
	"context"
	"testing"

	"github.com/varvedb/varve/storage/run"
	"github.com/varvedb/varve/storage/run/runtest"
	"github.com/varvedb/varve/storage/sst"
	"github.com/varvedb/varve/table"
)

// A scan that was planned with a series index keeps to its selection, even if
// another one finds the index damaged meanwhile. Without the index it fails:
// the rows it was not to return come from a merge.
func TestSelectionIsNeverIgnored(t *testing.T) {
	schema := logSchema()
	b, meta := write(t, schema, logRows(20), sst.WriteOptions{SeriesRows: 1})
	r, x := openSeries(t, b, meta)
	req := request(schema)
	req.Selection = &run.Selection{Except: true}
	for s := range uint32(x.Len()) {
		req.Selection.Stretches = append(req.Selection.Stretches, run.Stretch{Series: s, Times: table.AllTime})
	}
	r.IgnoreSeries()
	if got, err := runtest.TryRead(r.Scan(req, x, 0, len(r.RowGroups())), req); err != nil || len(got) > 0 {
		t.Errorf("%d rows, %v; all are left to a merge", len(got), err)
	}
	if b, err := r.Scan(req, nil, 0, len(r.RowGroups())).Next(context.Background()); err == nil {
		t.Errorf("without an index: %v", b)
	}
}
