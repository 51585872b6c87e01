//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heliograph/internal/kafkatest"
)

// served is a running heliograph serve.
type served struct {
	*heliograph
	url   string
	token string // the admin's
}

// serve runs "heliograph serve" with a configuration, on a free port and with a new
// data directory.
func serve(tb testing.TB, config string) *served {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "server.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &served{heliograph: launch(tb, binary(tb), "serve", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")}
	var line struct {
		Address   string
		TokenFile string `json:"token_file"`
	}
	if err := json.Unmarshal([]byte(s.awaitLog("the API is served")), &line); err != nil {
		tb.Fatal(err)
	}
	token, err := os.ReadFile(line.TokenFile)
	if err != nil {
		tb.Fatal(err)
	}
	s.url, s.token = "http://"+line.Address, strings.TrimSpace(string(token))
	return s
}

// stop asks the process to end and expects a clean end, whether a flow runs or not.
func (s *served) stop() {
	s.tb.Helper()
	if err := s.Signal(syscall.SIGTERM); err != nil {
		s.tb.Fatal(err)
	}
	s.exit(0)
}

// call asks the API as the administrator. Headers are "Name: value".
func (s *served) call(method, path string, body any, headers ...string) (int, string) {
	s.tb.Helper()
	status, _, answer := s.ask(method, path, body, headers...)
	return status, answer
}

// etag is a resource and its revision.
func (s *served) etag(path string) (answer, tag string) {
	s.tb.Helper()
	status, header, answer := s.ask(http.MethodGet, path, nil)
	if status != http.StatusOK || header.Get("ETag") == "" {
		s.tb.Fatalf("%s: %d %s", path, status, answer)
	}
	return answer, header.Get("ETag")
}

// awaitState waits until a flow is in a state.
func (s *served) awaitState(flow, state string) {
	s.tb.Helper()
	await(s.tb, "the flow is "+state, func() string {
		_, answer := s.call(http.MethodGet, flow+"/status", nil)
		if strings.Contains(answer, `"state":"`+state+`"`) {
			return ""
		}
		return answer
	})
}

func (s *served) ask(method, path string, body any, headers ...string) (int, http.Header, string) {
	s.tb.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.tb.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.tb.Context(), method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+s.token)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

// register makes a cluster known, as an operator does.
func (s *served) register(alias string, properties map[string]string) {
	s.tb.Helper()
	status, answer := s.call(http.MethodPut, "/api/v1/clusters/"+alias, map[string]any{"properties": properties})
	if status >= 300 {
		s.tb.Fatalf("register cluster %s: %d %s", alias, status, answer)
	}
}

// python makes an environment with the pinned packages of a file of testdata and returns
// its interpreter.
func python(tb testing.TB, requirements string) string {
	tb.Helper()
	dir := tb.TempDir()
	interpreter := filepath.Join(dir, "bin", "python")
	for _, command := range [][]string{
		{"python3", "-m", "venv", dir},
		{interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", filepath.Join("testdata", requirements)},
	} {
		out, err := exec.CommandContext(tb.Context(), command[0], command[1:]...).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			kafkatest.Missing(tb, "Python is needed", err)
		}
		if err != nil {
			tb.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	return interpreter
}

// run runs a Python program of testdata, which must succeed.
func run(tb testing.TB, interpreter, program string, args ...string) {
	tb.Helper()
	out, err := exec.CommandContext(within(tb, patience), interpreter, append([]string{filepath.Join("testdata", program)}, args...)...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}
