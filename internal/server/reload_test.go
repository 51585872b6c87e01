package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heliograph/internal/control"
)

// writePair writes a certificate of its own for 127.0.0.1, and its key.
func writePair(t *testing.T, certificate, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "heliograph"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serial is that of the certificate that a new connection is shown.
func serial(t *testing.T, s *Server) int64 {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(t.Context(), "tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// status is the answer to a request with headers "Name: value".
func (s *Server) status(t *testing.T, path string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestCredentialsAndCertificatesRotate changes all by which the server knows others and others
// know it, while it runs. What cannot be read changes nothing.
func TestCredentialsAndCertificatesRotate(t *testing.T) {
	dir := t.TempDir()
	certificate, key, token := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "token")
	writePair(t, certificate, key, 1)
	writeFile(t, token, "the-first-token-of-payments")
	text := func(host, application string) string {
		return fmt.Sprintf(`
hosts: [%s]
tls: {certificate: %s, key: %s}
tokens: [{name: payments, scopes: [read], file: %s}]
ovh: [{application_key: %s, application_secret: s, consumers: [{consumer_key: c, project: p}]}]
`, host, certificate, key, token, application)
	}
	var log logText
	s, _ := startWith(t, text("one.example", "first"), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	admin, err := os.ReadFile(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}

	check := func(what string, serialWant int64, host, application, bearer, adminToken string) {
		t.Helper()
		if got := serial(t, s); got != serialWant {
			t.Errorf("%s: the certificate %d is shown, want %d", what, got, serialWant)
		}
		if got := s.status(t, "/healthz/live", "Host: "+host); got != 200 {
			t.Errorf("%s: %s is not a name of the server: %d", what, host, got)
		}
		for _, known := range []string{bearer, adminToken} {
			if got := s.status(t, "/api/v1/clusters", "Authorization: Bearer "+known); got != 200 {
				t.Errorf("%s: a token is not known: %d", what, got)
			}
		}
		// With a known application it is the signature that is wrong.
		if got := s.status(t, "/1.0/cloud/project", "X-Ovh-Application: "+application, "X-Ovh-Consumer: c", "X-Ovh-Timestamp: "+fmt.Sprint(time.Now().Unix())); got != 400 {
			t.Errorf("%s: the application %s: %d", what, application, got)
		}
	}
	check("at first", 1, "one.example", "first", "the-first-token-of-payments", strings.TrimSpace(string(admin)))

	writePair(t, certificate, key, 2)
	writeFile(t, token, "the-second-token-of-payments")
	writeFile(t, s.TokenFile(), "the-second-admin-token\n")
	writeFile(t, s.o.Config, text("two.example", "second"))
	s.reload(t.Context())
	check("rotated", 2, "two.example", "second", "the-second-token-of-payments", "the-second-admin-token")
	if got := s.status(t, "/api/v1/clusters", "Authorization: Bearer the-first-token-of-payments"); got != 401 {
		t.Errorf("the old token: %d", got)
	}
	if got := s.status(t, "/healthz/live", "Host: one.example"); got != 421 {
		t.Errorf("the old name: %d", got)
	}
	if strings.Contains(log.String(), "next start") {
		t.Errorf("a restart is asked for without need: %s", log.String())
	}

	// A key that does not fit, as in the middle of a renewal, refuses all of it.
	other := filepath.Join(dir, "other.key")
	writePair(t, filepath.Join(dir, "other.crt"), other, 3)
	if err := os.Rename(other, key); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.o.Config, text("three.example", "third"))
	s.reload(t.Context())
	check("refused", 2, "two.example", "second", "the-second-token-of-payments", "the-second-admin-token")
	if !strings.Contains(log.String(), "not taken over") || strings.Contains(log.String(), "second-token") {
		t.Errorf("the log: %s", log.String())
	}
}

func TestWhatNeedsARestartIsNamed(t *testing.T) {
	var log logText
	s, _ := startWith(t, "memory: 32MiB\nlisten: 127.0.0.1:0\n", func(o *Options) {
		o.Listen, o.Log = "", slog.New(slog.NewTextHandler(&log, nil))
	})
	writeFile(t, s.o.Config, "memory: 48MiB\nlisten: 127.0.0.1:1\nmetrics: 127.0.0.1:2\nstore: {cluster: {bootstrap.servers: 'x:1', sasl.password: hush}}\n")
	s.reload(t.Context())
	if !strings.Contains(log.String(), `settings="[listen metrics store]"`) || strings.Contains(log.String(), "hush") {
		t.Errorf("the log: %s", log.String())
	}
}

// TestFilesThatTheAPINamesAreWatched holds that a cluster of the API gets a rotated login, too.
func TestFilesThatTheAPINamesAreWatched(t *testing.T) {
	dir := t.TempDir()
	store, login := filepath.Join(dir, "trust.pem"), filepath.Join(dir, "login.properties")
	writeFile(t, store, "x")
	writeFile(t, login, "password=hush\n")
	s, _ := start(t, "allow: {files: ["+dir+"]}\n")
	ctx := control.WithActor(t.Context(), control.Actor{Name: "test", Scopes: []control.Scope{control.ScopeAdmin}})
	if _, err := s.control.PutCluster(ctx, control.Cluster{Alias: "A", Properties: map[string]string{
		"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", "ssl.truststore.location": store, "ssl.truststore.type": "PEM",
		"ssl.truststore.password": "${file:" + login + ":password}",
	}}, control.Absent); err != nil {
		t.Fatal(err)
	}
	watched := s.watched()
	for _, name := range []string{store, login, s.TokenFile(), s.o.Config} {
		if !slices.Contains(watched, name) {
			t.Errorf("%s is not watched: %q", name, watched)
		}
	}
}
