package sst

import "github.com/varvedb/varve/storage/run"

// SetViewRows makes views of spans from n rows on.
func SetViewRows(s run.Source, n int) { s.(*scan).viewRows = n }
