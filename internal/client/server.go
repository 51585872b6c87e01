package client

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Server is where a server is and how to ask it.
type Server struct {
	URL       string `yaml:"server" json:"server"`
	TokenFile string `yaml:"token-file,omitempty" json:"token_file,omitempty"`
	CAFile    string `yaml:"ca-file,omitempty" json:"ca_file,omitempty"`

	token string
}

// WithToken is the server with a token that came from the environment. A token
// file beats it.
func (s Server) WithToken(token string) Server {
	s.token = token
	return s
}

// readToken returns the token, or nothing: some servers ask for none.
func (s Server) readToken() (string, error) {
	token := s.token
	if s.TokenFile != "" {
		data, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		token = string(bytes.TrimSpace(data))
		if token == "" {
			return "", fmt.Errorf("token file %s: it is empty", s.TokenFile)
		}
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", errors.New("the token holds blanks or characters that no token has")
	}
	return token, nil
}

// Contexts are the servers that a user knows by name, as their file holds them.
type Contexts struct {
	Current string            `yaml:"current,omitempty" json:"current"`
	Servers map[string]Server `yaml:"contexts" json:"contexts"`
}

// ContextsFile is where contexts are kept: HELIOGRAPH_CONTEXTS, or the user's
// configuration directory.
func ContextsFile(getenv func(string) string) (string, error) {
	if file := getenv("HELIOGRAPH_CONTEXTS"); file != "" {
		return file, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for contexts: %w; set HELIOGRAPH_CONTEXTS", err)
	}
	return filepath.Join(dir, "heliograph", "contexts.yaml"), nil
}

// ReadContexts reads the file; without one there are none.
func ReadContexts(file string) (*Contexts, error) {
	c := &Contexts{Servers: map[string]Server{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalWithOptions(data, c, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", file, firstLine(yaml.FormatError(err, false, false)))
	}
	if c.Servers == nil {
		c.Servers = map[string]Server{}
	}
	return c, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Write replaces the file; nobody else may read it.
func (c *Contexts) Write(file string) error {
	data, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".contexts-*") // 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // err tells what matters
	}
	return err
}

// Names are the contexts in order.
func (c *Contexts) Names() []string {
	var names []string
	for name := range c.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Get is one context.
func (c *Contexts) Get(name string) (Server, error) {
	s, ok := c.Servers[name]
	if !ok {
		known := "there is none yet; heliograph context set makes one"
		if len(c.Servers) > 0 {
			known = "there are " + strings.Join(c.Names(), ", ")
		}
		return Server{}, fmt.Errorf("no context %q: %s", name, known)
	}
	return s, nil
}
