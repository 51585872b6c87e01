package native

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"heliograph/internal/api/adapter"
	"heliograph/internal/config"
	"heliograph/internal/control"
	"heliograph/internal/flow"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/telemetry"
)

// Engine is what runs, as far as a person decides things of it. [daemon.Daemon] is one.
type Engine interface {
	Held(id mirror.FlowID) []flow.HeldChange
	Decide(id mirror.FlowID, topic, setting string, accept bool) error
	Answer(id mirror.FlowID, tp kafka.TopicPartition, choice string) error
	Topics(id mirror.FlowID) []flow.TopicStatus
}

// Options make an API.
type Options struct {
	Control *control.Control
	Engine  Engine
	// Actor says who a token is.
	Actor func(token string) (control.Actor, bool)
	Build telemetry.Build
	Log   *slog.Logger
}

// API is the native API. It is an http.Handler for the paths under /api/v1.
type API struct {
	o    Options
	mux  *http.ServeMux
	huma huma.API
	jobs jobs
	// asking bounds how many requests ask clusters at the same time.
	asking chan struct{}
}

// Bounds of requests.
const (
	maxAsking = 8
	maxBody   = 1 << 20
)

var setProblems = sync.OnceFunc(func() { huma.NewError = newProblem })

// New makes the API. Close ends what runs in its name.
func New(o Options) *API {
	setProblems()
	a := &API{o: o, mux: http.NewServeMux(), asking: make(chan struct{}, maxAsking)}
	cfg := huma.DefaultConfig("heliograph", "1.0.0")
	cfg.CreateHooks = nil
	cfg.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	cfg.DocsPath, cfg.SchemasPath, cfg.OpenAPIPath = "", "", "/api/v1/openapi"
	cfg.RejectUnknownQueryParameters = true
	cfg.Info.Description = "Replication of Apache Kafka topics, settings, ACLs and consumer groups as a service. " +
		"Writes take If-Match with the ETag that was read, or If-None-Match: * to create; the same request again changes nothing."
	cfg.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	cfg.Info.Contact = &huma.Contact{Name: "heliograph"}
	cfg.Servers = []*huma.Server{{URL: "/", Description: "This server"}}
	cfg.Security = []map[string][]string{{"token": {}}}
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "A token of the server's configuration, or its admin token."},
	}
	cfg.Tags = []*huma.Tag{
		{Name: "server", Description: "The server itself."},
		{Name: "clusters", Description: "Kafka clusters that flows may use."},
		{Name: "flows", Description: "Flows: an ordered pair of clusters with settings in MirrorMaker's names."},
		{Name: "state", Description: "How a flow stands, and decisions that it waits for."},
		{Name: "questions", Description: "Answers from the clusters of a flow: groups, losses, translated offsets, a preview."},
		{Name: "verifications", Description: "Comparisons of copies with their sources."},
		{Name: "changes", Description: "Several changes at once, and what they would do."},
		{Name: "events", Description: "What happens, as it happens."},
	}
	a.huma = humago.New(a.mux, cfg)
	a.huma.UseMiddleware(a.authenticate)
	a.registerServer()
	a.registerClusters()
	a.registerFlows()
	a.registerState()
	a.registerQuestions()
	a.registerVerifications()
	a.registerChanges()
	a.registerEvents()
	return a
}

// schemaName is a type's name in the document. The remarks of config on a file are called so, and
// the problems of a request keep the word of RFC 9457.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[config.Problem]() {
		return "Remark"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// OpenAPI is the document that describes the API.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }

// ServeHTTP answers a request. What curl -d sends is taken for what it is meant to be: JSON.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		r.Header.Set("Content-Type", "application/json")
	}
	a.mux.ServeHTTP(w, r)
}

// Close ends the jobs that run.
func (a *API) Close() { a.jobs.close() }

// authenticate finds out who asks. Every route wants a token, on loopback too.
func (a *API) authenticate(ctx huma.Context, next func(huma.Context)) {
	actor, ok := a.o.Actor(adapter.Bearer(ctx.Header("Authorization")))
	if !ok {
		ctx.SetHeader("WWW-Authenticate", `Bearer realm="heliograph"`)
		_ = huma.WriteErr(a.huma, ctx, http.StatusUnauthorized, "a valid token is needed: Authorization: Bearer TOKEN") // who went away reads nothing
		return
	}
	if !actor.May(control.ScopeRead) {
		_ = huma.WriteErr(a.huma, ctx, http.StatusForbidden, "the token may see nothing") // as above
		return
	}
	next(huma.WithContext(ctx, control.WithActor(ctx.Context(), actor)))
}

// ask takes one of the places of requests that ask clusters, or says that all are taken.
func (a *API) ask(ctx context.Context) (done func(), err error) {
	select {
	case a.asking <- struct{}{}:
		return func() { <-a.asking }, nil
	case <-ctx.Done():
		return nil, refuse(http.StatusServiceUnavailable, "the request was given up")
	default:
		return nil, refuse(http.StatusServiceUnavailable, "the server is asking clusters for others; try again")
	}
}
