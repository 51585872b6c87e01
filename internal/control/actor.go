package control

import (
	"context"
	"slices"
)

// Scope is what a token may do.
type Scope string

// The scopes, each with what is below it.
const (
	ScopeRead  Scope = "read"  // see own resources and their state
	ScopeWrite Scope = "write" // change them
	ScopeAdmin Scope = "admin" // all tenants' resources, and the server itself
)

// Actor is who asks. The administrator has no tenant.
type Actor struct {
	Name   string // for events and logs
	Tenant string
	Scopes []Scope
}

// May says whether the actor has the scope, or one above it.
func (a Actor) May(s Scope) bool {
	order := []Scope{ScopeRead, ScopeWrite, ScopeAdmin}
	need := slices.Index(order, s)
	return slices.ContainsFunc(a.Scopes, func(have Scope) bool { return slices.Index(order, have) >= need })
}

type actorKey struct{}

// WithActor says who asks with this context.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who asks. A context without an actor may do nothing.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// Sees says whether the actor may know of a resource of that tenant.
func (a Actor) Sees(tenant string) bool {
	return a.May(ScopeAdmin) || a.May(ScopeRead) && a.Tenant == tenant
}
