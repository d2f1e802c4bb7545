package handlers

import (
	"encoding/json"
	"fmt"

	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// costHeader tells what the statements of a request have cost. It is a header
// where that is known before the first byte, else a trailer.
const costHeader = "X-Greptime-Metrics"

// A cost is what the results of an answer have cost, summed over tables.
type cost struct {
	Read         int64 `json:"greptime_exec_read_cost"`  // bytes from the bucket
	Written      int64 `json:"greptime_exec_write_cost"` // rows
	Files        int64 `json:"files"`
	FilesPruned  int64 `json:"files_pruned"`
	Pages        int64 `json:"pages"`
	PagesPruned  int64 `json:"pages_pruned"`
	CacheHits    int64 `json:"cache_hits"`
	RowsRead     int64 `json:"rows_read"`
	RowsReturned int64 `json:"rows_returned"`
}

// read adds what r has read so far, if that is counted.
func (c *cost) read(r sql.Records) {
	counted, ok := r.(interface{ Stats() []query.TableStats })
	if !ok {
		return
	}
	for _, t := range counted.Stats() {
		c.Read += t.BytesRead.Load()
		c.Files += t.Files.Load()
		c.FilesPruned += t.FilesPruned.Load()
		c.Pages += t.Pages.Load()
		c.PagesPruned += t.PagesPruned.Load()
		c.CacheHits += t.CacheHits.Load()
		c.RowsRead += t.RowsRead.Load()
		c.RowsReturned += t.RowsReturned.Load()
	}
}

// affected adds the rows that a statement has changed, and returns them.
func (c *cost) affected(r sql.Result) int64 {
	c.Written += r.Affected
	return r.Affected
}

func (c *cost) json() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("handlers: the cost cannot be JSON: %v", err))
	}
	return string(text)
}
