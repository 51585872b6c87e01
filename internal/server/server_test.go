package server

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"heliograph/internal/config"
	"heliograph/internal/control"
)

var update = flag.Bool("update", false, "write docs/server.schema.json anew")

// start runs a server with a configuration file and stops it at the test's end.
func start(t *testing.T, text string) (s *Server, stop func() error) {
	t.Helper()
	return startWith(t, text, func(*Options) {})
}

// startWith is [start] with other options.
func startWith(t *testing.T, text string, change func(*Options)) (s *Server, stop func() error) {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "server.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: name, Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), StopWithin: 10 * time.Second,
		Outside: config.Source{ReadFile: os.ReadFile, LookupEnv: os.LookupEnv},
	}
	change(&o)
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s, stop
}

// logText is a log that is written to and read at once.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func get(t *testing.T, s *Server, path, token, host string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if host != "" {
		r.Host = host
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestTheFirstStartLeavesATokenForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	token, fresh, err := adminToken(dir)
	if err != nil || !fresh || len(token) < 16 {
		t.Fatalf("%q, %v, %v", token, fresh, err)
	}
	info, err := os.Stat(filepath.Join(dir, adminTokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	again, fresh, err := adminToken(dir)
	if err != nil || fresh || again != token {
		t.Errorf("the second start: %v, %v", fresh, err)
	}
	if err := os.Chmod(filepath.Join(dir, adminTokenFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := adminToken(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by others: %v", err)
	}
}

func TestEveryAnswerNeedsATokenAndAKnownName(t *testing.T) {
	sum := sha256.Sum256([]byte("a-token-of-the-file"))
	s, _ := start(t, "hosts: [replication.example.com]\ntenants: {red: {}}\ntokens:\n- {name: file, scopes: [read], tenant: red, sha256: "+hex.EncodeToString(sum[:])+"}\n")
	admin, err := os.ReadFile(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(admin))
	for _, tt := range []struct {
		path, token, host string
		status            int
	}{
		{"/api/v1/server", "", "", 401},
		{"/api/v1/server", token, "", 200},
		{"/api/v1/server", "a-token-of-the-file", "", 200},
		{"/api/v1/server", token + "x", "", 401},
		{"/metrics", "", "", 401},
		{"/metrics", "a-token-of-the-file", "", 401},
		{"/metrics", token, "", 200},
		{"/healthz/live", "", "", 200},
		{"/api/v1/server", token, "replication.example.com", 200},
		{"/api/v1/server", token, "localhost:8083", 200},
		{"/api/v1/server", token, "[::1]:8083", 200},
		{"/api/v1/server", token, "rebound.evil.example", 421},
		{"/healthz/live", "", "rebound.evil.example", 421},
		{"/connectors", "", "", 401},
		{"/v1/project/p/service/s/mirrormaker/replication-flows", "", "", 401},
		{"/1.0/cloud/project/p/database/kafkaMirrorMaker", "", "", 401},
	} {
		if status, body := get(t, s, tt.path, tt.token, tt.host); status != tt.status {
			t.Errorf("%s as %q on %q: %d, want %d: %s", tt.path, tt.token, tt.host, status, tt.status, body)
		}
	}
}

// TestASlowClientHoldsNobodyUp sends a request's head a byte at a time, and a stream nobody reads.
func TestASlowClientHoldsNobodyUp(t *testing.T) {
	s, stop := start(t, "listen: 127.0.0.1:0\n")
	admin, err := os.ReadFile(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	slow, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	stream, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := fmt.Fprintf(stream, "GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", strings.TrimSpace(string(admin))); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stream).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("the stream: %q, %v", line, err)
	}
	if status, _ := get(t, s, "/healthz/live", "", ""); status != 200 {
		t.Errorf("%d", status)
	}
	if err := stop(); err != nil { // with both under way
		t.Error(err)
	}
}

func TestTheStoreMayLieOnACluster(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := fmt.Sprintf("store: {cluster: {bootstrap.servers: %q}, topic: mm2-x.internal, replication_factor: 1}\n", c.ListenAddrs()[0])
	one, stop := start(t, config)
	two, stopTwo := start(t, config)
	ctx := control.WithActor(t.Context(), control.Actor{Name: "test", Scopes: []control.Scope{control.ScopeAdmin}})
	if _, err := one.control.PutCluster(ctx, control.Cluster{Alias: "A", Properties: map[string]string{"bootstrap.servers": "a.invalid:1"}}, control.Absent); err != nil {
		t.Fatal(err)
	}
	// The other one knows it at the latest when it writes.
	if _, err := two.control.PutCluster(ctx, control.Cluster{Alias: "A", Properties: map[string]string{"bootstrap.servers": "b.invalid:1"}}, control.Absent); control.KindOf(err) != control.Conflict {
		t.Errorf("got %v", err)
	}
	for _, end := range []func() error{stop, stopTwo} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func TestConfigurationsThatCannotBeMeantAreRefused(t *testing.T) {
	for _, row := range [][2]string{
		{"listne: 1\n", "server.yaml:1:1"},
		{"listen: [1]\n", "server.yaml:1"},
		{"memory: lots\n", "memory"},
		{"tokens: [{name: x, scopes: [read]}]\n", "one of sha256 and file"},
		{"tokens: [{name: x, scopes: [all], file: y}]\n", "none of read, write and admin"},
		{"tokens: [{name: x, tenant: t, scopes: [read], file: y}]\n", "not among the tenants"},
		{"tenants: {t: {}}\ntokens: [{name: x, tenant: t, scopes: [admin], file: y}]\n", "not for a tenant"},
		{"store: {cluster: {}}\n", "bootstrap.servers is needed"},
		{"tls: {certificate: x}\n", "certificate and key"},
		{"tokens: [{name: x, scopes: [read], sha256: abc}]\n", "64 hexadecimal digits"},
	} {
		text, want := row[0], row[1]
		_, err := parseConfig("server.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	secret := "ovh: [{application_key: k, application_secret: hush, consumers: []}]\nlisten: {a: b}\n"
	if _, err := parseConfig("server.yaml", []byte(secret)); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryIsAConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"server.yaml": "rate: 1MiB\n", "one.properties": "", "two.yaml": "", ".hidden.yaml": "", "README.md": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ReadConfig(dir)
	if err != nil || c.BytesPerSecond != "1MiB" || len(c.Files) != 2 || filepath.Base(c.Files[1]) != "two.yaml" {
		t.Errorf("%+v, %v", c, err)
	}
	flows := filepath.Join(dir, "two.yaml")
	if err := os.WriteFile(flows, []byte("clusters: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(flows); err != nil || len(c.Files) != 1 {
		t.Errorf("a file with flows: %+v, %v", c, err)
	}
}

func TestAChangedPolicyIsTakenOver(t *testing.T) {
	s, _ := start(t, "listen: 127.0.0.1:0\n")
	ctx := control.WithActor(t.Context(), control.Actor{Name: "test", Scopes: []control.Scope{control.ScopeAdmin}})
	for _, alias := range []string{"A", "B"} {
		if _, err := s.control.PutCluster(ctx, control.Cluster{Alias: alias, Properties: map[string]string{"bootstrap.servers": alias + ".invalid:1"}}, control.Absent); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.o.Config, []byte("links: [{from: {region: eu}, to: {region: eu}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reload(t.Context())
	if _, err := s.control.PutFlow(ctx, control.Flow{Source: "A", Target: "B"}, control.Absent); control.KindOf(err) != control.Forbidden {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(s.o.Config, []byte("links: [{frm: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reload(t.Context()) // refused: the policy before it holds
	if _, err := s.control.PutFlow(ctx, control.Flow{Source: "A", Target: "B"}, control.Absent); control.KindOf(err) != control.Forbidden {
		t.Errorf("after a bad file: %v", err)
	}
}

// TestTheSchemaIsThePublishedOne compares docs/server.schema.json with Config; -update writes it.
func TestTheSchemaIsThePublishedOne(t *testing.T) {
	const name = "../../docs/server.schema.json"
	r := huma.NewMapRegistry("#/$defs/", huma.DefaultSchemaNamer)
	root := r.Schema(reflect.TypeFor[Config](), true, "Config")
	doc, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "heliograph serve --config", "$ref": root.Ref, "$defs": r.Map(),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	doc = append(doc, '\n')
	if *update {
		if err := os.WriteFile(name, doc, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(name); err != nil || string(have) != string(doc) {
		t.Errorf("docs/server.schema.json is not what the code reads (%v): go test ./internal/server -run Schema -update", err)
	}
}
