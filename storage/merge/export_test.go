package merge

import "github.com/varvedb/varve/storage/run"

// SetViewRows makes views of pieces from n rows on.
func SetViewRows(s run.Source, n int) { s.(*merger).viewRows = n }
