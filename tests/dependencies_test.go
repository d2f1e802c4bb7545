package tests

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestDependenciesHaveReasons compares the direct requirements of go.mod with
// the page that gives a reason and a licence for each.
func TestDependenciesHaveReasons(t *testing.T) {
	page, err := os.ReadFile("../docs/decisions/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.Contains(cells[1], ".") {
			listed[strings.TrimSpace(cells[1])] = true
		}
	}
	for _, module := range directRequirements(t) {
		if !listed[module] {
			t.Errorf("docs/decisions/dependencies.md has no line for %s", module)
		}
		delete(listed, module)
	}
	for module := range listed {
		t.Errorf("docs/decisions/dependencies.md lists %s, which go.mod does not require", module)
	}
}

func directRequirements(t *testing.T) (modules []string) {
	t.Helper()
	f, err := os.Open("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line, isEntry := strings.CutPrefix(s.Text(), "\t")
		if isEntry && !strings.HasSuffix(line, "// indirect") {
			modules = append(modules, strings.Fields(line)[0])
		}
	}
	if len(modules) == 0 {
		t.Fatal("go.mod has no requirements")
	}
	return modules
}
