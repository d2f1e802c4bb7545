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
	f("1 tables; 1 regions with 1 files of 2 rows", "check", s.home)
	f("table 1 region 0 sequence 2", "inspect", "wal", filepath.Join(s.home, "wal"))
	f("level 0, 2 rows", "inspect", "manifest", filesOf(t, s.home, "data/table/*/*/manifest")[0])
	f("usage DOUBLE FIELD", "inspect", "catalog", filepath.Join(s.home, "data/catalog"))
	f("greptime_timestamp", "inspect", "sst", filesOf(t, s.home, "data/table/*/*/sst/*.parquet")[0])
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
