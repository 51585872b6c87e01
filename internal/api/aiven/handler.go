package aiven

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"heliograph/internal/api/adapter"
	"heliograph/internal/api/jsonobject"
	"heliograph/internal/control"
	"heliograph/internal/flow"
)

// Control is what this API asks of the control plane. [control.Control] is it.
type Control interface {
	Cluster(ctx context.Context, alias string) (control.Cluster, error)
	Flows(ctx context.Context) []control.Flow
	Flow(ctx context.Context, source, target string) (control.Flow, error)
	Status(ctx context.Context, source, target string) (flow.Status, bool)
	PutFlow(ctx context.Context, f control.Flow, m control.Match) (control.Flow, error)
	DeleteFlow(ctx context.Context, source, target string, m control.Match) error
}

// Options make a Handler.
type Options struct {
	Control Control
	// Token says who a token stands for.
	Token func(token string) (control.Actor, bool)
	Log   *slog.Logger
}

// Pattern is where to mount the handler in a server's [http.ServeMux].
const Pattern = "/v1/project/"

const flowsPath = "/v1/project/{project}/service/{service_name}/mirrormaker/replication-flows"

const maxBody = 1 << 20

type handler struct {
	o   Options
	mux *http.ServeMux
}

// New makes a handler of everything below [Pattern].
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o: o, mux: http.NewServeMux()}
	const one = flowsPath + "/{source_cluster}/{target_cluster}"
	for pattern, do := range map[string]work{
		"GET " + flowsPath:  h.list,
		"POST " + flowsPath: h.create,
		"GET " + one:        h.read,
		"PUT " + one:        h.update,
		"DELETE " + one:     h.delete,
	} {
		h.mux.HandleFunc(pattern, h.serve(do))
	}
	return h
}

// work answers one call with a status and a value for JSON.
type work func(r *http.Request, data []byte) (int, any, error)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	if adapter.OtherMethod(h.mux, r) {
		h.refuse(w, r, &Error{Status: http.StatusMethodNotAllowed, Message: "this path has no " + r.Method})
		return
	}
	h.refuse(w, r, &Error{Status: http.StatusNotFound, Message: "heliograph has no such call of Aiven's API: it answers for replication flows only"})
}

func (h *handler) serve(do work) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, value, err := h.work(w, r, do)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		answer(w, status, value)
	}
}

func (h *handler) work(w http.ResponseWriter, r *http.Request, do work) (int, any, error) {
	actor, ok := h.authenticate(r)
	if !ok {
		return 0, nil, &Error{Status: http.StatusUnauthorized, Message: "Missing or invalid token"}
	}
	if !actor.May(adapter.Scope(r)) {
		return 0, nil, &Error{Status: http.StatusForbidden, Message: "The token does not permit this call"}
	}
	if name := r.PathValue("project"); actor.Tenant != "" && actor.Tenant != name {
		return 0, nil, &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("Project %s does not exist", name)}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return 0, nil, &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("The body is over %d bytes", maxBody)}
	}
	if err != nil {
		return 0, nil, &Error{Status: http.StatusBadRequest, Message: "The body cannot be read"}
	}
	return do(r.WithContext(control.WithActor(r.Context(), actor)), data)
}

// authenticate knows Aiven's own scheme and the usual one.
func (h *handler) authenticate(r *http.Request) (control.Actor, bool) {
	if h.o.Token == nil {
		return control.Actor{}, false
	}
	return h.o.Token(adapter.Bearer(r.Header.Get("Authorization"), "aivenv1"))
}

// Error is an answer that is not a success.
type Error struct {
	Status  int
	Message string
}

// Error is for the log.
func (e *Error) Error() string { return e.Message }

// errorBody is Aiven's form of an error.
type errorBody struct {
	Message string     `json:"message"`
	Errors  []oneError `json:"errors"`
}

type oneError struct {
	Message string `json:"message"`
	Status  int    `json:"status"`
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := answerOf(err)
	if e.Status >= http.StatusInternalServerError {
		h.o.Log.Error("a request was not answered", "method", r.Method, "path", r.URL.Path, "status", e.Status, "err", err)
	}
	answer(w, e.Status, errorBody{Message: e.Message, Errors: []oneError{{Message: e.Message, Status: e.Status}}})
}

// answerOf turns any error into an answer.
func answerOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsonobject.Error](err); ok {
		return &Error{Status: http.StatusBadRequest, Message: e.Error()}
	}
	e, ok := errors.AsType[*control.Error](err)
	if !ok {
		return &Error{Status: http.StatusInternalServerError, Message: "heliograph failed; its log says why"}
	}
	switch e.Kind {
	case control.Invalid:
		return &Error{Status: http.StatusBadRequest, Message: adapter.Invalid(e, fieldOf)}
	case control.NotFound:
		return &Error{Status: http.StatusNotFound, Message: e.Message}
	case control.Conflict:
		return &Error{Status: http.StatusConflict, Message: e.Message}
	case control.Precondition:
		return &Error{Status: http.StatusConflict, Message: "The flow was changed by somebody else at this moment; try again"}
	case control.Forbidden, control.TooMany:
		return &Error{Status: http.StatusForbidden, Message: e.Error()}
	case control.Unavailable:
		return &Error{Status: http.StatusServiceUnavailable, Message: e.Message}
	case control.Internal:
	}
	return &Error{Status: http.StatusInternalServerError, Message: "heliograph failed; its log says why"}
}

// fieldOf is Aiven's name of a setting, or of a part of a flow.
func fieldOf(name string) string {
	for _, s := range settings {
		if s.key == name {
			return s.field
		}
	}
	switch name {
	case "source", "target":
		return name + "_cluster"
	case keyExclude:
		return "topics_exclude"
	case keyConfigExclude:
		return "config_properties_exclude"
	case keyExactlyOnce:
		return "exactly_once_delivery_enabled"
	}
	return name
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	adapter.Answer(w, status, value, errorBody{Message: "heliograph failed", Errors: []oneError{}})
}
