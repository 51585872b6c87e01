package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The goldens are the tokens that Java's StreamTokenizer of JDK 17 finds, set up
// as for login modules; see testdata/java/Goldens.java.
func TestJAASTokensAgreeWithJava(t *testing.T) {
	files, err := filepath.Glob("testdata/jaas/*.jaas")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tokens := jaasTokens{chars: []rune(string(readTestFile(t, file)))}
			var b strings.Builder
			for tok := tokens.next(); tok.kind != jaasEnd; tok = tokens.next() {
				switch {
				case tok.isText():
					b.WriteString("text " + javaQuote(tok.text) + "\n")
				case tok.kind == jaasNumber:
					b.WriteString("other\n")
				default:
					b.WriteString("char " + javaQuote(string(tok.char)) + "\n")
				}
			}
			if diff := cmp.Diff(string(readTestFile(t, file+".golden")), b.String()); diff != "" {
				t.Errorf("differs from Java (-java +ours):\n%s", diff)
			}
		})
	}
}

func TestParseJAAS(t *testing.T) {
	got, err := ParseJAAS(`org.apache.kafka.common.security.plain.PlainLoginModule Required
	   username="$ConnectionString" /* a comment; */ password="Endpoint=sb://ns/;Key=AAA=" serviceName=kafka;`)
	if err != nil {
		t.Fatal(err)
	}
	want := []LoginModule{{
		Class: "org.apache.kafka.common.security.plain.PlainLoginModule", Flag: "required",
		Options: map[string]string{"username": "$ConnectionString", "password": "Endpoint=sb://ns/;Key=AAA=", "serviceName": "kafka"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseJAASErrorsNameNoValue(t *testing.T) {
	tests := map[string]string{
		``:                                  "no login module",
		`// nothing`:                        "no login module",
		`"" required;`:                      "does not start with the class",
		`X`:                                 "must be followed by a flag",
		`X password=hunter2;`:               "must be followed by a flag",
		`X required password="hunter2"`:     "does not end with a semicolon",
		`X required password=hunter2 user;`: "option user has no value",
		`X required password=7hunter2;`:     "option password has no value that can be read",
		`X required password=;`:             "option password has no value that can be read",
		`X required =hunter2;`:              "where the name of an option should stand",
		`X required password=/hunter2;`:     "option password has no value",
	}
	for text, want := range tests {
		_, err := ParseJAAS(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the value: %v", text, err)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	files, _ := filepath.Glob("testdata/jaas/*.jaas")
	for _, file := range files {
		f.Add(string(readTestFile(f, file)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		modules, err := ParseJAAS(text)
		if (err == nil) != (len(modules) > 0) {
			t.Fatalf("%d modules and error %v", len(modules), err)
		}
		for _, m := range modules {
			if m.Class == "" || m.Flag == "" {
				t.Fatalf("half a module: %+v", m)
			}
		}
	})
}
