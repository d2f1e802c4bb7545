package tests

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandBlock matches the commands of a page. README's are run by
// tests/quickstart.
var commandBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestCommandsInDocs runs every block of commands under docs/, in order, on the
// data of a server that has stopped.
func TestCommandsInDocs(t *testing.T) {
	s := startStandalone(t)
	mustWrite(t, s, "cpu,host=a usage=1 1000")
	if _, err := runSQL(s, "ADMIN flush_table('cpu')"); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(path, filepath.Join(bin, "varve")); err != nil {
		t.Fatal(err)
	}
	run := func(page, commands string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", commands)
		cmd.Env = append(os.Environ(), "DATA_HOME="+s.home, "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s:\n%s%v\n%s", page, commands, err, out)
		}
	}
	blocks := 0
	err = filepath.WalkDir("../docs", func(page string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(page, ".md") {
			return err
		}
		text, err := os.ReadFile(page)
		for _, m := range commandBlock.FindAllSubmatch(text, -1) {
			blocks++
			run(page, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if blocks == 0 {
		t.Error("no block of commands was found")
	}
}

// link matches a link to a file of this repository.
var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestLinksInDocs(t *testing.T) {
	pages := []string{"../README.md", "../CONTRIBUTING.md"}
	err := filepath.WalkDir("../docs", func(page string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(page, ".md") {
			pages = append(pages, page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d links were found", links)
	}
}
