package server

import (
	"cmp"
	"crypto/tls"
	"fmt"

	"heliograph/internal/api/ovh"
	"heliograph/internal/control"
	"heliograph/internal/telemetry"
)

// live is what requests are answered by. A reload replaces it as a whole, or leaves it.
type live struct {
	hosts       []string
	tokens      tokens
	ovh         ovh.Credentials
	certificate *tls.Certificate // nil: plain HTTP
}

// readLive reads what a configuration says of them, with the files that it names. An admin
// token that is not there is made.
func (s *Server) readLive(c *Config) (*live, error) {
	admin, fresh, err := adminToken(s.data)
	if err != nil {
		return nil, fmt.Errorf("admin token: %w", err)
	}
	if fresh {
		s.o.Log.Info("an admin token was made", telemetry.KeyFile, s.TokenFile())
	}
	l := &live{hosts: c.Hosts}
	if l.tokens, err = readTokens(c, admin); err != nil {
		return nil, err
	}
	if l.ovh, err = ovhCredentials(c); err != nil {
		return nil, err
	}
	if c.TLS != nil {
		pair, err := tls.LoadX509KeyPair(c.TLS.Certificate, c.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		l.certificate = &pair
	}
	return l, nil
}

// actor is who sends that token, by the configuration of this moment.
func (s *Server) actor(token string) (control.Actor, bool) { return s.live.Load().tokens.actor(token) }

// certificate is the one to show, for each connection anew.
func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.live.Load().certificate, nil
}

// restarts names what of a configuration differs from what the server was started with and
// cannot be taken over while it runs: where it listens, and where it keeps things.
func (s *Server) restarts(c *Config) []string {
	var names []string
	for _, fixed := range []struct {
		name      string
		was, want string
	}{
		{"listen", cmp.Or(s.o.Listen, s.config.Listen), cmp.Or(s.o.Listen, c.Listen)},
		{"data", cmp.Or(s.o.Data, s.config.Data), cmp.Or(s.o.Data, c.Data)},
		{"metrics", s.config.Metrics, c.Metrics},
		{"store", fmt.Sprint(s.config.Store.orNone()), fmt.Sprint(c.Store.orNone())},
		{"tls", fmt.Sprint(s.config.TLS != nil), fmt.Sprint(c.TLS != nil)},
	} {
		if fixed.was != fixed.want {
			names = append(names, fixed.name)
		}
	}
	return names
}

func (s *Store) orNone() Store {
	if s == nil {
		return Store{}
	}
	return *s
}
