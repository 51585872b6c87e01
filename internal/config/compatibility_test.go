package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const compatibilityPage = "../../docs/compatibility.md"

// The table of keys stands between its two comments.
func TestCompatibilityTableIsUpToDate(t *testing.T) {
	const begin, end = "<!-- keys -->\n", "<!-- end of keys -->\n"
	text, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table of keys", compatibilityPage)
	}
	golden(t, compatibilityPage, head+begin+Compatibility()+end+tail)
}

// Every test that the page names must be there.
func TestCompatibilityNamesTestsThatAreThere(t *testing.T) {
	text, err := os.ReadFile(compatibilityPage)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("%s names %s, which is nowhere", compatibilityPage, m[1])
		}
	}
}
