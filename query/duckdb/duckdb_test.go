package duckdb

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestHeaderVersion compares the header here with that of the module that is
// linked.
func TestHeaderVersion(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/duckdb/duckdb-go-bindings").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	theirs, err := os.ReadFile(strings.TrimSpace(string(out)) + "/include/duckdb.h")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("duckdb.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ours, theirs) {
		t.Error("duckdb.h differs from the module's: copy it again, and its version into VERSION.duckdb.h.md")
	}
}

// TestErrors expects a message without the quoted line, and its class.
func TestErrors(t *testing.T) {
	f := func(text, class, message string) {
		t.Helper()
		if e := newError(text); e.Class != class || e.Message != message {
			t.Errorf("%q is %q and %q", text, e.Class, e.Message)
		}
	}
	f("Binder Error: no column x\n\nLINE 1: SELECT x\n               ^", "Binder", "no column x")
	f("Out of Memory Error: failed", "Out of Memory", "failed")
	f("Invalid Input Error: Attempting to execute an unsuccessful or closed pending query result\nError: Out of Memory Error: failed", "Out of Memory", "failed")
	f("Query interrupted", "", "Query interrupted")
	f("panic: \"Some Error: x\"", "", "panic: \"Some Error: x\"")
}
