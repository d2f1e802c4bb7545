package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/varvedb/varve/openapi/openapitest"
)

// client is used by all tests; a test that hangs fails by its timeout. What is
// not as the OpenAPI document says is an error of the exchange.
var client = &http.Client{
	Timeout: 60 * time.Second,
	Transport: &openapitest.Transport{
		Base: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	},
}

// post sends a body and returns the status and the answer.
func post(url string, body []byte, header ...string) (status int, answer string, err error) {
	req, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// writeLines sends line protocol with timestamps in nanoseconds; an error
// means that the lines may or may not have been written.
func writeLines(target Target, lines ...string) error {
	status, answer, err := post(target.URL()+"/v1/influxdb/write", []byte(strings.Join(lines, "\n")))
	if err == nil && status != http.StatusNoContent {
		err = fmt.Errorf("write: status %d: %s", status, answer)
	}
	return err
}

func mustWrite(t *testing.T, target Target, lines ...string) {
	t.Helper()
	if err := writeLines(target, lines...); err != nil {
		t.Fatal(err)
	}
}

// sqlAnswer is greptimedb_v1.
type sqlAnswer struct {
	Output []struct {
		AffectedRows *int `json:"affectedrows"`
		Records      *struct {
			Schema struct {
				Columns []struct {
					Name string `json:"name"`
					Type string `json:"data_type"`
				} `json:"column_schemas"`
			} `json:"schema"`
			Rows  [][]any `json:"rows"`
			Total int     `json:"total_rows"`
		} `json:"records"`
	} `json:"output"`
	Error string `json:"error"`
	Code  int    `json:"code"`
}

// runSQL runs a statement in the database public.
func runSQL(target Target, statement string) (*sqlAnswer, error) {
	form := url.Values{"sql": {statement}}.Encode()
	status, text, err := post(target.URL()+"/v1/sql", []byte(form), "Content-Type", "application/x-www-form-urlencoded")
	if err != nil {
		return nil, err
	}
	var a sqlAnswer
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		return nil, fmt.Errorf("%s: status %d, not JSON: %w: %s", statement, status, err, text)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d, code %d: %s", statement, status, a.Code, a.Error)
	}
	return &a, nil
}

// rowsOf runs a query and returns its rows, one line each, values separated by
// a space.
func rowsOf(t *testing.T, target Target, query string) []string {
	t.Helper()
	a, err := runSQL(target, query)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Output) != 1 || a.Output[0].Records == nil {
		t.Fatalf("%s: no records in the answer", query)
	}
	var rows []string
	for _, r := range a.Output[0].Records.Rows {
		rows = append(rows, strings.TrimSuffix(fmt.Sprintln(r...), "\n"))
	}
	return rows
}

func expectRows(t *testing.T, target Target, query string, want ...string) {
	t.Helper()
	if got := rowsOf(t, target, query); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\ngot\n  %s\nwant\n  %s", query, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
