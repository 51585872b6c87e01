package server

import (
	"cmp"
	"net/http"
	"slices"

	"heliograph/internal/api/ovh"
	"heliograph/internal/config"
	"heliograph/internal/control"
)

// mountAdapters serves the APIs of others, each at the paths where its clients look for it.
func (s *Server) mountAdapters(mux *http.ServeMux) error {
	applications := make([]ovh.Application, len(s.config.OVH))
	for i, a := range s.config.OVH {
		applications[i] = ovh.Application{Key: a.Key, Secret: config.NewSecret(a.Secret)}
		for _, c := range a.Consumers {
			actor := control.Actor{Name: "ovh:" + cmp.Or(c.Tenant, c.Project), Tenant: c.Tenant, Scopes: scopes(c.Scopes)}
			if len(actor.Scopes) == 0 {
				actor.Scopes = []control.Scope{control.ScopeWrite}
			}
			applications[i].Consumers = append(applications[i].Consumers, ovh.Consumer{Key: config.NewSecret(c.Key), Project: c.Project, Actor: actor})
		}
	}
	h, err := ovh.New(ovh.Options{
		Control: s.control, Applications: applications, Log: s.o.Log,
		Token: func(token string) (ovh.Grant, bool) {
			actor, ok := s.tokens.Load().actor(token)
			return ovh.Grant{Actor: actor}, ok
		},
	})
	if err != nil {
		return err
	}
	for _, prefix := range slices.Concat([]string{"/1.0/"}, []string{"/auth/", "/cloud/", "/v1/auth/", "/v1/cloud/"}) {
		mux.Handle(prefix, h)
	}
	return nil
}
