package native

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"heliograph/internal/control"
)

// ServerView is the server.
type ServerView struct {
	Version  string         `json:"version" doc:"The release."`
	Commit   string         `json:"commit,omitempty"`
	Revision int64          `json:"revision" doc:"That of the last change of any resource."`
	Actor    string         `json:"actor" doc:"Who the token is."`
	Tenant   string         `json:"tenant,omitempty" doc:"Whose the token is; empty for the server's owner."`
	Scopes   []string       `json:"scopes" doc:"What the token may do: read, write, admin."`
	Clusters int            `json:"clusters" doc:"Clusters that the token may see."`
	Flows    map[string]int `json:"flows" doc:"Flows that the token may see, by state."`
}

type serverOutput struct{ Body ServerView }

func (a *API) registerServer() {
	huma.Register(a.huma, op("get-server", http.MethodGet, "/server", "The server, and what the token may do", "server"),
		func(ctx context.Context, _ *struct{}) (*serverOutput, error) {
			actor := control.ActorOf(ctx)
			v := ServerView{
				Version: a.o.Build.Version, Commit: a.o.Build.Commit, Revision: int64(a.o.Control.Revision()),
				Actor: actor.Name, Tenant: actor.Tenant, Scopes: []string{}, Flows: map[string]int{},
			}
			for _, s := range actor.Scopes {
				v.Scopes = append(v.Scopes, string(s))
			}
			v.Clusters = len(a.o.Control.Clusters(ctx))
			for _, f := range a.o.Control.Flows(ctx) {
				state, _ := a.state(ctx, &f)
				v.Flows[state]++
			}
			return &serverOutput{v}, nil
		})
}

// op is an operation with the problems that any may answer.
func op(id, method, path, summary, tag string, more ...int) huma.Operation {
	o := huma.Operation{
		OperationID: id, Method: method, Path: "/api/v1" + path, Summary: summary, Description: summary + ".", Tags: []string{tag},
		Errors: append([]int{http.StatusUnauthorized, http.StatusForbidden}, more...), MaxBodyBytes: maxBody,
	}
	return o
}

// write is an operation that changes something.
func write(id, method, path, summary, tag string) huma.Operation {
	return op(id, method, path, summary, tag, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict,
		http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable)
}
