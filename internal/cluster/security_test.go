package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	keystore "github.com/pavlo-v-chernykh/keystore-go/v4"
	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// authority is a throw-away certificate authority.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  string
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &authority{key, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// server issues a certificate for 127.0.0.1, or for the given names instead.
func (a *authority) server(tb testing.TB, until time.Time, names ...string) tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, DNSNames: names,
	}
	if len(names) == 0 {
		tmpl.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
}

func TestRefusedHandshakesAreExplained(t *testing.T) {
	good, other := newAuthority(t), newAuthority(t)
	soon := time.Now().Add(time.Hour)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	go func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-not-tls\r\n"))
			conn.Close()
		}
	}()
	tests := map[string]struct {
		addr string
		skip bool
		want string // "" for success
	}{
		"good":                    {addr: serveTLS(t, good.server(t, soon))},
		"expired":                 {addr: serveTLS(t, good.server(t, time.Now().Add(-time.Hour))), want: "the certificate expired at"},
		"another name":            {addr: serveTLS(t, good.server(t, soon, "kafka.example")), want: "not for this host name"},
		"another name, unchecked": {addr: serveTLS(t, good.server(t, soon, "kafka.example")), skip: true},
		"expired, unchecked":      {addr: serveTLS(t, good.server(t, time.Now().Add(-time.Hour))), skip: true, want: "the certificate expired at"},
		"unknown authority":       {addr: serveTLS(t, other.server(t, soon)), want: "unknown authority"},
		"unknown, unchecked name": {addr: serveTLS(t, other.server(t, soon)), skip: true, want: "unknown authority"},
		"not TLS":                 {addr: plain.Addr().String(), want: "TLS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			creds, err := Security{Protocol: "SSL", TLS: TLSFiles{TrustStore: Store{PEM: good.pem}, SkipHostNameCheck: test.skip}}.build()
			if err != nil {
				t.Fatal(err)
			}
			d := dialer{alias: "west", tls: creds.tls, timeout: 5 * time.Second, gate: &gate{stats: &counters{}}, pulse: &bare().pulse}
			conn, err := d.dialSmall(t.Context(), "tcp", test.addr)
			if err == nil {
				conn.Close()
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case err != nil && (!strings.Contains(err.Error(), test.addr) || !strings.Contains(err.Error(), "west")):
				t.Errorf("%v does not say where", err)
			}
		})
	}
}

// serveTLS accepts and closes TLS connections.
func serveTLS(t *testing.T, cert tls.Certificate) string {
	t.Helper()
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

// The same authority and key in every form, under names that say nothing.
func TestStoresAreRecognisedByTheirBytes(t *testing.T) {
	a := newAuthority(t)
	pair := a.server(t, time.Now().Add(time.Hour))
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	const pw, keyPW = "changeit", "otherkey"
	trustP12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{a.cert}, pw)
	if err != nil {
		t.Fatal(err)
	}
	keyP12, err := pkcs12.Modern.Encode(pair.PrivateKey, leaf, []*x509.Certificate{a.cert}, pw)
	if err != nil {
		t.Fatal(err)
	}
	chain := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})) + a.pem
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	jks := jksOf(t, a, pair, pkcs8, pw, keyPW)
	tests := map[string]TLSFiles{
		"PEM":    {TrustStore: inFile(t, []byte(a.pem), ""), KeyStore: inFile(t, []byte(keyPEM+chain), "")},
		"text":   {TrustStore: Store{PEM: a.pem}, KeyStore: Store{PEM: chain + keyPEM}},
		"PKCS12": {TrustStore: inFile(t, trustP12, pw), KeyStore: inFile(t, keyP12, pw)},
		"JKS":    {TrustStore: inFile(t, jks, pw), KeyStore: inFile(t, jks, pw), KeyPassword: keyPW},
		"mixed":  {TrustStore: inFile(t, keyP12, pw), KeyStore: inFile(t, jks, pw), KeyPassword: keyPW},
	}
	for name, files := range tests {
		t.Run(name, func(t *testing.T) {
			cfg, err := files.config()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: cfg.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
				t.Error(err)
			}
			if got := cfg.Certificates[0]; !bytes.Equal(got.Certificate[0], leaf.Raw) || !pair.PrivateKey.(*ecdsa.PrivateKey).Equal(got.PrivateKey) {
				t.Error("another key or certificate came out")
			}
		})
	}
	wrong := map[string]TLSFiles{
		"missing file":        {TrustStore: Store{Path: filepath.Join(t.TempDir(), "none")}},
		"wrong password":      {TrustStore: inFile(t, jks, "nope")},
		"wrong P12 password":  {TrustStore: inFile(t, trustP12, "nope")},
		"wrong key password":  {KeyStore: inFile(t, jks, pw), KeyPassword: "nope"},
		"no key":              {KeyStore: inFile(t, trustP12, pw)},
		"no certificate":      {TrustStore: Store{PEM: keyPEM}},
		"JCEKS":               {TrustStore: inFile(t, []byte{0xce, 0xce, 0xce, 0xce, 0, 0}, pw)},
		"neither":             {TrustStore: inFile(t, []byte("hello, world"), pw)},
		"empty":               {TrustStore: inFile(t, nil, pw)},
		"no protocol we have": {Protocols: []string{"SSLv3"}},
	}
	for name, files := range wrong {
		if _, err := files.config(); err == nil || strings.Contains(err.Error(), pw) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func inFile(t *testing.T, data []byte, password string) Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.bin")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Store{Path: path, Password: password}
}

