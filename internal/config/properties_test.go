package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The goldens are what java.util.Properties of JDK 17 makes of the inputs, see
// testdata/java/Goldens.java.
func TestPropertiesAgreesWithJava(t *testing.T) {
	files, err := filepath.Glob("testdata/properties/*.properties")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			entries, problems := ParseProperties(file, readTestFile(t, file))
			got := "error\n"
			if !problems.HasErrors() {
				got = propertiesAsText(entries)
			}
			if diff := cmp.Diff(string(readTestFile(t, file+".golden")), got); diff != "" {
				t.Errorf("differs from Java (-java +ours):\n%s", diff)
			}
		})
	}
}

func readTestFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func propertiesAsText(entries []Entry) string {
	values := map[string]string{}
	for _, e := range entries {
		values[javaQuote(e.Key)] = javaQuote(e.Value)
	}
	var lines []string
	for k, v := range values {
		lines = append(lines, k+" = "+v+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// javaQuote writes text as the goldens do: ASCII, others as UTF-16 escapes.
func javaQuote(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		switch {
		case u == '"' || u == '\\':
			b.WriteString(`\` + string(rune(u)))
		case u >= ' ' && u < 127:
			b.WriteByte(byte(u))
		default:
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return `"` + b.String() + `"`
}

func TestPropertiesKnowsWhereEntriesStand(t *testing.T) {
	entries, _ := ParseProperties("f", []byte("# one\n\na = 1\nb = 2\\\n  3\\\n  4\r\nc=\\\n"+"\rd e\n"))
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s=%q", e.Origin, e.Key, e.Value))
	}
	want := []string{`f:3 a="1"`, `f:4 b="234"`, `f:7 c=""`, `f:9 d="e"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPropertiesRemarks(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // beginnings of problems
	}{
		{"bad escape names the natural line and the key", "a = 1\npath = one\\\n  C:\\users\n", []string{`f:3: error: path: malformed \u escape`}},
		{"every bad escape is told", "a = \\uxx\nb = \\u1\n", []string{`f:1: error: a: malformed`, `f:2: error: b: malformed`}},
		{"byte order mark", "\xEF\xBB\xBFa = 1", []string{"f:1: warning: the file starts with a byte order mark"}},
		{"UTF-16", "\xFF\xFEa\x00", []string{"f:1: error: the file is UTF-16"}},
		{"UTF-8 is taken as such, with a warning", "a = grün", []string{"f:1: warning: a: characters outside ASCII"}},
		{"an escape is as it should be", `a = gr\u00fcn`, nil},
		{"UTF-8 in a comment is nobody's business", "# grün\na = 1", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := ParseProperties("f", []byte(tt.text))
			wantProblems(t, problems, Info, tt.want)
		})
	}
}

// wantProblems compares the problems of at least that severity, by beginnings.
func wantProblems(t *testing.T, got Problems, least Severity, want []string) {
	t.Helper()
	var lines []string
	for _, p := range got {
		if p.Severity >= least {
			lines = append(lines, p.String())
		}
	}
	ok := len(lines) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.HasPrefix(lines[i], want[i])
	}
	if !ok {
		t.Errorf("problems:\n  %s\nwant:\n  %s", strings.Join(lines, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestPropertiesReadsUTF8AndLatin1(t *testing.T) {
	for name, data := range map[string][]byte{"UTF-8": []byte("a = grün"), "Latin-1": []byte("a = gr\xfcn")} {
		entries, _ := ParseProperties("f", data)
		if len(entries) != 1 || entries[0].Value != "grün" {
			t.Errorf("%s: %+v", name, entries)
		}
	}
}

func FuzzProperties(f *testing.F) {
	files, _ := filepath.Glob("testdata/properties/*.properties")
	for _, file := range files {
		f.Add(readTestFile(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, problems := ParseProperties("f", data)
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
		last := 0
		for _, e := range entries {
			if e.Origin.Line < 1 || e.Origin.Line > lines || e.Origin.Line < last {
				t.Fatalf("entry %q on line %d after %d of %d", e.Key, e.Origin.Line, last, lines)
			}
			last = e.Origin.Line
			if !utf8.ValidString(e.Key) || !utf8.ValidString(e.Value) {
				t.Fatalf("not UTF-8: %q = %q", e.Key, e.Value)
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines {
				t.Fatalf("problem outside the file: %s", p)
			}
		}
	})
}
