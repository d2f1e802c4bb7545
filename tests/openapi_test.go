package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/varvedb/varve/openapi/openapitest"
)

// The server gives out the document that tests are checked against.
func TestServesItsDocument(t *testing.T) {
	var target Target = startStandalone(t)
	resp, err := client.Get(target.URL() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") || doc.Paths["/v1/sql"] == nil {
		t.Errorf("openapi %q, %d paths", doc.OpenAPI, len(doc.Paths))
	}
	resp, err = client.Get(target.URL() + "/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(text, []byte("openapi: 3.1.")) {
		t.Errorf("openapi.yaml: %.100s, %v", text, err)
	}
}

// Every format of a result is as the document says, over the real server.
func TestFormatsOverHTTP(t *testing.T) {
	var target Target = startStandalone(t)
	mustWrite(t, target, "cpu,host=a usage=1.5 1700000000000000000", "cpu,host=b usage=2.5 1700000001000000000")
	f := func(format, contentType, want string) {
		t.Helper()
		query := url.Values{"sql": {"SELECT host, usage, greptime_timestamp AS ts FROM cpu ORDER BY host"}, "format": {format}}
		if name, epoch, ok := strings.Cut(format, "&epoch="); ok {
			query.Set("format", name)
			query.Set("epoch", epoch)
		}
		resp, err := client.Get(target.URL() + "/v1/sql?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), contentType) || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %s: %s", format, resp.Status, resp.Header.Get("Content-Type"), body)
		}
		if !strings.Contains(resp.Header.Get("x-greptime-metrics"), `"rows_returned":2`) {
			t.Errorf("%s: x-greptime-metrics is %q", format, resp.Header.Get("x-greptime-metrics"))
		}
	}
	f("greptimedb_v1", "application/json", `["a",1.5,1700000000000000000]`)
	f("json", "application/json", `{"host":"a","usage":1.5,"ts":1700000000000000000}`)
	f("csv", "text/csv", "a,1.5,1700000000000000000\r\n")
	f("csvwithnames", "text/csv", "host,usage,ts\r\n")
	f("csvwithnamesandtypes", "text/csv", "String,Float64,TimestampNanosecond\r\n")
	f("table", "text/plain", `│ "a"  │ 1.5   │ 1700000000000000000 │`)
	f("arrow", "application/arrow", "host")
	f("influxdb_v1", "application/json", `["a",1.5,1700000000000000000]`)
	f("influxdb_v1&epoch=ms", "application/json", `["a",1.5,1700000000000]`)
	f("null", "text/plain", "2 rows in set.")
}

func TestParseAndFormatOverHTTP(t *testing.T) {
	var target Target = startStandalone(t)
	f := func(path, sql, want string) {
		t.Helper()
		form := url.Values{"sql": {sql}}.Encode()
		_, answer, err := post(target.URL()+path, []byte(form), "Content-Type", "application/x-www-form-urlencoded")
		if err != nil || !strings.Contains(answer, want) {
			t.Errorf("%s %s: %s, %v; want %s", path, sql, answer, err, want)
		}
	}
	f("/v1/sql/format", "select 1 as x", `{"formatted":"SELECT 1 AS x;"}`)
	f("/v1/sql/parse", "select 1 as x", `[{"Query":{`)
	f("/v1/sql/parse", "selec 1", `"code":2000`)
}

// TestContractFinds proves that what is not as the document says fails a test.
func TestContractFinds(t *testing.T) {
	f := func(method, path, contentType string, status int, body, want string) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("x-greptime-format", "json")
			w.Header().Set("x-greptime-execution-time", "0")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}))
		defer s.Close()
		client := &http.Client{Transport: &openapitest.Transport{Base: http.DefaultTransport}}
		req, err := http.NewRequest(method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s, %d %s: %v, want %q", method, path, status, body, err, want)
		}
	}
	f("GET", "/v1/sql?sql=x&format=json", "application/json", 200, `{"data":[],"execution_time_ms":0}`, "")
	f("GET", "/v1/sql?sql=x&format=json", "application/json", 200, `{"data":[],"execution_time":0}`, "the answer is not as the OpenAPI document says")
	f("GET", "/v1/sql?sql=x&format=json", "application/json", 200, `{"data":[]`, "the answer is not as the OpenAPI document says")
	f("GET", "/v1/sql?sql=x&format=json", "text/html", 200, `<p>`, "the answer is not as the OpenAPI document says")
	f("GET", "/v1/sql?sql=x&format=xml", "application/json", 200, `{"data":[],"execution_time_ms":0}`, "but was taken")
	f("GET", "/v1/sql?sql=x&limit=x", "application/json", 200, `{"data":[],"execution_time_ms":0}`, "but was taken")
	f("GET", "/v1/sql?sql=x", "application/json", 201, `{"data":[],"execution_time_ms":0}`, "status is not supported")
	f("GET", "/v1/sql", "application/json", 400, `{"error":"x"}`, "x-greptime-err-code")
	f("GET", "/v1/nothing", "application/json", 200, `{}`, "has no such address")
	f("GET", "/v1/nothing", "application/json", 404, `{}`, "")
	f("GET", "/ready", "application/json", 200, `{"ready":true}`, "the answer is not as the OpenAPI document says")
}
