package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every API is where its clients look for it, and asks for credentials.
func TestAdaptersAreMounted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.yaml")
	config := "ovh:\n  - application_key: key\n    application_secret: secret\n    consumers:\n      - {consumer_key: consumer, project: p}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Config: file, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", StopWithin: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	token, err := os.ReadFile(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, authorization string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	bearer := "Bearer " + strings.TrimSpace(string(token))
	for path, says := range map[string]string{
		"/cloud/project/p/database/kafka":                       "[]",
		"/1.0/cloud/project/p/database/kafka":                   "[]",
		"/v1/cloud/project/p/database/kafka":                    "[]",
		"/v1/project/p/service/s/mirrormaker/replication-flows": "replication_flows",
		"/connectors":        "[]",
		"/connector-plugins": "MirrorSourceConnector",
		"/":                  "version",
	} {
		if status, body := ask(path, bearer); status != http.StatusOK || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := ask(path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/auth/time", "/1.0/auth/time", "/v1/auth/time"} {
		if status, body := ask(path, ""); status != http.StatusOK || len(strings.TrimSpace(body)) != 10 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
