package handlers

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/varvedb/varve/sql"
)

// A nullEncoder reads all rows and writes only how many there are.
//
//	2 rows in set.
//	Elapsed: 0.002 sec.
type nullEncoder struct{ *answer }

func newNullEncoder(a *answer) sqlEncoder { return &nullEncoder{a} }

func (e *nullEncoder) result(ctx context.Context, r sql.Result) error {
	if r.Records == nil {
		e.buf = fmt.Appendf(e.buf, "%d rows affected.\n", e.cost.affected(r))
		return nil
	}
	n, err := e.chunks(ctx, r.Records, func(sql.Chunk, int) error { return nil })
	e.buf = fmt.Appendf(e.buf, "%d rows in set.\n", n)
	return err
}

func (e *nullEncoder) end() {
	e.buf = fmt.Appendf(e.buf, "Elapsed: %.3f sec.\n", time.Since(e.start).Seconds())
}

func (e *nullEncoder) fail(*http.Request, error) bool { return false }
