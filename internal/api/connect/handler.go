package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

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
	Commit(ctx context.Context, changes ...control.Change) (control.Revision, error)
	Restart(ctx context.Context, source, target string) error
}

// Options make a Handler.
type Options struct {
	Control Control
	// Token says who a bearer token, or the password of basic authentication, stands for.
	Token   func(token string) (control.Actor, bool)
	Version string // of heliograph, for GET /
	Log     *slog.Logger
}

// Patterns are where to mount the handler in a server's [http.ServeMux]. It answers
// GET / with Connect's words too, where the server leaves that to it.
func Patterns() []string { return []string{"/connectors", "/connectors/", "/connector-plugins"} }

const maxBody = 1 << 20

type handler struct {
	o      Options
	mux    *http.ServeMux
	worker string // who runs all tasks
}

// New makes a handler.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o: o, mux: http.NewServeMux()}
	if host, err := os.Hostname(); err == nil {
		h.worker = host
	}
	const one = "/connectors/{name}"
	for pattern, do := range map[string]work{
		"GET /{$}":                              h.root,
		"GET /connector-plugins":                h.plugins,
		"GET /connectors":                       h.list,
		"POST /connectors":                      h.create,
		"GET " + one:                            h.info,
		"DELETE " + one:                         h.delete,
		"GET " + one + "/config":                h.config,
		"PUT " + one + "/config":                h.putConfig,
		"PATCH " + one + "/config":              h.patchConfig,
		"GET " + one + "/status":                h.status,
		"PUT " + one + "/pause":                 h.pause,
		"PUT " + one + "/resume":                h.resume,
		"PUT " + one + "/stop":                  h.stop,
		"POST " + one + "/restart":              h.restart,
		"GET " + one + "/topics":                h.topics,
		"GET " + one + "/offsets":               h.offsets,
		"GET " + one + "/tasks":                 h.tasks,
		"GET " + one + "/tasks-config":          h.tasksConfig,
		"GET " + one + "/tasks/{task}/status":   h.taskStatus,
		"POST " + one + "/tasks/{task}/restart": h.restartTask,
	} {
		h.mux.HandleFunc(pattern, h.serve(do))
	}
	return h
}

// request is one call that may be answered.
type request struct {
	*http.Request
	data []byte
}

// reply is a status and a value for JSON; nil for no body.
type reply struct {
	status int
	value  any
}

func ok(value any) (reply, error)    { return reply{http.StatusOK, value}, nil }
func done(status int) (reply, error) { return reply{status: status}, nil }

type work func(r *request) (reply, error)

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return
	}
	if adapter.OtherMethod(h.mux, r) {
		h.refuse(w, r, &Error{http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed"})
		return
	}
	h.refuse(w, r, &Error{http.StatusNotFound, "HTTP 404 Not Found"})
}

func (h *handler) serve(do work) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := h.work(w, r, do)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		answer(w, out)
	}
}

func (h *handler) work(w http.ResponseWriter, r *http.Request, do work) (reply, error) {
	actor, ok := h.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="heliograph"`)
		return reply{}, &Error{http.StatusUnauthorized, "User cannot access the resource: a token is needed, as bearer token or as password."}
	}
	if !actor.May(adapter.Scope(r)) {
		return reply{}, &Error{http.StatusForbidden, "the token may only read"}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return reply{}, &Error{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", maxBody)}
	}
	if err != nil {
		return reply{}, &Error{http.StatusBadRequest, "the body cannot be read"}
	}
	return do(&request{Request: r.WithContext(control.WithActor(r.Context(), actor)), data: data})
}

func (h *handler) authenticate(r *http.Request) (control.Actor, bool) {
	if h.o.Token == nil {
		return control.Actor{}, false
	}
	if _, password, ok := r.BasicAuth(); ok {
		return h.o.Token(password)
	}
	return h.o.Token(adapter.Bearer(r.Header.Get("Authorization")))
}

// Error is an answer that is not a success.
type Error struct {
	Status  int
	Message string
}

// Error is for the log.
func (e *Error) Error() string { return e.Message }

func notFound(name string) *Error {
	return &Error{http.StatusNotFound, fmt.Sprintf("Connector %s not found", name)}
}

func conflict(format string, args ...any) *Error {
	return &Error{http.StatusConflict, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// errorBody is Connect's form of an error.
type errorBody struct {
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := answerOf(err)
	if e.Status >= http.StatusInternalServerError {
		h.o.Log.Error("a request was not answered", "method", r.Method, "path", r.URL.Path, "status", e.Status, "err", err)
	}
	answer(w, reply{e.Status, errorBody{e.Status, e.Message}})
}

// answerOf turns any error into an answer.
func answerOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsonobject.Error](err); ok {
		return badRequest("%v", e)
	}
	e, ok := errors.AsType[*control.Error](err)
	if !ok {
		return &Error{http.StatusInternalServerError, "heliograph failed; its log says why"}
	}
	switch e.Kind {
	case control.Invalid:
		return badRequest("Connector configuration is invalid: %s", e.Error())
	case control.NotFound:
		return &Error{http.StatusNotFound, e.Message}
	case control.Conflict:
		return conflict("%s", e.Message)
	case control.Precondition:
		return conflict("the flow was changed by somebody else at this moment; try again")
	case control.Forbidden, control.TooMany:
		return &Error{http.StatusForbidden, e.Error()}
	case control.Unavailable:
		return &Error{http.StatusServiceUnavailable, e.Message}
	case control.Internal:
	}
	return &Error{http.StatusInternalServerError, "heliograph failed; its log says why"}
}

func answer(w http.ResponseWriter, out reply) {
	if out.value == nil {
		w.WriteHeader(out.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	adapter.Answer(w, out.status, out.value, errorBody{http.StatusInternalServerError, "heliograph failed"})
}

// root says who answers, in the place of Connect's worker.
func (h *handler) root(*request) (reply, error) {
	return ok(map[string]string{"version": kafkaVersion, "commit": "heliograph-" + h.o.Version, "kafka_cluster_id": ""})
}

// kafkaVersion is the release of MirrorMaker whose connectors these are like.
const kafkaVersion = "4.3.1"

type plugin struct {
	Class   string `json:"class"`
	Type    string `json:"type"`
	Version string `json:"version"`
}

func (h *handler) plugins(*request) (reply, error) {
	var out []plugin
	for _, k := range kinds {
		out = append(out, plugin{k.class(), "source", kafkaVersion})
	}
	return ok(out)
}
