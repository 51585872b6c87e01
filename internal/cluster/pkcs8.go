package cluster

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des" //nolint:gosec // openssl wrote keys with it for years; it only reads them here
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // the default of PBKDF2 in PKCS #5
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

// encryptedKeyType is the PEM type of an encrypted PKCS #8 key, which is the
// only kind Kafka takes in ssl.keystore.key with a password.
const encryptedKeyType = "ENCRYPTED PRIVATE KEY"

type encryptedPKCS8 struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2Params struct {
	KDF    pkix.AlgorithmIdentifier
	Cipher pkix.AlgorithmIdentifier
}

type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

// maxIterations refuses a key file that would keep a core busy for minutes.
const maxIterations = 10_000_000

// decryptPKCS8 opens an encrypted PKCS #8 key: PBES2 with PBKDF2 and AES-CBC or
// triple DES, which is what openssl and keytool write.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	if password == "" {
		return nil, errors.New("is encrypted and no key password is set")
	}
	var key encryptedPKCS8
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, fmt.Errorf("read as PKCS8: %w", err)
	}
	if key.Algorithm.Algorithm.String() != "1.2.840.113549.1.5.13" {
		return nil, fmt.Errorf("is encrypted with %s, only PBES2 is supported; convert it with openssl pkcs8 -topk8 -v2 aes256", key.Algorithm.Algorithm)
	}
	var params pbes2Params
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, fmt.Errorf("read its encryption: %w", err)
	}
	var kdf pbkdf2Params
	if _, err := asn1.Unmarshal(params.KDF.Parameters.FullBytes, &kdf); err != nil {
		return nil, fmt.Errorf("read its key derivation: %w", err)
	}
	if kdf.Iterations <= 0 || kdf.Iterations > maxIterations {
		return nil, fmt.Errorf("asks for %d rounds of key derivation", kdf.Iterations)
	}
	size, newCipher, err := pbes2Cipher(params.Cipher.Algorithm.String())
	if err != nil {
		return nil, err
	}
	prf, err := pbkdf2Hash(kdf.PRF.Algorithm.String())
	if err != nil {
		return nil, err
	}
	secret, err := pbkdf2.Key(prf, password, kdf.Salt, kdf.Iterations, size)
	if err != nil {
		return nil, fmt.Errorf("derive its key: %w", err)
	}
	block, err := newCipher(secret)
	if err != nil {
		return nil, err
	}
	var iv []byte
	if _, err := asn1.Unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, fmt.Errorf("read its initial vector: %w", err)
	}
	return decryptCBC(block, iv, key.Data)
}

func pbes2Cipher(oid string) (int, func([]byte) (cipher.Block, error), error) {
	switch oid {
	case "2.16.840.1.101.3.4.1.2":
		return 16, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.22":
		return 24, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.42":
		return 32, aes.NewCipher, nil
	case "1.2.840.113549.3.7":
		return 24, des.NewTripleDESCipher, nil
	}
	return 0, nil, fmt.Errorf("is encrypted with cipher %s, which is not supported; convert it with openssl pkcs8 -topk8 -v2 aes256", oid)
}

func pbkdf2Hash(oid string) (func() hash.Hash, error) {
	switch oid {
	case "", "1.2.840.113549.2.7":
		return sha1.New, nil
	case "1.2.840.113549.2.9":
		return sha256.New, nil
	case "1.2.840.113549.2.11":
		return sha512.New, nil
	}
	return nil, fmt.Errorf("derives its key with hash %s, which is not supported; convert it with openssl pkcs8 -topk8 -v2 aes256", oid)
}

func decryptCBC(block cipher.Block, iv, data []byte) ([]byte, error) {
	errPassword := errors.New("cannot be decrypted: the key password is wrong")
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errors.New("is damaged")
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, data)
	pad := int(out[len(out)-1])
	if pad == 0 || pad > size {
		return nil, errPassword
	}
	for _, b := range out[len(out)-pad:] {
		if int(b) != pad {
			return nil, errPassword
		}
	}
	return out[:len(out)-pad], nil
}
