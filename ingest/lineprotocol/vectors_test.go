package lineprotocol

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A vector is one case of the protocol's own corpus.
type vector struct {
	Input struct {
		DefaultTime int64
		Precision   string
		Text        text
	}
	Output struct {
		Error  string
		Result []struct {
			Name   text
			Tags   []struct{ Key, Value text }
			Fields []struct {
				Key   text
				Value map[string]json.RawMessage
			}
			Time int64
		}
	}
}

// A text is a string, or {"binary": base64}.
type text []byte

func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
		return nil
	}
	var b struct{ Binary []byte }
	err := json.Unmarshal(data, &b)
	*t = b.Binary
	return err
}

func readVectors(t testing.TB) map[string]vector {
	t.Helper()
	data, err := os.ReadFile("../../tests/testdata/line-protocol-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors map[string]vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func (v *vector) precision(t testing.TB) Precision {
	t.Helper()
	p, err := ParsePrecision(strings.TrimPrefix(v.Input.Precision, "1"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (v *vector) points() []point {
	var list []point
	for _, r := range v.Output.Result {
		p := point{name: string(r.Name), time: r.Time}
		var tags, fields []string
		for _, tag := range r.Tags {
			tags = append(tags, fmt.Sprintf("%q=%q", tag.Key, tag.Value))
		}
		for _, f := range r.Fields {
			for kind, raw := range f.Value {
				fields = append(fields, fmt.Sprintf("%q=%s", f.Key, valueText(kind, raw)))
			}
		}
		slices.Sort(tags)
		slices.Sort(fields)
		p.tags, p.fields = strings.Join(tags, " "), strings.Join(fields, " ")
		list = append(list, p)
	}
	return list
}

func valueText(kind string, raw json.RawMessage) string {
	switch kind {
	case "int":
		return string(raw) + "i"
	case "uint":
		return string(raw) + "u"
	case "float":
		f, _ := strconv.ParseFloat(string(raw), 64)
		return floatText(f)
	case "string":
		var s text
		_ = s.UnmarshalJSON(raw)
		return strconv.Quote(string(s))
	default:
		return string(raw)
	}
}

var (
	errorLine   = regexp.MustCompile(`at line (\d+):`)
	errorMetric = regexp.MustCompile(`cannot get metric (\d+):`)
)

// Every vector of the protocol decodes as it says. One with an error fixes the
// first bad line and how many good ones come before it; good ones after it are
// decoded all the same.
func TestVectors(t *testing.T) {
	results, errs := 0, 0
	for name, v := range readVectors(t) {
		b := newBench(t, Options{MaxErrors: 1 << 20})
		r := b.decode(v.Input.Text, v.precision(t), v.Input.DefaultTime)
		got := points(t, r)
		if v.Output.Error == "" {
			results++
			if r.Dropped != 0 {
				t.Errorf("%s: %q: dropped: %v", name, v.Input.Text, r.Errors)
			}
			if diff := cmp.Diff(sortPoints(v.points()), sortPoints(got), cmp.AllowUnexported(point{})); diff != "" {
				t.Errorf("%s: %q (-want +got):\n%s", name, v.Input.Text, diff)
			}
			continue
		}
		errs++
		if r.Dropped == 0 || len(r.Errors) != r.Dropped || r.Rows != len(got) {
			t.Errorf("%s: %q: want %s; got %d rows, %d dropped, %v", name, v.Input.Text, v.Output.Error, r.Rows, r.Dropped, r.Errors)
			continue
		}
		if m := errorLine.FindStringSubmatch(v.Output.Error); m != nil && m[1] != strconv.Itoa(r.Errors[0].Line) {
			t.Errorf("%s: %q: want %s; got %v", name, v.Input.Text, v.Output.Error, r.Errors)
		}
		m := errorMetric.FindStringSubmatch(v.Output.Error)
		good, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if r.Rows < good {
			t.Errorf("%s: %q: want %s; got %d rows", name, v.Input.Text, v.Output.Error, r.Rows)
		}
	}
	if results != 242 || errs != 3726 {
		t.Errorf("ran %d vectors with results and %d with errors", results, errs)
	}
}
