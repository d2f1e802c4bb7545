package tests

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// runToEnd runs the binary, which is expected to end by itself, and returns
// its exit code and what it wrote.
func runToEnd(t *testing.T, env []string, args ...string) (code int, output string) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("varve %s runs on:\n%s", strings.Join(args, " "), out)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestConfigurationErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.toml")
	if err := os.WriteFile(file, []byte("[http]\nadress = \"127.0.0.1:0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(env string, args []string, want ...string) {
		t.Helper()
		code, out := runToEnd(t, []string{env}, append([]string{"standalone", "start", "--data-home", dir}, args...)...)
		if code != 1 || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: exit code %d, want 1 and one line: %s", args, code, out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%v: %q does not say %s", args, out, w)
			}
		}
	}
	f("X=", []string{"-c", file}, `"http.adress"`, file)
	f("X=", []string{"-c", file + "x"}, file+"x", "does not exist")
	f("VARVE_STANDALONE__HTTP__ADRESS=x", nil, `"http.adress"`, "VARVE_STANDALONE__")
	f("X=", []string{"--http-addr", "0.0.0.0:0"}, "--allow-unauthenticated")
	f("X=", []string{"--memory-limit", "lots"}, "memory.limit", "lots")
	f("X=", []string{"--bogus"}, "--bogus")
}

func TestOneProcessPerDataDirectory(t *testing.T) {
	s := startStandalone(t)
	code, out := runToEnd(t, nil, "standalone", "start", "--http-addr", "127.0.0.1:0", "--data-home", s.home)
	want := fmt.Sprintf("%s is in use by another varve (process %d)", s.home, s.cmd.Process.Pid)
	if code != 1 || !strings.Contains(out, want) {
		t.Errorf("second server: exit code %d, want 1 and %q: %s", code, want, out)
	}
	s.Kill() // a killed server leaves no lock behind
	s.Start()
}

func TestAdministrativeAddresses(t *testing.T) {
	var target Target = startStandalone(t)
	f := func(path, contentType, want string) {
		t.Helper()
		resp, err := client.Get(target.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), contentType) || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %s, %.200s", path, resp.Status, resp.Header.Get("Content-Type"), body)
		}
		if resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", path)
		}
	}
	f("/health", "application/json", "{}")
	f("/v1/health", "application/json", "{}")
	f("/ready", "application/json", "{}")
	f("/status", "application/json", `"version":`)
	f("/config", "application/toml", "[http]\naddr = ")
	f("/metrics", "text/plain", `varve_memory_budget_bytes{part="duckdb"}`)
	f("/metrics", "text/plain", "go_goroutines")
	f("/metrics", "text/plain", "process_resident_memory_bytes")
}

func TestCompressedBodies(t *testing.T) {
	var target Target = startStandalone(t)
	gz := func(p []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(p)
		_ = w.Close()
		return b.Bytes()
	}
	zs := func(p []byte) []byte {
		w, _ := zstd.NewWriter(nil)
		return w.EncodeAll(p, nil)
	}
	f := func(encoding string, body []byte, want int) {
		t.Helper()
		status, answer, err := post(target.URL()+"/write", body, "Content-Encoding", encoding)
		if err != nil || status != want {
			t.Errorf("%s: status %d, want %d: %s %v", encoding, status, want, answer, err)
		}
	}
	f("gzip", gz([]byte("packed,by=gzip v=1 1")), 204)
	f("zstd", zs([]byte("packed,by=zstd v=1 1")), 204)
	f("snappy", snappy.Encode(nil, []byte("packed,by=snappy v=1 1")), 204)
	f("identity", []byte("packed,by=none v=1 1"), 204)
	f("br", []byte("x"), 415)
	f("gzip", []byte("packed,by=liar v=1 1"), 400)
	f("gzip", gz(make([]byte, 80<<20)), 413) // 80 MiB of zeros in 80 KiB
	expectRows(t, target, "SELECT \"by\" FROM packed ORDER BY \"by\"", "gzip", "none", "snappy", "zstd")
}

func TestGzippedAnswers(t *testing.T) {
	var target Target = startStandalone(t)
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("wide,host=h%d v=%d %d", i, i, i))
	}
	mustWrite(t, target, lines...)
	req, err := http.NewRequest("GET", target.URL()+"/v1/sql?sql=SELECT+host,v+FROM+wide", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatal("the answer is not compressed")
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a sqlAnswer
	if err := json.NewDecoder(z).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Output[0].Records.Rows); n != 500 {
		t.Errorf("%d rows, want 500", n)
	}
}

// TestManyAtOnce writes and reads from many clients, each sees its own rows as
// soon as they are acknowledged, and in the end all are there.
func TestManyAtOnce(t *testing.T) {
	var target Target = startStandalone(t)
	const clients, batches = 16, 10
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for b := range batches {
				// All write to one table that nobody has made, each with a column of its own.
				if err := writeLines(target, fmt.Sprintf("many,client=c%d,batch=b%d own%d=%d,total=1 %d", c, b, c, b, b)); err != nil {
					t.Error(err)
					return
				}
				a, err := runSQL(target, fmt.Sprintf("SELECT count(*) FROM many WHERE client = 'c%d'", c))
				if err != nil {
					t.Error(err)
					return
				}
				if got := fmt.Sprint(a.Output[0].Records.Rows); got != fmt.Sprintf("[[%d]]", b+1) {
					t.Errorf("client %d sees %s of its rows, wrote %d", c, got, b+1)
				}
			}
		})
	}
	group.Wait()
	expectRows(t, target, "SELECT count(*), sum(total) FROM many", fmt.Sprintf("%d %d.0", clients*batches, clients*batches))
}
