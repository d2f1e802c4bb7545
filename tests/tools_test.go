package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filesOf returns the files under dir that match a pattern of their paths.
func filesOf(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s in %s: %v", pattern, dir, err)
	}
	return files
}

// tree returns the names and contents of all files under dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCheckAndInspect(t *testing.T) {
	s := startStandalone(t)
	mustWrite(t, s, "cpu,host=a usage=1 1000", "cpu,host=b usage=2 1000")
	if code, out := runToEnd(t, nil, "check", s.home); code != 1 || !strings.Contains(out, "stop it first") {
		t.Errorf("check of a running server: exit code %d: %s", code, out)
	}
	if _, err := runSQL(s, "ADMIN flush_table('cpu')"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, "cpu,host=c usage=3 1000")
	s.Kill()

	before := tree(t, s.home)
	f := func(want string, args ...string) {
		t.Helper()
		if code, out := runToEnd(t, nil, args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("varve %s: exit code %d, want 0 and %q:\n%s", strings.Join(args, " "), code, want, out)
		}
	}
	f("tables: 1; regions: 1, files: 1, rows in them: 2;", "check", s.home)
	f("table 1 region 0 sequence 2", "inspect", "wal", filepath.Join(s.home, "wal"))
	f("level 0, 2 rows", "inspect", "manifest", filesOf(t, s.home, "data/table/*/*/manifest")[0])
	f("usage DOUBLE FIELD", "inspect", "catalog", filepath.Join(s.home, "data/catalog"))
	f("greptime_timestamp", "inspect", "sst", filesOf(t, s.home, "data/table/*/*/sst/*.parquet")[0])
	f("table 1 region 0 sequence 2", "inspect", "wal", s.home)
	f("usage DOUBLE FIELD", "inspect", "catalog", s.home)
	f("times 1000 (1970-01-01T00:00:00.000001Z) …", "inspect", "manifest", filesOf(t, s.home, "data/table/*/*/manifest")[0])

	// A path of something else is told from damage.
	wrong := func(want string, args ...string) {
		t.Helper()
		code, out := runToEnd(t, nil, args...)
		if code != 1 || !strings.Contains(out, want) || strings.Contains(strings.ToLower(out), "damaged") {
			t.Errorf("varve %s: exit code %d, want 1, %q and nothing of damage:\n%s", strings.Join(args, " "), code, want, out)
		}
	}
	region := filesOf(t, s.home, "data/table/*/*")[0]
	empty := t.TempDir()
	wrong("did you mean "+region+"/manifest?", "inspect", "manifest", region)
	wrong("expected DATA_HOME/data/catalog or", "inspect", "manifest", region+"/sst")
	wrong("is empty; expected", "inspect", "manifest", empty)
	wrong("is empty; expected", "inspect", "catalog", empty)
	wrong("is no edit log", "inspect", "catalog", filepath.Dir(region))
	wrong("holds no segments", "inspect", "wal", empty)
	wrong("expected a file", "inspect", "sst", region)
	wrong("is not a data directory", "check", empty)
	after := tree(t, s.home)
	for name := range after {
		if after[name] != before[name] {
			t.Errorf("the tools changed %s", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
}

// TestCheckFindsDamage flips one byte of a file of each kind.
func TestCheckFindsDamage(t *testing.T) {
	s := startStandalone(t)
	mustWrite(t, s, "cpu,host=a usage=1 1000", "cpu,host=b usage=2 1000")
	if _, err := runSQL(s, "ADMIN flush_table('cpu')"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, "cpu,host=c usage=3 1000")
	mustWrite(t, s, "cpu,host=d usage=4 1000")
	s.Kill()
	for _, pattern := range []string{"data/catalog/0*", "data/table/*/*/manifest/0*", "data/table/*/*/sst/*.parquet"} {
		name := filesOf(t, s.home, pattern)[0]
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damaged := []byte(string(text))
		damaged[len(damaged)/2] ^= 0x10
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := filepath.Rel(filepath.Join(s.home, "data"), name)
		if err != nil {
			t.Fatal(err)
		}
		if code, out := runToEnd(t, nil, "check", s.home); code != 1 || !strings.Contains(out, "WRONG") || !strings.Contains(out, filepath.ToSlash(key)) {
			t.Errorf("%s is damaged: exit code %d, want 1 and its name:\n%s", key, code, out)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := runToEnd(t, nil, "check", s.home); code != 0 {
		t.Errorf("all is mended, and check still says:\n%s", out)
	}
}

func TestCommandLine(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		if got, out := runToEnd(t, nil, args...); got != code || !strings.Contains(out, want) {
			t.Errorf("varve %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, want, out)
		}
	}
	f(0, "varve ", "--version")
	f(0, "(commit ", "version")
	f(0, "VARVE_STANDALONE__HTTP__ADDR", "standalone", "start", "--help")
	f(0, "inspect [command]", "inspect")
	f(1, `did you mean "start"?`, "standalone", "strat")
	f(1, `did you mean "wal"?`, "inspect", "wall")
	f(1, `unknown command "x" for "varve inspect"`, "inspect", "x")
	f(1, "Did you mean this?", "standalon")
	f(1, "varve check DATA_HOME", "check")
	f(1, "varve inspect wal PATH", "inspect", "wal")
}

// TestHealthcheckFindsTheServer gives it what the server was given.
func TestHealthcheckFindsTheServer(t *testing.T) {
	s := startStandalone(t)
	addr := strings.TrimPrefix(s.URL(), "http://")
	_, port, _ := strings.Cut(addr, ":")
	f := func(code int, env string, args ...string) {
		t.Helper()
		if got, out := runToEnd(t, []string{env}, append([]string{"healthcheck"}, args...)...); got != code {
			t.Errorf("%s %v: exit code %d, want %d: %s", env, args, got, code, out)
		}
	}
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("[http]\naddr = \""+addr+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(0, "VARVE_STANDALONE__HTTP__ADDR="+addr)
	f(0, "VARVE_STANDALONE__HTTP__ADDR=0.0.0.0:"+port)
	f(0, "X=", "--http-addr", ":"+port)
	f(0, "X=", "-c", file)
	f(0, "X=", "--url", s.URL()+"/ready")
	f(1, "VARVE_STANDALONE__HTTP__ADDR=127.0.0.1:1")
	f(1, "X=", "--url", s.URL()+"/nowhere")
}

func TestUnknownEnvironmentIsToldOf(t *testing.T) {
	t.Setenv("VARVE_STANDALONE_HTTP_ADDR", "127.0.0.1:1")
	s := startStandalone(t)
	if !strings.Contains(s.log.tail(), "name=VARVE_STANDALONE_HTTP_ADDR") {
		t.Errorf("no warning:\n%s", s.log.tail())
	}
}
