package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
)

// Security says how to reach a cluster's listeners, in the terms of Kafka's
// security.protocol, ssl.* and sasl.* settings. The zero value is PLAINTEXT.
type Security struct {
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	TLS      TLSFiles
	SASL     SASL
}

// TLSFiles are the stores behind ssl.truststore.* and ssl.keystore.*. An empty
// trust store means the system's authorities; an empty key store means that we
// present no certificate.
type TLSFiles struct {
	TrustStore Store
	KeyStore   Store
	// KeyPassword opens the key inside the key store; empty means that it is the
	// store's own password.
	KeyPassword string
	// SkipHostNameCheck is ssl.endpoint.identification.algorithm set to nothing:
	// the certificate's chain is still checked, its names are not.
	SkipHostNameCheck bool
	// Protocols are ssl.enabled.protocols, "TLSv1.2" and "TLSv1.3"; none is both.
	Protocols []string
}

// Store is a JKS, PKCS12 or PEM file, or PEM text. What it is gets recognised
// by its first bytes: ssl.keystore.type is wrong in too many real files.
type Store struct {
	Path     string
	Password string
	PEM      string // certificates, and for a key store the key as well
}

// Empty reports whether nothing was configured.
func (s Store) Empty() bool { return s.Path == "" && s.PEM == "" }

// SASL is a mechanism and its credentials; only those of the mechanism are read.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM
	Username  string
	Password  string
	// DelegationToken says that Username and Password are a delegation token's (SCRAM only).
	DelegationToken bool
	OAuth           OAuth
	Kerberos        Kerberos
	AWS             AWS
}

const (
	protocolPlaintext     = "PLAINTEXT"
	protocolSSL           = "SSL"
	protocolSASLPlaintext = "SASL_PLAINTEXT"
	protocolSASLSSL       = "SASL_SSL"
)

// Check reads the stores and builds the mechanism, so that a wrong path or
// password is found before anything is dialled. It contacts nobody.
func (s Security) Check() error {
	_, err := s.build()
	return err
}

// credentials are what a dialer needs: nil TLS is plaintext, nil mechanism no login.
type credentials struct {
	tls       *tls.Config
	mechanism sasl.Mechanism
}

func (s Security) build() (credentials, error) {
	var c credentials
	protocol := strings.ToUpper(s.Protocol)
	if protocol == "" {
		protocol = protocolPlaintext
	}
	all := []string{protocolPlaintext, protocolSSL, protocolSASLPlaintext, protocolSASLSSL}
	if !slices.Contains(all, protocol) {
		return c, fmt.Errorf("security protocol %q is not one of %s", s.Protocol, strings.Join(all, ", "))
	}
	var err error
	if protocol == protocolSSL || protocol == protocolSASLSSL {
		if c.tls, err = s.TLS.config(); err != nil {
			return c, err
		}
	}
	if protocol == protocolSASLPlaintext || protocol == protocolSASLSSL {
		if c.mechanism, err = s.SASL.mechanism(); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (f TLSFiles) config() (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Full records from the first byte on: the data is bulk, not pages.
		DynamicRecordSizingDisabled: true,
		ClientSessionCache:          tls.NewLRUClientSessionCache(0),
	}
	if err := f.versions(cfg); err != nil {
		return nil, err
	}
	if !f.TrustStore.Empty() {
		certs, err := f.TrustStore.authorities()
		if err != nil {
			return nil, fmt.Errorf("trust store %s: %w", f.TrustStore.name(), err)
		}
		cfg.RootCAs = x509.NewCertPool()
		for _, cert := range certs {
			cfg.RootCAs.AddCert(cert)
		}
	}
	if !f.KeyStore.Empty() {
		pair, err := f.KeyStore.keyPair(f.KeyPassword)
		if err != nil {
			return nil, fmt.Errorf("key store %s: %w", f.KeyStore.name(), err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if f.SkipHostNameCheck {
		verifyChainOnly(cfg)
	}
	return cfg, nil
}

func (f TLSFiles) versions(cfg *tls.Config) error {
	if len(f.Protocols) == 0 {
		return nil
	}
	has12, has13 := slices.Contains(f.Protocols, "TLSv1.2"), slices.Contains(f.Protocols, "TLSv1.3")
	switch {
	case has12 && !has13:
		cfg.MaxVersion = tls.VersionTLS12
	case has13 && !has12:
		cfg.MinVersion = tls.VersionTLS13
	case !has12 && !has13:
		return fmt.Errorf("no usable TLS version in %s: TLSv1.2 and TLSv1.3 are supported", strings.Join(f.Protocols, ","))
	}
	return nil
}

// verifyChainOnly replaces Go's verification, which cannot leave out the name
// alone, by one that checks the chain and no name.
func verifyChainOnly(cfg *tls.Config) {
	roots := cfg.RootCAs
	cfg.InsecureSkipVerify = true // #nosec G402 -- the chain is checked below
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("no certificate presented")
		}
		between := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}
