package sst

// A span is rows [from, to) of a row group.
type span struct{ from, to int }

// addSpan appends s, which begins at or after the end of the last, joining the
// two where they touch.
func addSpan(spans []span, s span) []span {
	if s.from >= s.to {
		return spans
	}
	if n := len(spans); n > 0 && spans[n-1].to == s.from {
		spans[n-1].to = s.to
		return spans
	}
	return append(spans, s)
}

// cutSpans calls f for each part of spans that lies within one page of c, with
// the page's index.
func (c *chunkInfo) cutSpans(spans []span, f func(page int, s span) error) error {
	p := 0
	for _, s := range spans {
		for s.from < s.to {
			for c.pages[p].end <= s.from {
				p++
			}
			part := span{s.from, min(s.to, c.pages[p].end)}
			if err := f(p, part); err != nil {
				return err
			}
			s.from = part.to
		}
	}
	return nil
}
