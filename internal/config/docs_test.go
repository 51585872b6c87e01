package config

import (
	"strings"
	"testing"
)

func TestDocsAreUpToDate(t *testing.T) {
	golden(t, "../../docs/configuration.md", Docs())
}

// The examples of the document must be right.
func TestDocsExamplesAreAccepted(t *testing.T) {
	blocks := func(language string) []string {
		var out []string
		for _, part := range strings.Split(docsHead, "```"+language+"\n")[1:] {
			text, _, _ := strings.Cut(part, "```")
			out = append(out, text)
		}
		return out
	}
	env := func(string) (string, bool) { return "x", true }
	for _, text := range blocks("yaml") {
		if d := loadAs("f.yaml", text); d.Err() != nil || flowsOf(d) != "A->B" {
			t.Errorf("%s\n%v", text, d.Problems)
		}
	}
	properties := blocks("properties")
	files := func(string) ([]byte, error) { return []byte("truststore = x"), nil }
	names := func(string) ([]string, error) { return []string{"key-password"}, nil }
	d := Load(Source{Name: "f", Bytes: []byte(strings.Join(properties, "\n")), LookupEnv: env, ReadFile: files, ReadDir: names})
	if len(properties) != 2 || len(d.Problems) > 0 || flowsOf(d) != "A->B" {
		t.Errorf("%d examples: %v", len(properties), d.Problems)
	}
}

func TestCatalogueIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Catalogue() {
		switch {
		case seen[k.Name]:
			t.Errorf("%s stands twice", k.Name)
		case k.Scope == 0:
			t.Errorf("%s may stand nowhere", k.Name)
		case k.Effect == Honoured && k.Doc == "" || k.Effect != Honoured && k.Why == "":
			t.Errorf("%s is not explained", k.Name)
		}
		seen[k.Name] = true
	}
	for _, k := range ClientKeys() {
		if k.Roles == 0 || k.Effect == Honoured && k.Doc == "" || k.Effect != Honoured && k.Why == "" {
			t.Errorf("client key %s is not explained", k.Name)
		}
	}
}
