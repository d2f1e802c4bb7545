package handlers

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What an answer lacks is said in all formats, before a short answer and
// behind a long one, and is an error for those who are strict.
func TestWarnings(t *testing.T) {
	const want = "table cpu: 1 damaged file was left out, wholly or in part; run varve check"
	for _, rows := range []int64{10, 100_000} {
		address, g := serveGenerated(t, rows)
		for _, g.damaged = range []bool{false, true} {
			for format := range streamed {
				if strings.Contains(format, "limit=") && rows > 10 {
					continue // ends before the damage
				}
				resp, body, err := fetch(t, address+format, "")
				if err != nil {
					t.Errorf("%s: %v", format, err)
					continue
				}
				got := append(resp.Header.Values("x-varve-warnings"), resp.Trailer.Values("x-varve-warnings")...)
				if len(got) == 1 != g.damaged || g.damaged && got[0] != want {
					t.Errorf("%s, damaged %v: the header or trailer is %q", format, g.damaged, got)
				}
				var answer struct{ Warnings []string }
				if resp.Header.Get("Content-Type") != jsonType {
					continue
				}
				if err := json.Unmarshal(body, &answer); err != nil || body[len(body)-1] != '\n' {
					t.Errorf("%s: ends with %q: %v", format, body[max(0, len(body)-10):], err)
				}
				if len(answer.Warnings) == 1 != g.damaged || g.damaged && answer.Warnings[0] != want {
					t.Errorf("%s, damaged %v: the warnings are %q", format, g.damaged, answer.Warnings)
				}
			}
		}
	}
}

// fetch reads an answer to its end; strict is the header x-varve-strict.
func fetch(t *testing.T, address, strict string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strict != "" {
		req.Header.Set("x-varve-strict", strict)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func TestStrict(t *testing.T) {
	for _, rows := range []int64{10, 100_000} {
		address, g := serveGenerated(t, rows)
		f := func(format, strict string, fails bool) {
			t.Helper()
			resp, body, err := fetch(t, address+format, strict)
			failed := err != nil || resp.StatusCode == 503 && strings.Contains(string(body), `"code":5000`) ||
				strings.Contains(string(body[max(0, len(body)-300):]), `,"code":5000,"error":"rows are missing: table cpu: `)
			if failed != fails {
				t.Errorf("%d rows, %s, strict %q: %v %.300s", rows, format, strict, err, body)
			}
			if rows == 10 && fails && (err != nil || resp.StatusCode != 503) {
				t.Errorf("%s: a short answer has begun before its error: %v %.300s", format, err, body)
			}
		}
		f("json", "true", false)
		g.damaged = true
		for format := range streamed {
			if strings.Contains(format, "limit=") {
				continue
			}
			f(format, "true", true)
			f(format, "false", false)
			f(format+"&strict=1", "", true)
			f(format+"&strict=1", "false", false)
		}
	}
}

func TestStrictIsTrueOrFalse(t *testing.T) {
	address, _ := serveGenerated(t, 1)
	if resp, body, err := fetch(t, address+"csv", "very"); err != nil || resp.StatusCode != 400 {
		t.Errorf("%v %s", err, body)
	}
}
