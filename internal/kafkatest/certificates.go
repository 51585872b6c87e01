package kafkatest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// Certificates are a throw-away authority, a server's and a client's
// certificate signed by it, in every form that Kafka's clients take. All stores
// and keys have one password. The JKS files are written by keytool, so that a
// reader of ours is not tested against a writer of ours.
type Certificates struct {
	Password string

	CAPEM, ServerPEM, ClientPEM    string // certificates
	ServerKeyPEM, ClientKeyPEM     string // PKCS #8 keys
	ServerP12, ClientP12, TrustP12 string
	ServerJKS, ClientJKS, TrustJKS string
	pool                           *x509.CertPool
	clientCertificate              tls.Certificate
	serverCertificate              tls.Certificate
}

// identity is a key with its certificate.
type identity struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewCertificates generates everything into dir.
func NewCertificates(ctx context.Context, dir string) (*Certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	c := &Certificates{Password: "changeit"}
	ca, err := issue("heliograph test authority", nil)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	c.pool = x509.NewCertPool()
	c.pool.AddCert(ca.cert)
	c.CAPEM = filepath.Join(dir, "ca.pem")
	if err := writePEM(c.CAPEM, "CERTIFICATE", ca.cert.Raw); err != nil {
		return nil, err
	}
	for _, name := range []string{"server", "client"} {
		if err := c.issueEndEntity(dir, name, ca); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
	}
	trust, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{ca.cert}, c.Password)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	c.TrustP12 = filepath.Join(dir, "trust.p12")
	if err := os.WriteFile(c.TrustP12, trust, 0o600); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return c, c.writeJKS(ctx, dir)
}

func (c *Certificates) issueEndEntity(dir, name string, ca *identity) error {
	id, err := issue(name, ca)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(id.key)
	if err != nil {
		return err
	}
	store, err := pkcs12.Modern.Encode(id.key, id.cert, []*x509.Certificate{ca.cert}, c.Password)
	if err != nil {
		return err
	}
	certPath, keyPath, p12 := filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"), filepath.Join(dir, name+".p12")
	if err := writePEM(certPath, "CERTIFICATE", id.cert.Raw, ca.cert.Raw); err != nil {
		return err
	}
	if err := writePEM(keyPath, "PRIVATE KEY", key); err != nil {
		return err
	}
	if err := os.WriteFile(p12, store, 0o600); err != nil {
		return err
	}
	pair := tls.Certificate{Certificate: [][]byte{id.cert.Raw, ca.cert.Raw}, PrivateKey: crypto.PrivateKey(id.key), Leaf: id.cert}
	if name == "server" {
		c.ServerPEM, c.ServerKeyPEM, c.ServerP12, c.serverCertificate = certPath, keyPath, p12, pair
	} else {
		c.ClientPEM, c.ClientKeyPEM, c.ClientP12, c.clientCertificate = certPath, keyPath, p12, pair
	}
	return nil
}

// writeJKS converts the stores with keytool, side by side.
func (c *Certificates) writeJKS(ctx context.Context, dir string) error {
	c.ServerJKS, c.ClientJKS, c.TrustJKS = filepath.Join(dir, "server.jks"), filepath.Join(dir, "client.jks"), filepath.Join(dir, "trust.jks")
	convert := func(from, to string) []string {
		return []string{
			"-importkeystore", "-noprompt", "-srckeystore", from, "-srcstoretype", "PKCS12", "-srcstorepass", c.Password,
			"-destkeystore", to, "-deststoretype", "JKS", "-deststorepass", c.Password,
		}
	}
	var group errgroup.Group
	for _, args := range [][]string{
		convert(c.ServerP12, c.ServerJKS),
		convert(c.ClientP12, c.ClientJKS),
		{"-importcert", "-noprompt", "-alias", "ca", "-file", c.CAPEM, "-keystore", c.TrustJKS, "-storetype", "JKS", "-storepass", c.Password},
	} {
		group.Go(func() error {
			if out, err := exec.CommandContext(ctx, "keytool", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("keytool %s: %w: %s", args[0], err, lastLines(string(out), 5))
			}
			return nil
		})
	}
	return group.Wait()
}

// ClientTLS is a client's configuration that trusts the authority, with the
// client's certificate when the server asks for one.
func (c *Certificates) ClientTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.pool, Certificates: []tls.Certificate{c.clientCertificate}}
}

// ServerTLS is a server's configuration with the server's certificate.
func (c *Certificates) ServerTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ClientCAs: c.pool, Certificates: []tls.Certificate{c.serverCertificate}}
}

// issue makes a key and a certificate: an authority's own when ca is nil.
func issue(name string, ca *identity) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
	}
	signer := &identity{key: key, cert: template}
	if ca == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		signer = ca
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	return &identity{key, cert}, err
}

func writePEM(path, kind string, blocks ...[]byte) error {
	var b bytes.Buffer
	for _, raw := range blocks {
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: raw}); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
