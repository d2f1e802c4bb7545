package lineprotocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/varvedb/varve/catalog"
	"github.com/varvedb/varve/table"
)

// TestScript runs testdata/*: tables are declared, lines are written against
// them, and the rows and refusals are printed.
func TestScript(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		b := newBench(t, Options{MaxValueBytes: 100, MaxColumns: 8})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			b.TB = t
			switch d.Cmd {
			case "table":
				return b.declare(d)
			case "write":
				return b.write(d)
			case "columns":
				info, err := b.catalog.Table(catalog.Public, d.CmdArgs[0].Key)
				if err != nil {
					return err.Error()
				}
				var s strings.Builder
				for _, c := range info.Schema.Columns {
					fmt.Fprintf(&s, "%s %s %s\n", c.Name, c.Type.SQL(), c.Role)
				}
				return s.String()
			case "drop":
				if _, err := b.catalog.DropTable(t.Context(), catalog.Public, d.CmdArgs[0].Key); err != nil {
					return err.Error()
				}
				return ""
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// declare makes a table from lines such as "host STRING tag", "ts
// TIMESTAMP(3) time", "usage DOUBLE".
func (b *bench) declare(d *datadriven.TestData) string {
	spec := catalog.Spec{Database: catalog.Public, Name: d.CmdArgs[0].Key}
	for _, line := range strings.Split(d.Input, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		c := table.Column{Name: name, Role: table.Field, Nullable: true}
		if s, ok := strings.CutSuffix(rest, " tag"); ok {
			c.Role, rest = table.Tag, s
		} else if s, ok := strings.CutSuffix(rest, " time"); ok {
			c.Role, rest = table.Timestamp, s
		}
		for typ := table.Boolean; typ.Known(); typ++ {
			if typ.SQL() == rest {
				c.Type = typ
			}
		}
		spec.Columns = append(spec.Columns, c)
	}
	if _, _, err := b.catalog.CreateTable(b.Context(), spec, false); err != nil {
		return err.Error()
	}
	return ""
}

// write decodes its input, in which \n, \r, \t, \0 and \xff stand for these
// bytes if escapes is given.
func (b *bench) write(d *datadriven.TestData) string {
	precision := Nanosecond
	body := d.Input
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "precision":
			p, err := ParsePrecision(arg.Vals[0])
			if err != nil {
				return err.Error()
			}
			precision = p
		case "escapes":
			body = strings.NewReplacer("\n", "\n", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00", `\xff`, "\xff").Replace(body)
		}
	}
	r := b.decode([]byte(body), precision, testNow)
	var s strings.Builder
	for _, p := range points(b, r) {
		fmt.Fprintf(&s, "%s{%s} %s @%d\n", p.name, p.tags, p.fields, p.time)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&s, "line %d: %s\n", e.Line, e.Reason)
	}
	if r.Dropped != len(r.Errors) {
		fmt.Fprintf(&s, "dropped %d\n", r.Dropped)
	}
	return s.String()
}

// A decoder that has seen much decodes as a new one does, whatever becomes of
// the tables meanwhile.
func TestCacheIsInvisible(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	old := newBench(t, Options{CacheBytes: 20_000})
	tags := func(n int) string {
		var s strings.Builder
		for i, k := range rng.Perm(5)[:n] {
			_ = i
			fmt.Fprintf(&s, ",t%d=%d", k, rng.IntN(3))
		}
		return s.String()
	}
	for round := range 300 {
		var body strings.Builder
		for range 20 {
			fmt.Fprintf(&body, "m%d%s", rng.IntN(3), tags(rng.IntN(5)))
			for i := range 1 + rng.IntN(4) {
				fmt.Fprintf(&body, "%cf%d=%d", " ,,,"[i], rng.IntN(6), rng.IntN(100))
				body.WriteString([]string{"", "i", ".5", "i", "x"}[rng.IntN(5)])
			}
			fmt.Fprintf(&body, " %d\n", rng.IntN(1000))
		}
		if rng.IntN(10) == 0 {
			name := fmt.Sprintf("m%d", rng.IntN(3))
			_, _ = old.catalog.DropTable(t.Context(), catalog.Public, name) // it may not exist
		}
		r := old.decode([]byte(body.String()), Nanosecond, testNow)
		got, dropped := points(t, r), fmt.Sprint(r.Dropped, r.Errors)
		fresh := &bench{t, old.catalog, NewDecoder(Options{}), map[[2]string]string{}}
		r = fresh.decode([]byte(body.String()), Nanosecond, testNow)
		if diff := gocmp.Diff(points(t, r), got, gocmp.AllowUnexported(point{})); diff != "" || fmt.Sprint(r.Dropped, r.Errors) != dropped {
			t.Fatalf("round %d (-new decoder +old):\n%s\n%s\n%v\nlines:\n%s", round, diff, dropped, r.Errors, body.String())
		}
	}
}

