package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// answerOf runs a statement and returns the whole answer.
func answerOf(t *testing.T, target Target, format, statement, strict string) (*http.Response, string) {
	t.Helper()
	form := url.Values{"sql": {statement}, "format": {format}}.Encode()
	req, err := http.NewRequest("POST", target.URL()+"/v1/sql", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if strict != "" {
		req.Header.Set("x-varve-strict", strict)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Rows that damaged files have lost are missed by everybody who asks for them:
// a server answers from what it has and says so, or not at all.
func TestDamagedFiles(t *testing.T) {
	damages := map[string]func(name string, data []byte) error{
		"page": func(name string, data []byte) error {
			data[bytes.Index(data, []byte("PAR1"))+40] ^= 1
			return os.WriteFile(name, data, 0o600)
		},
		"footer": func(name string, data []byte) error {
			data[len(data)-20] ^= 1
			return os.WriteFile(name, data, 0o600)
		},
		"short":   func(name string, data []byte) error { return os.WriteFile(name, data[:len(data)/2], 0o600) },
		"missing": func(name string, _ []byte) error { return os.Remove(name) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			s := startStandalone(t)
			for _, lines := range [][]string{{"node,host=a v=1 1", "node,host=b v=2 2"}, {"node,host=c v=3 3"}} {
				mustWrite(t, s, lines...)
				if _, err := runSQL(s, "ADMIN flush_table('node')"); err != nil {
					t.Fatal(err)
				}
			}
			mustWrite(t, s, "sound,host=a v=1 1")
			s.Stop()
			file := filesOf(t, s.home, "data/table/*/*/sst/*.parquet")[0]
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(file, data); err != nil {
				t.Fatal(err)
			}
			s.Start()
			checkDamaged(t, s)
			s.Stop()
			checkStrict(t, s)
		})
	}
}

const lacks = "table node: 1 damaged file was left out"

func checkDamaged(t *testing.T, s *standalone) {
	t.Helper()
	const query = "SELECT sum(v), min(host), max(greptime_timestamp) FROM node"
	for _, format := range []string{"greptimedb_v1", "json", "influxdb_v1", "csv", "table", "arrow", "null"} {
		resp, body := answerOf(t, s, format, query, "")
		inBody := strings.Contains(body, `"warnings":["`+lacks)
		if isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"); resp.StatusCode != 200 || inBody != isJSON {
			t.Errorf("%s: %d %s", format, resp.StatusCode, body)
		}
		if h := resp.Header.Values("x-varve-warnings"); len(h) != 1 || !strings.HasPrefix(h[0], lacks) {
			t.Errorf("%s: the header says %q", format, h)
		}
		if resp, body := answerOf(t, s, format, query, "true"); resp.StatusCode != 503 || !strings.Contains(body, lacks) ||
			resp.Header.Get("x-greptime-err-code") != "5000" {
			t.Errorf("%s, strict: %d %s", format, resp.StatusCode, body)
		}
		if resp, body := answerOf(t, s, format, "SELECT * FROM sound", "true"); resp.StatusCode != 200 || len(resp.Header.Values("x-varve-warnings")) > 0 {
			t.Errorf("%s, another table: %d %s", format, resp.StatusCode, body)
		}
	}
	if _, body := answerOf(t, s, "csv", "EXPLAIN ANALYZE "+query, ""); !strings.Contains(body, "damaged files: 1") {
		t.Errorf("EXPLAIN ANALYZE does not show the damage: %s", body)
	}
	for _, insert := range []string{
		"INSERT INTO sound SELECT * FROM node",
		"INSERT INTO sound (host, v, greptime_timestamp) VALUES ('x', (SELECT sum(v + length(host)) FROM node WHERE greptime_timestamp < now()), 5)",
	} {
		if resp, body := answerOf(t, s, "json", insert, "false"); resp.StatusCode != 503 || !strings.Contains(body, lacks) {
			t.Errorf("%s: %d %s", insert, resp.StatusCode, body)
		}
	}
	expectRows(t, s, "SELECT count(*) FROM sound", "1")
	var status struct {
		Damaged int `json:"damaged_files"`
	}
	if err := json.Unmarshal([]byte(mustGet(t, s, "/status")), &status); err != nil || status.Damaged != 1 {
		t.Errorf("/status counts %d damaged files: %v", status.Damaged, err)
	}
	mustGet(t, s, "/ready")
}

// mustGet returns an answer with status 200.
func mustGet(t *testing.T, target Target, path string) string {
	t.Helper()
	resp, err := client.Get(target.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: %s %v", path, resp.Status, err)
	}
	return string(body)
}

func checkStrict(t *testing.T, s *standalone) {
	t.Helper()
	t.Setenv("VARVE_STANDALONE__QUERY__STRICT", "true")
	s.Start()
	if resp, body := answerOf(t, s, "csv", "SELECT * FROM node", ""); resp.StatusCode != 503 {
		t.Errorf("query.strict: %d %s", resp.StatusCode, body)
	}
	if resp, body := answerOf(t, s, "csv", "SELECT * FROM node", "false"); resp.StatusCode != 200 {
		t.Errorf("query.strict, but not the request: %d %s", resp.StatusCode, body)
	}
}
