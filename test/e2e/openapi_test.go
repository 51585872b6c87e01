//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heliograph/internal/kafkatest"
)

// openapiDocument is what a contract test of the API holds equal to what a server says.
const openapiDocument = "../../docs/openapi.json"

// TestOpenAPIDocumentPassesSpectral lints the document as its readers do; a hint fails too.
func TestOpenAPIDocumentPassesSpectral(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "ruleset.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", "spectral", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	document, err := filepath.Abs(openapiDocument)
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	out, err := install.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		kafkatest.Missing(t, "npm is needed", err)
	}
	if err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	lint := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", ".bin", "spectral"),
		"lint", "--ruleset", filepath.Join(dir, "ruleset.yaml"), "--fail-severity", "hint", document)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("spectral: %v\n%s", err, out)
	}
}

// TestServerKeepsItsOpenAPIDocument has schemathesis send what fits the document and what does
// not, for every operation: no 500, no status, header or body that the document does not name,
// nothing taken that its schemas forbid. The seed stands in the configuration.
func TestServerKeepsItsOpenAPIDocument(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	interpreter := python(t, "schemathesis.txt")
	topic := f.topic("orders")
	f.primary.CreateTopic(t, topic, 2, nil)
	s := serve(t, "")
	s.register(f.from, map[string]string{"bootstrap.servers": f.primary.Bootstrap()})
	s.register(f.to, map[string]string{"bootstrap.servers": f.backup.Bootstrap()})
	path := "/api/v1/flows/" + f.from + "/" + f.to
	if status, answer := s.call(http.MethodPut, path, map[string]any{"properties": map[string]string{"topics": topic, "emit.heartbeats.enabled": "false"}}); status >= 300 {
		t.Fatalf("put the flow: %d %s", status, answer)
	}
	s.awaitState(path, "running")
	config, err := filepath.Abs(filepath.Join("testdata", "schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(within(t, 2*patience), filepath.Join(filepath.Dir(interpreter), "schemathesis"), "--config-file", config,
		"run", s.url+"/api/v1/openapi.json", "--header", "Authorization: Bearer "+s.token, "--no-color",
		"--max-examples", "10", "--request-timeout", "30")
	check.Dir = t.TempDir() // it keeps what it found where it runs, and would begin with that next time
	check.Env = append(os.Environ(), "SOURCE="+f.from, "TARGET="+f.to)
	out, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, out)
	}
	if strings.Contains(s.Log(), "a request broke") {
		t.Error("a request made the server panic; the log says where")
	}
}
