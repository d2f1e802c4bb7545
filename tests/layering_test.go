// Package tests holds what is tested on the whole: the layers of the source
// tree, and the real binary over its protocols.
package tests

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/varvedb/varve"

// layers is the list of docs/architecture, lowest first. A package imports
// only lower lines; subfolders of one top folder may import each other.
var layers = [][]string{
	{"fault", "openapi", "dashboard"},
	{"table", "objectstore", "telemetry"},
	{"storage", "catalog", "otlp"},
	{"ingest", "query", "promql"},
	{"sql"},
	{"flow"},
	{"handlers"},
	{"server"},
	{"cmd", "tests"},
}

// unlayered are folders with Go files that nothing imports.
var unlayered = []string{"tools"}

// TestLayering reads every Go file of the repository itself, because `go list`
// answers from a cache after a bad import was added.
func TestLayering(t *testing.T) {
	problems, files, err := checkLayering(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d Go files found: the test looks in the wrong place", files)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestLayeringFinds proves that each rule can fail.
func TestLayeringFinds(t *testing.T) {
	f := func(file, imported, want string) {
		t.Helper()
		src := "package x\nimport _ \"" + module + "/" + imported + "\"\n"
		problems, _, err := checkLayering(fstest.MapFS{file: {Data: []byte(src)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(problems, "\n"); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s importing %s: got %q, want %q", file, imported, got, want)
		}
	}
	f("query/a.go", "table", "")
	f("query/duck/a.go", "query", "")
	f("server/a.go", "storage/wal", "")
	f("cmd/varve/a.go", "storage/sst", "")
	f("query/a_test.go", "storage/storagetest", "")
	f("table/a.go", "query", "does not point downwards")
	f("query/a.go", "ingest", "does not point downwards")
	f("catalog/a.go", "storage", "does not point downwards")
	f("query/a.go", "storage/wal", "only server and cmd")
	f("query/a_test.go", "storage/wal", "only server and cmd")
	f("query/a.go", "storage/storagetest", "only from tests")
	f("server/a.go", "objectstore/objectstoretest", "only from tests")
	f("util/a.go", "table", "has no layer")
	f("query/a.go", "util", "has no layer")
}

// checkLayering returns what is wrong and how many files it read.
func checkLayering(root fs.FS) (problems []string, files int, err error) {
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipDir(d.Name()):
			return fs.SkipDir
		case d.IsDir(), path.Ext(name) != ".go", path.Dir(name) == ".":
			return nil
		}
		files++
		found, err := checkFile(root, name)
		problems = append(problems, found...)
		return err
	})
	return problems, files, err
}

func skipDir(name string) bool {
	return name == "testdata" || name == "node_modules" || len(name) > 1 && name[0] == '.'
}

func checkFile(root fs.FS, name string) (problems []string, err error) {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	if layerOf(name) < 0 && !slices.Contains(unlayered, top(name)) {
		problems = append(problems, path.Dir(name)+": has no layer")
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, errors.Join(errors.New(name), err)
		}
		if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
			if p := checkImport(name, rest); p != "" {
				problems = append(problems, name+": import of "+rest+" "+p)
			}
		}
	}
	return problems, nil
}

// checkImport returns what is wrong with file importing the folder imported.
func checkImport(file, imported string) string {
	from, to := layerOf(file), layerOf(imported+"/x.go")
	isTest := strings.HasSuffix(file, "_test.go") || strings.HasSuffix(path.Base(path.Dir(file)), "test")
	sameTop := top(file) == top(imported)
	switch {
	case to < 0:
		return "has no layer"
	case strings.HasSuffix(path.Base(imported), "test") && !isTest:
		return "is allowed only from tests"
	case sameTop:
		return ""
	case imported == "storage/storagetest" && isTest:
		return "" // the published way for upper packages to test on a real engine
	case strings.HasPrefix(imported+"/", "storage/") && !slices.Contains([]string{"server", "cmd"}, top(file)):
		if to >= from {
			return "does not point downwards"
		}
		return "is allowed for only server and cmd"
	case to >= from:
		return "does not point downwards"
	}
	return ""
}

func top(name string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	return first
}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, top(name)) })
}
