package adapter

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"heliograph/internal/control"
)

func TestAPathOfAnotherMethodIsTold(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /things/{name}", func(http.ResponseWriter, *http.Request) {})
	for path, want := range map[string]bool{"/things/a": true, "/things": false, "/": false} {
		if got := OtherMethod(mux, httptest.NewRequest(http.MethodPost, path, http.NoBody)); got != want {
			t.Errorf("%s: there for another method: %v, want %v", path, got, want)
		}
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer t": "t", "bearer t": "t", "BEARER  t": "t", "aivenv1 t": "t", "AivenV1 t": "t", "Basic t": "", "t": "", "": "", "Bearer": "",
	} {
		if got := Bearer(header, "aivenv1"); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	if got := Bearer("aivenv1 t"); got != "" {
		t.Errorf("a scheme of another API: %q", got)
	}
}

func TestOnlyReadingNeedsNoMoreThanRead(t *testing.T) {
	for method, want := range map[string]control.Scope{
		"GET": control.ScopeRead, "HEAD": control.ScopeRead, "POST": control.ScopeWrite, "PUT": control.ScopeWrite,
		"PATCH": control.ScopeWrite, "DELETE": control.ScopeWrite, "OPTIONS": control.ScopeWrite,
	} {
		if got := Scope(httptest.NewRequest(method, "/", http.NoBody)); got != want {
			t.Errorf("%s needs %s, want %s", method, got, want)
		}
	}
}

func TestEntries(t *testing.T) {
	for text, want := range map[string][]string{"": {}, " , ": {}, "a": {"a"}, " a,, b.* ,": {"a", "b.*"}} {
		if got := Entries(text); got == nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsInvalidBearsTheNamesOfTheAPI(t *testing.T) {
	name := func(s string) string { return "their " + s }
	if got := Invalid(&control.Error{Message: "no fields"}, name); got != "no fields" {
		t.Errorf("without fields: %q", got)
	}
	e := &control.Error{Message: "unused", Fields: []control.Field{{Name: "a", Reason: "is odd", Hint: "even it"}, {Name: "b", Reason: "is long"}}}
	if got, want := Invalid(e, name), "[their a] is odd (even it); [their b] is long"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnswers(t *testing.T) {
	answer := func(value any) (int, string) {
		w := httptest.NewRecorder()
		Answer(w, http.StatusCreated, value, map[string]string{"message": "failed"})
		return w.Code, w.Body.String()
	}
	if status, body := answer("A->B & <C>"); status != http.StatusCreated || body != "\"A->B & <C>\"\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := answer(math.NaN()); status != http.StatusInternalServerError || body != "{\"message\":\"failed\"}\n" {
		t.Errorf("a value without JSON: %d %s", status, body)
	}
}
