package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

const examplePath = "../../config.example.toml"

// TestExampleIsTheDefault holds the example to the structs: every key is there
// with a comment, and says the default.
func TestExampleIsTheDefault(t *testing.T) {
	got, err := Load(Source{File: examplePath})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example differs from the defaults:\n%s", diff)
	}
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	k := koanf.New(".")
	keys, err := toml.Parser().Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Load(confmap.Provider(keys, ""), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range fieldsOf(&want) {
		if !k.Exists(f.key) {
			t.Errorf("key %s is missing", f.key)
		}
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.Contains(line, " = ") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(lines[i-1], "#") {
			t.Errorf("line %d has no comment: %s", i+1, line)
		}
	}
}

func TestFlagsOverEnvironmentOverFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	file := "data_home = \"/file\"\n[http]\naddr = \"127.0.0.1:1\"\nbody_limit = 4096\n[wal]\nmax_bytes = \"32 MiB\"\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Source{
		File:    path,
		Environ: []string{"VARVE_STANDALONE__HTTP__ADDR=127.0.0.1:2", "VARVE_STANDALONE__DATA_HOME=/env", "VARVE_STANDALONE__QUERY__TIMEOUT=90s", "VARVE_STANDALONE__QUERY__MAX_CONCURRENT=7", "OTHER=1"},
		Flags:   map[string]string{"http.addr": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.DataHome, want.HTTP.Addr, want.HTTP.BodyLimit, want.WAL.MaxBytes = "/env", "127.0.0.1:3", 4096, 32<<20
	want.Query.Timeout, want.Query.MaxConcurrent = Duration(90*time.Second), 7
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsNameTheKey(t *testing.T) {
	f := func(file string, environ []string, want ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "c.toml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(Source{File: path, Environ: environ})
		if err == nil {
			t.Errorf("%s %v: no error", file, environ)
			return
		}
		for _, w := range want {
			if !strings.Contains(strings.ToLower(err.Error()), w) {
				t.Errorf("%s %v: %q does not say %q", file, environ, err, w)
			}
		}
	}
	f("[http]\nadr = \"x\"", nil, `"http.adr"`, "c.toml")
	f("[htp]\naddr = \"x\"", nil, `"htp.addr"`)
	f("data_hom = \"x\"", nil, `"data_hom"`)
	f("", []string{"VARVE_STANDALONE__HTTP__ADR=x"}, `"http.adr"`, "environment")
	f("[http", nil, "c.toml")
	f("[http]\nbody_limit = \"64 apples\"", nil, "body_limit", "64 apples")
	f("[query]\ntimeout = \"soon\"", nil, "timeout", "soon")
	f("[query]\ntimeout = 30", nil, "timeout", "30 is not a duration")
	f("[query]\ntimeout = 1.5", nil, "timeout", "1.5 is not a duration")
	f("[query]\ntimeout = true", nil, "timeout", "true is not a duration")
	f("", []string{"VARVE_STANDALONE__QUERY__TIMEOUT=30"}, "timeout", "is not a duration")
	f("[http]\nbody_limit = 4096.5", nil, "body_limit", "is not a size")
	f("[http]\nbody_limit = -4096", nil, "body_limit", "is not a size")
	f("[http]\nbody_limit = true", nil, "body_limit", "is not a size")
	f("[log]\nrequests = \"some\"", nil, "log.requests", "some")
	f("[query]\nmax_concurrent = \"many\"", nil, "max_concurrent")
	f("[wal]\nsync = \"sometimes\"", nil, "wal.sync", "sometimes")
	f("[http]\naddr = \"0.0.0.0:4000\"", nil, "http.addr", "--allow-unauthenticated")
	f("[http]\naddr = \":4000\"", nil, "--allow-unauthenticated")
	f("[http]\naddr = \"example.org:4000\"", nil, "--allow-unauthenticated")
	f("[http]\naddr = \"4000\"", nil, "http.addr")
	f("[memory]\nlimit = \"1MiB\"", nil, "memory.limit")
}

func TestZeroNeedsNoUnit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte("[query]\ntimeout = 0\n[memory]\nlimit = 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{File: path})
	if err != nil || c.Query.Timeout != 0 || c.Memory.Limit != 0 {
		t.Errorf("got %v, %v, %v", c.Query.Timeout, c.Memory.Limit, err)
	}
}

func TestUnknownEnviron(t *testing.T) {
	got := UnknownEnviron([]string{"PATH=/bin", "VARVE_STANDALONE__HTTP__ADDR=x", "VARVE_HTTP_ADDR=x", "Varve_Standalone__Log__Level=x", "VARVE_STANDALONE_HTTP_ADDR=x"})
	want := []string{"VARVE_HTTP_ADDR", "VARVE_STANDALONE_HTTP_ADDR", "Varve_Standalone__Log__Level"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBind(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "127.1.2.3:4000", "[::1]:4000", "localhost:4000"} {
		if _, err := Load(Source{Flags: map[string]string{"http.addr": addr}}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	flags := map[string]string{"http.addr": "0.0.0.0:4000", "http.allow_unauthenticated": "true"}
	if _, err := Load(Source{Flags: flags}); err != nil {
		t.Error(err)
	}
}

func TestUnits(t *testing.T) {
	size := func(in string, want Size, text string) {
		t.Helper()
		var s Size
		if err := s.UnmarshalText([]byte(in)); err != nil || s != want || s.String() != text {
			t.Errorf("%s: got %d (%s), %v", in, s, s, err)
		}
	}
	size("64MiB", 64<<20, "64MiB")
	size("1.5 gib", 1536<<20, "1536MiB")
	size("1MB", 1e6, "1000000")
	size("4096", 4096, "4KiB")
	size("0", 0, "0")
	duration := func(in, text string) {
		t.Helper()
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || d.String() != text {
			t.Errorf("%s: got %s, %v", in, d, err)
		}
	}
	duration("1h", "1h")
	duration("90s", "1m30s")
	duration("7d", "168h")
	duration("0s", "0s")
	duration("10m", "10m")
}

func TestTOMLReadsBack(t *testing.T) {
	c := Default()
	c.HTTP.Addr, c.Memory.Limit, c.Query.MaxQueued = "127.0.0.1:9", 1<<30, 5
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, c.TOML(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Source{File: path})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
}
