package server

import (
	"cmp"
	"net/http"

	"heliograph/internal/api/aiven"
	"heliograph/internal/api/connect"
	"heliograph/internal/api/ovh"
	"heliograph/internal/config"
	"heliograph/internal/control"
)

// mountAdapters serves the APIs of others, each at the paths where its clients look for it.
func (s *Server) mountAdapters(mux *http.ServeMux) error {
	h, err := ovh.New(ovh.Options{
		Control: s.control, Credentials: func() ovh.Credentials { return s.live.Load().ovh }, Metrics: s.config.Metrics, Log: s.o.Log,
		Token: func(token string) (ovh.Grant, bool) {
			actor, ok := s.actor(token)
			return ovh.Grant{Actor: actor}, ok
		},
	})
	if err != nil {
		return err
	}
	for _, pattern := range ovh.Patterns() {
		mux.Handle(pattern, h)
	}
	mux.Handle(aiven.Pattern, aiven.New(aiven.Options{Control: s.control, Token: s.actor, Log: s.o.Log}))
	connectors := connect.New(connect.Options{Control: s.control, Token: s.actor, Version: s.o.Build.Version, Log: s.o.Log})
	for _, pattern := range connect.Patterns() {
		mux.Handle(pattern, connectors)
	}
	mux.Handle("GET /{$}", connectors) // until there is a page to show
	return nil
}

// ovhCredentials are the configuration's applications for OVHcloud's API.
func ovhCredentials(c *Config) (ovh.Credentials, error) {
	applications := make([]ovh.Application, len(c.OVH))
	for i, a := range c.OVH {
		applications[i] = ovh.Application{Key: a.Key, Secret: config.NewSecret(a.Secret)}
		for _, c := range a.Consumers {
			actor := control.Actor{Name: "ovh:" + cmp.Or(c.Tenant, c.Project), Tenant: c.Tenant, Scopes: scopes(c.Scopes)}
			if len(actor.Scopes) == 0 {
				actor.Scopes = []control.Scope{control.ScopeWrite}
			}
			applications[i].Consumers = append(applications[i].Consumers, ovh.Consumer{Key: config.NewSecret(c.Key), Project: c.Project, Actor: actor})
		}
	}
	return ovh.NewCredentials(applications)
}
