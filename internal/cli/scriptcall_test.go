package cli

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func scriptToken(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// ask sends a request with the script's token.
func ask(ts *testscript.TestScript, method, url, body string) (code int, text string) {
	var in io.Reader
	if body != "-" {
		in = strings.NewReader(ts.ReadFile(body))
	}
	r, err := http.NewRequest(method, url, in)
	ts.Check(err)
	r.Header.Set("Authorization", "Bearer "+ts.Getenv("TOKEN"))
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	c := http.Client{Timeout: patience}
	resp, err := c.Do(r)
	ts.Check(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.StatusCode, string(data)
}

func scriptCall(ts *testscript.TestScript, _ bool, args []string) {
	code, text := ask(ts, args[0], args[1], args[2])
	state(ts).answer = text
	if strconv.Itoa(code) != args[3] {
		ts.Fatalf("%s %s: %d, want %s: %s", args[0], args[1], code, args[3], text)
	}
}

func scriptAnswer(ts *testscript.TestScript, _ bool, args []string) {
	if !regexp.MustCompile(args[0]).MatchString(state(ts).answer) {
		ts.Fatalf("no match for %s in %s", args[0], state(ts).answer)
	}
}

func scriptAwaitCall(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[1])
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, text := ask(ts, http.MethodGet, args[0], "-")
		if want.MatchString(text) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s never matched %s: %s", args[0], args[1], text)
		}
	}
}
