package sql

import (
	"strings"
	"testing"
)

// FuzzLayout holds that a text has the same tokens after it is printed in our
// style, but for the case of words, and that characters of one operator still
// touch.
func FuzzLayout(f *testing.F) {
	for _, s := range []string{
		"select a,b from t where x>=-1 and y=- -2",
		"SELECT a - -1, a-1, -a, a->-1, a->>'k', 1.5, .5, x[1:2], {'a':1}",
		"insert into t values(1,'it''s',x'ab',$$a$$,e'\\n')",
		"select t . a, t.b, \"q\".\"r\", `s`, a::int, a ::int, a: :b, f (x), f(x)",
		"a -/*c*/- b", "1 .. 2", "1.. 2", "@@x + a@@b", "x / * y", "a<>-b", "a!-b", "a<- b",
		"- - a", "a = -  - - 1", "$1 $ 1 $a", "a . . b", "1 . a", "1 .5", "a .5", "e '1'", "x 'ab'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, err := tokenize(text)
		if err != nil {
			t.Skip()
		}
		for _, capitals := range []capitals{noCapitals, reservedCapitals, allCapitals} {
			printed, err := layout(text, capitals)
			if err != nil {
				t.Fatal(err)
			}
			after, err := tokenize(printed)
			if err != nil {
				t.Fatalf("%q is printed as %q: %v", text, printed, err)
			}
			if len(after) != len(before) {
				t.Fatalf("%q is printed as %q: %d tokens, want %d", text, printed, len(after), len(before))
			}
			for i, b := range before {
				a := after[i]
				old, now := text[b.start:b.end], printed[a.start:a.end]
				if a.kind != b.kind || old != now && (a.kind != wordToken || !strings.EqualFold(old, now)) {
					t.Fatalf("%q is printed as %q: token %q is %q", text, printed, old, now)
				}
			}
		}
	})
}