// A request that would create too much is stopped, and its memory with it.
func TestMaxNew(t *testing.T) {
	b := newBench(t, Options{MaxNew: 10})
	var body strings.Builder
	for i := range 20 {
		fmt.Fprintf(&body, "m%d f=1\n", i)
	}
	r := b.decode([]byte(body.String()), Nanosecond, testNow)
	if r.Rows != 5 || r.Dropped != 15 { // a table and a column each
		t.Errorf("%d rows, %d dropped", r.Rows, r.Dropped)
	}
	if n := len(b.decoder.tables); n > 10 {
		t.Errorf("%d tables are kept", n)
	}
	if r := b.decode([]byte("m5 f=1\nm6 f=1"), Nanosecond, testNow); r.Rows != 2 {
		t.Errorf("the next request is not its own: %v", r.Errors)
	}
}

// Large values pass as long as they are within the limit.
func TestLargeValues(t *testing.T) {
	for _, n := range []int{64 << 10, 1 << 20, 1<<20 + 1} {
		b := newBench(t, Options{})
		value := strings.Repeat("x", n)
		r := b.decode([]byte(`m,t=`+value[:min(n, 64<<10)]+` s="`+value+`" 1`), Nanosecond, testNow)
		if ok := n <= 1<<20; ok != (r.Rows == 1) || ok != (r.Dropped == 0) {
			t.Errorf("%d bytes: %d rows, %v", n, r.Rows, r.Errors)
		}
		if r.Rows == 1 && len(r.Tables[0].Rows.Fields[0].Vector.Bytes(0)) != n {
			t.Errorf("%d bytes: the value was cut", n)
		}
	}
}

// Whatever the bytes: no panic, every line a row or dropped, and rows that are
// written as lines again decode to the same rows.
func FuzzDecode(f *testing.F) {
	n := 0
	for _, v := range readVectors(f) {
		if n++; v.Output.Error == "" || n%20 == 0 {
			f.Add([]byte(v.Input.Text))
		}
	}
	for _, name := range []string{"types", "syntax", "times"} {
		data, err := os.ReadFile("testdata/script/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := newBench(t, Options{MaxErrors: 1 << 20})
		r := b.decode(body, Nanosecond, testNow)
		first := points(t, r)
		if r.Rows != len(first) || r.Dropped != len(r.Errors) {
			t.Fatalf("%d rows counted, %d there; %d dropped, %d reasons", r.Rows, len(first), r.Dropped, len(r.Errors))
		}
		for i, e := range r.Errors {
			if e.Reason == "" || e.Line < 1 || i > 0 && e.Line <= r.Errors[i-1].Line {
				t.Fatalf("errors %v", r.Errors)
			}
		}
		// The same again, now from the caches.
		if diff := gocmp.Diff(first, points(t, b.decode(body, Nanosecond, testNow)), gocmp.AllowUnexported(point{})); diff != "" {
			t.Fatalf("the second time is another (-first +second):\n%s", diff)
		}
		lines := encode(r)
		again := newBench(t, Options{}).decode(lines, Nanosecond, testNow)
		if again.Dropped != 0 {
			t.Fatalf("encoded again as %q: %v", lines, again.Errors)
		}
		if diff := gocmp.Diff(first, points(t, again), gocmp.AllowUnexported(point{})); diff != "" {
			t.Fatalf("encoded again as %q (-want +got):\n%s", lines, diff)
		}
	})
}
