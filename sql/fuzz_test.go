package sql

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varvedb/varve/catalog"
)

// FuzzStatements feeds any text to the whole front end. It must not panic,
// must cut the text the same way when it is put together again, must leave a
// rewritten query alone the second time, and must print tables as statements
// that make the same table.
func FuzzStatements(f *testing.F) {
	for _, text := range scriptInputs(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := newHarness(t)
		h.run("CREATE TABLE cpu (host STRING PRIMARY KEY, ts TIMESTAMP TIME INDEX, usage DOUBLE, n INT, note STRING DEFAULT 'x')")
		h.run(text)
		checkTables(t, h.opts.Catalog)
		script, err := Parse(text)
		if err != nil {
			return
		}
		var texts []string
		for _, st := range script {
			texts = append(texts, st.Text)
			once, err := rewrite(st.Text, &Session{}, "1")
			if err != nil {
				continue
			}
			if twice, err := rewrite(once, &Session{}, "1"); err != nil || twice != once {
				t.Errorf("rewriting %q gave %q, and again %q, %v", st.Text, once, twice, err)
			}
		}
		again, err := Parse(strings.Join(texts, "\n;"))
		if err != nil || len(again) != len(script) {
			t.Fatalf("%q was cut into %q, and those into %d, %v", text, texts, len(again), err)
		}
		for i := range again {
			if again[i].Text != texts[i] {
				t.Errorf("statement %d was %q and became %q", i, texts[i], again[i].Text)
			}
		}
	})
}

// scriptInputs returns the statements of the scripts.
func scriptInputs(t testing.TB) []string {
	files, err := filepath.Glob("testdata/script/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	block := regexp.MustCompile(`(?ms)^sql.*?\n(.*?)\n----$`)
	var texts []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(b), -1) {
			texts = append(texts, m[1])
		}
	}
	return texts
}

// checkTables makes every table again from its SHOW CREATE TABLE.
func checkTables(t *testing.T, c *catalog.Catalog) {
	for _, d := range c.Databases() {
		tables, err := c.Tables(d.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range tables {
			text := createText(info)
			h := newHarness(t)
			if out := h.run(text); out != "0 affected\n" {
				t.Fatalf("%s\n%s", text, out)
			}
			copied, err := h.opts.Catalog.Table(catalog.Public, info.Name)
			if err != nil {
				t.Fatal(err)
			}
			if again := createText(copied); again != text {
				t.Errorf("the table of\n%s\nis shown as\n%s", text, again)
			}
		}
	}
}
