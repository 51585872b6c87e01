package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heliograph/internal/control"
)

// adminTokenFile is where the first start leaves the admin token.
const adminTokenFile = "admin.token"

// tokens are who may ask, by the SHA-256 of what they send. Looking a hash up tells
// nothing of the tokens by its time.
type tokens map[[sha256.Size]byte]control.Actor

// actor is who sends that token.
func (t tokens) actor(token string) (control.Actor, bool) {
	if token == "" {
		return control.Actor{}, false
	}
	a, ok := t[sha256.Sum256([]byte(token))]
	return a, ok
}

// readTokens reads the configured tokens and the admin token of the data directory.
func readTokens(c *Config, admin string) (tokens, error) {
	all := tokens{sha256.Sum256([]byte(admin)): {Name: "admin", Scopes: []control.Scope{control.ScopeAdmin}}}
	for i, t := range c.Tokens {
		var sum [sha256.Size]byte
		if t.File != "" {
			data, err := os.ReadFile(t.File)
			text := strings.TrimSpace(string(data))
			if err == nil && len(text) < 16 {
				err = errors.New("a token needs at least 16 characters")
			}
			if err != nil {
				return nil, fmt.Errorf("tokens[%d].file: %s: %w", i, t.File, err)
			}
			sum = sha256.Sum256([]byte(text))
		} else {
			raw, err := hex.DecodeString(t.SHA256)
			if err != nil {
				return nil, fmt.Errorf("tokens[%d].sha256: %w", i, err)
			}
			copy(sum[:], raw)
		}
		if _, taken := all[sum]; taken {
			return nil, fmt.Errorf("tokens[%d]: it is another token's too", i)
		}
		all[sum] = control.Actor{Name: t.Name, Tenant: t.Tenant, Scopes: scopes(t.Scopes)}
	}
	return all, nil
}

func scopes(names []string) []control.Scope {
	out := make([]control.Scope, len(names))
	for i, n := range names {
		out[i] = control.Scope(n)
	}
	return out
}

// adminToken reads the admin token, or makes one for the owner's eyes at the first start.
func adminToken(dir string) (token string, fresh bool, err error) {
	name := filepath.Join(dir, adminTokenFile)
	data, err := os.ReadFile(name)
	if err == nil {
		token = strings.TrimSpace(string(data))
		if len(token) < 16 {
			return "", false, fmt.Errorf("%s holds no token of at least 16 characters; remove it, and the next start makes one", name)
		}
		info, err := os.Stat(name)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			return "", false, fmt.Errorf("%s can be read by others: chmod 600 %s", name, name)
		}
		return token, false, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", false, err
	}
	token = rand.Text()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", false, err
	}
	if _, err = f.WriteString(token + "\n"); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return token, true, err
}
