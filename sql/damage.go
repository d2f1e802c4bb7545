package sql

import (
	"fmt"
	"strings"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/fault"
	"github.com/varvedb/varve/query"
)

// A Damage is a table of which rows are missing, because files are damaged or
// gone.
type Damage struct {
	Database, Table string
	Files           int64
}

// String says it as clients are told.
func (d Damage) String() string {
	name, files := d.Table, "1 damaged file was"
	if d.Database != catalog.Public {
		name = d.Database + "." + d.Table
	}
	if d.Files > 1 {
		files = fmt.Sprintf("%d damaged files were", d.Files)
	}
	return fmt.Sprintf("table %s: %s left out, wholly or in part; run varve check", name, files)
}

// DamageOf returns the damage that reading r has met so far.
func DamageOf(r Records) (damages []Damage) {
	counted, ok := r.(interface{ Stats() []query.TableStats })
	if !ok {
		return nil
	}
	for _, t := range counted.Stats() {
		if n := t.FilesDamaged.Load(); n > 0 {
			damages = append(damages, Damage{t.Database, t.Table, n})
		}
	}
	return damages
}

// Whole returns a fault.Unavailable if reading r has met damage.
func Whole(r Records) error {
	damages := DamageOf(r)
	if damages == nil {
		return nil
	}
	texts := make([]string, len(damages))
	for i, d := range damages {
		texts[i] = d.String()
	}
	return fault.Errorf(fault.Unavailable, "rows are missing: %s", strings.Join(texts, "; "))
}
