package config

import (
	"encoding/json"
	"testing"
)

func TestProblemForPeopleAndPrograms(t *testing.T) {
	p := Problem{Severity: Warning, File: "f", Line: 3, Column: 5, Key: "k", Message: "m", Hint: "h"}
	if got, want := p.String(), "f:3:5: warning: k: m (h)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	encoded, err := json.Marshal(p)
	if want := `{"severity":"warning","file":"f","line":3,"column":5,"key":"k","message":"m","hint":"h"}`; err != nil || string(encoded) != want {
		t.Errorf("%s %v, want %s", encoded, err, want)
	}
	if got, want := (Problem{Severity: Error, Key: "k\x1b[2J\n", Message: "m"}).String(), "error: k\uFFFD[2J\uFFFD: m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Problem{Severity: Error, Message: "m"}).String(), "error: m"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
