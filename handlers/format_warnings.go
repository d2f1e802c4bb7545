package handlers

import (
	"slices"
	"strconv"
	"time"

	"github.com/varvedb/varve/query"
	"github.com/varvedb/varve/sql"
)

// warningsHeader tells which rows an answer lacks, one value a table. Where
// the answer is larger than its buffer, what is known before the first byte is
// a header, and all of it a trailer.
const warningsHeader = "X-Varve-Warnings"

// maxWarningHeaders bounds the values of warningsHeader; clients refuse
// headers that are too large. The JSON formats have all warnings.
const maxWarningHeaders = 16

// noteDamage adds the damage that reading the current result has met so far. A
// table that several results come from counts once, with the most files.
func (a *answer) noteDamage() {
	if a.reading == nil {
		return
	}
	for _, d := range sql.DamageOf(a.reading) {
		same := func(o sql.Damage) bool { return o.Database == d.Database && o.Table == d.Table }
		if i := slices.IndexFunc(a.damages, same); i >= 0 {
			a.damages[i].Files = max(a.damages[i].Files, d.Files)
		} else {
			a.damages = append(a.damages, d)
		}
	}
}

// setWarnings sets warningsHeader, behind a prefix that makes it a trailer.
func (a *answer) setWarnings(prefix string) {
	h := a.w.Header()
	h.Del(prefix + warningsHeader)
	for _, d := range a.damages[:min(len(a.damages), maxWarningHeaders)] {
		h.Add(prefix+warningsHeader, headerText(d.String()))
	}
}

// warnings appends the member "warnings" of a JSON object, behind another one,
// if there are any.
func (a *answer) warnings() {
	for i, d := range a.damages {
		sep := byte(',')
		if i == 0 {
			a.buf = append(a.buf, `,"warnings":`...)
			sep = '['
		}
		a.buf = query.AppendJSONString(append(a.buf, sep), d.String())
	}
	if len(a.damages) > 0 {
		a.buf = append(a.buf, ']')
	}
}

// took ends a JSON object, and the line, with the warnings and the time.
func (a *answer) took() {
	a.warnings()
	a.buf = append(a.buf, `,"execution_time_ms":`...)
	a.buf = strconv.AppendInt(a.buf, time.Since(a.start).Milliseconds(), 10)
	a.buf = append(a.buf, '}', '\n')
}
