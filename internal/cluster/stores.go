package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"

	keystore "github.com/pavlo-v-chernykh/keystore-go/v4"
	pkcs12 "software.sslmate.com/src/go-pkcs12"
)

// storeKind is what a store's first bytes say it is.
type storeKind uint8

const (
	storePEM storeKind = iota
	storeJKS
	storeJCEKS
	storePKCS12
)

const (
	magicJKS   = 0xfeedfeed
	magicJCEKS = 0xcececece
	asn1Seq    = 0x30
)

func (s Store) name() string {
	if s.Path != "" {
		return s.Path
	}
	return "given as text"
}

func (s Store) read() ([]byte, storeKind, error) {
	data := []byte(s.PEM)
	if s.Path != "" {
		var err error
		if data, err = os.ReadFile(s.Path); err != nil {
			return nil, 0, errors.Unwrap(err)
		}
	}
	switch {
	case len(data) < 4:
		return nil, 0, errors.New("empty")
	case binary.BigEndian.Uint32(data) == magicJKS:
		return data, storeJKS, nil
	case binary.BigEndian.Uint32(data) == magicJCEKS:
		return nil, 0, errors.New("is a JCEKS store, which cannot be read here; convert it with keytool -importkeystore -deststoretype PKCS12")
	case data[0] == asn1Seq:
		return data, storePKCS12, nil
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return data, storePEM, nil
	}
	return nil, 0, errors.New("is neither JKS nor PKCS12 nor PEM")
}

// authorities reads the certificates to trust.
func (s Store) authorities() ([]*x509.Certificate, error) {
	data, kind, err := s.read()
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	switch kind {
	case storeJKS:
		certs, err = jksAuthorities(data, s.Password)
	case storePKCS12:
		certs, err = pkcs12Authorities(data, s.Password)
	default:
		certs, err = pemCertificates(data)
	}
	if err == nil && len(certs) == 0 {
		err = errors.New("holds no certificate")
	}
	return certs, err
}

// keyPair reads the first private key and its certificates.
func (s Store) keyPair(keyPassword string) (tls.Certificate, error) {
	if keyPassword == "" {
		keyPassword = s.Password
	}
	data, kind, err := s.read()
	if err != nil {
		return tls.Certificate{}, err
	}
	switch kind {
	case storeJKS:
		return jksKeyPair(data, s.Password, keyPassword)
	case storePKCS12:
		return pkcs12KeyPair(data, s.Password)
	default:
		return pemKeyPair(data, keyPassword)
	}
}

func loadJKS(data []byte, password string) (keystore.KeyStore, error) {
	ks := keystore.New(keystore.WithOrderedAliases())
	if err := ks.Load(bytes.NewReader(data), []byte(password)); err != nil {
		return ks, fmt.Errorf("read as JKS: %w (a wrong password gives this too)", err)
	}
	return ks, nil
}

func jksAuthorities(data []byte, password string) ([]*x509.Certificate, error) {
	ks, err := loadJKS(data, password)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, alias := range ks.Aliases() {
		if !ks.IsTrustedCertificateEntry(alias) {
			continue
		}
		entry, err := ks.GetTrustedCertificateEntry(alias)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", alias, err)
		}
		cert, err := x509.ParseCertificate(entry.Certificate.Content)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", alias, err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

func jksKeyPair(data []byte, password, keyPassword string) (tls.Certificate, error) {
	var pair tls.Certificate
	ks, err := loadJKS(data, password)
	if err != nil {
		return pair, err
	}
	for _, alias := range ks.Aliases() {
		if !ks.IsPrivateKeyEntry(alias) {
			continue
		}
		entry, err := ks.GetPrivateKeyEntry(alias, []byte(keyPassword))
		if err != nil {
			return pair, fmt.Errorf("key %s: %w (a wrong key password gives this too)", alias, err)
		}
		if pair.PrivateKey, err = x509.ParsePKCS8PrivateKey(entry.PrivateKey); err != nil {
			return pair, fmt.Errorf("key %s: %w", alias, err)
		}
		for _, cert := range entry.CertificateChain {
			pair.Certificate = append(pair.Certificate, cert.Content)
		}
		return pair, nil
	}
	return pair, errors.New("holds no private key")
}

// pkcs12Authorities tries both readings: a Java trust store has certificates
// alone, other tools put a key beside its chain, and each reader refuses the other.
func pkcs12Authorities(data []byte, password string) ([]*x509.Certificate, error) {
	certs, err := pkcs12.DecodeTrustStore(data, password)
	if err == nil {
		return certs, nil
	}
	if _, leaf, chain, chainErr := pkcs12.DecodeChain(data, password); chainErr == nil {
		return append([]*x509.Certificate{leaf}, chain...), nil
	}
	return nil, fmt.Errorf("read as PKCS12: %w", err)
}

func pkcs12KeyPair(data []byte, password string) (tls.Certificate, error) {
	key, leaf, chain, err := pkcs12.DecodeChain(data, password)
	if err != nil {
		if _, trustErr := pkcs12.DecodeTrustStore(data, password); trustErr == nil {
			return tls.Certificate{}, errors.New("holds no private key")
		}
		return tls.Certificate{}, fmt.Errorf("read as PKCS12: %w", err)
	}
	pair := tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
	for _, cert := range chain {
		pair.Certificate = append(pair.Certificate, cert.Raw)
	}
	return pair, nil
}

func pemCertificates(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

func pemKeyPair(data []byte, password string) (tls.Certificate, error) {
	var key *pem.Block
	var certs []byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE":
			certs = append(certs, pem.EncodeToMemory(block)...)
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", encryptedKeyType:
			if key == nil {
				key = block
			}
		}
	}
	if key == nil {
		return tls.Certificate{}, errors.New("holds no private key")
	}
	if key.Type == encryptedKeyType {
		plain, err := decryptPKCS8(key.Bytes, password)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("private key: %w", err)
		}
		key = &pem.Block{Type: "PRIVATE KEY", Bytes: plain}
	}
	return tls.X509KeyPair(slices.Clip(certs), pem.EncodeToMemory(key))
}