func jksOf(t *testing.T, a *authority, pair tls.Certificate, pkcs8 []byte, pw, keyPW string) []byte {
	t.Helper()
	ks := keystore.New()
	err := ks.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: a.cert.Raw},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ks.SetPrivateKeyEntry("key", keystore.PrivateKeyEntry{
		CreationTime: time.Now(), PrivateKey: pkcs8,
		CertificateChain: []keystore.Certificate{{Type: "X509", Content: pair.Certificate[0]}},
	}, []byte(keyPW))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ks.Store(&out, []byte(pw)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestEncryptedKeysAreOpened(t *testing.T) {
	for _, file := range []string{"aes256.pem", "aes128-sha1.pem", "des3.pem"} {
		data, err := os.ReadFile(filepath.Join("testdata", "keys", file))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		plain, err := decryptPKCS8(block.Bytes, "keypass")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if plain, err := decryptPKCS8(block.Bytes, "wrong"); err == nil {
			if _, err := x509.ParsePKCS8PrivateKey(plain); err == nil {
				t.Errorf("%s: a wrong password opens it", file)
			}
		}
		if _, err := decryptPKCS8(block.Bytes, ""); err == nil {
			t.Errorf("%s: no password opens it", file)
		}
	}
}

func FuzzEncryptedKey(f *testing.F) {
	f.Add([]byte{0x30, 0x03, 1, 2, 3})
	f.Fuzz(func(_ *testing.T, der []byte) { _, _ = decryptPKCS8(der, "pw") })
}

func TestWrongSecurityIsFoundBeforeDialling(t *testing.T) {
	tests := map[string]Security{
		"protocol":       {Protocol: "TLS"},
		"mechanism":      {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "DIGEST-MD5"}},
		"no mechanism":   {Protocol: "SASL_SSL"},
		"no user":        {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "PLAIN"}},
		"no endpoint":    {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "OAUTHBEARER"}},
		"bad endpoint":   {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "OAUTHBEARER", OAuth: OAuth{TokenEndpoint: "ldap://x"}}},
		"no service":     {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "GSSAPI"}},
		"no krb5.conf":   {Protocol: "SASL_SSL", SASL: SASL{Mechanism: "GSSAPI", Kerberos: Kerberos{ServiceName: "kafka", Principal: "u@R", ConfigPath: "none"}}},
		"no trust store": {Protocol: "SSL", TLS: TLSFiles{TrustStore: Store{Path: "none"}}},
	}
	for name, s := range tests {
		if err := s.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := Open(Options{Alias: "west", BootstrapServers: []string{"x:1"}, Security: s}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if err := (Security{Protocol: "SASL_SSL", SASL: SASL{Mechanism: "aws_msk_iam"}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestTokensAreSharedAndRenewed(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "me" || secret != "hush" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "kafka" {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client"})
			return
		}
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "tok", "expires_in": 3600})
	}))
	defer srv.Close()
	s, err := newTokenSource(OAuth{TokenEndpoint: srv.URL + "/token?tenant=x", ClientID: "me", ClientSecret: "hush", Scope: "kafka"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if a, err := s.auth(t.Context()); err != nil || a.Token != "tok" {
			t.Fatal(a.Token, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times for a token that lasts an hour", asked.Load())
	}
	s.mu.refresh = time.Now().Add(-time.Second)
	if _, err := s.auth(t.Context()); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
	bad, err := newTokenSource(OAuth{TokenEndpoint: srv.URL + "/token?key=s3cret", ClientID: "me", ClientSecret: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bad.auth(t.Context())
	if err == nil || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

func TestTokenFileIsReadAtEachLogin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	s, err := newTokenSource(OAuth{TokenEndpoint: "file://" + path})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := s.auth(t.Context()); err != nil || a.Token != token {
			t.Errorf("got %q, %v", a.Token, err)
		}
	}
}

func TestTokenLifeComesFromTheTokenItself(t *testing.T) {
	// {"exp":4102444800}, the year 2100
	if d := lifeOf("e30.eyJleHAiOjQxMDI0NDQ4MDB9.sig"); d < 24*time.Hour {
		t.Error(d)
	}
	for _, token := range []string{"opaque", "a.b.c", "e30.e30.sig"} {
		if d := lifeOf(token); d != unknownTokenLife {
			t.Errorf("%s: %s", token, d)
		}
	}
}
