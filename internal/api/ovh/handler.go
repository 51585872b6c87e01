package ovh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"heliograph/internal/api/adapter"
	"heliograph/internal/api/jsonobject"
	"heliograph/internal/cluster"
	"heliograph/internal/control"
	"heliograph/internal/flow"
)

// Control is what this API asks of the control plane. [control.Control] is it.
type Control interface {
	Clusters(ctx context.Context) []control.Cluster
	Flow(ctx context.Context, source, target string) (control.Flow, error)
	Status(ctx context.Context, source, target string) (flow.Status, bool)
	Document(ctx context.Context, kind, id string) (control.Document, error)
	Documents(ctx context.Context, kind string) []control.Document
	Events(ctx context.Context, after uint64) []control.Event
	Commit(ctx context.Context, changes ...control.Change) (control.Revision, error)
	Client(ctx context.Context, alias string) (*cluster.Client, error)
}

// Options make a Handler.
type Options struct {
	Control Control
	// Credentials are those of the moment: they may change while requests are answered.
	Credentials func() Credentials
	// Metrics is the host:port where Prometheus scrapes without a token; empty where it
	// is this server's own address.
	Metrics string
	// Token says what a bearer token may do; nil refuses all.
	Token func(token string) (Grant, bool)
	Now   func() time.Time // nil: the clock
	Log   *slog.Logger
}

// Handler answers OVHcloud's API at the paths where OVHcloud's clients look for it:
// at the root, below /1.0 and below /v1.
type Handler struct {
	o       Options
	mux     *http.ServeMux
	host    string
	started time.Time
}

// Bounds of one request.
const (
	maxBody     = 1 << 20
	maxDuration = 30 * time.Second // of what is asked of a cluster
)

// New makes a handler.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{o: o, mux: http.NewServeMux(), started: o.Now()}
	var err error
	if h.host, err = os.Hostname(); err != nil {
		h.host = "heliograph"
	}
	h.routes()
	return h, nil
}

// Patterns are where to mount the handler in a server's [http.ServeMux].
func Patterns() []string {
	var out []string
	for _, prefix := range []string{"", "/1.0", "/v1"} {
		out = append(out, prefix+"/auth/", prefix+"/cloud/")
	}
	return out
}

// call is one request that may be answered.
type call struct {
	*http.Request
	project string
	actor   control.Actor
	data    []byte
}

// body takes the request's object apart.
func (c *call) body() body { return body{jsonobject.Parse(c.data)} }

// work answers one call with a value for JSON, or says why not.
type work func(c *call) (any, error)

const (
	pathDatabase = "/cloud/project/{serviceName}/database"
	pathServices = pathDatabase + "/service"
	pathMirrors  = pathDatabase + "/kafkaMirrorMaker"
	pathMirror   = pathMirrors + "/{clusterId}"
	pathKafkas   = pathDatabase + "/kafka"
	pathKafka    = pathKafkas + "/{clusterId}"
)

func (h *Handler) routes() {
	h.mux.HandleFunc("GET /auth/time", h.time)
	routes := map[string]work{
		"GET /cloud/project":                   h.listProjects,
		"GET " + pathServices:                  h.listServices,
		"GET " + pathServices + "/{clusterId}": h.getService,

		"GET " + pathMirrors:   h.listMirrors,
		"POST " + pathMirrors:  h.createMirror,
		"GET " + pathMirror:    h.getMirror,
		"PUT " + pathMirror:    h.updateMirror,
		"DELETE " + pathMirror: h.deleteMirror,
		"GET " + pathKafkas:    h.listKafkas,
		"POST " + pathKafkas:   h.createKafka,
		"GET " + pathKafka:     h.getKafka,
		"PUT " + pathKafka:     h.updateKafka,
		"DELETE " + pathKafka:  h.deleteKafka,

		"GET " + pathMirror + "/capabilities/integration":             h.integrationCapabilities,
		"GET " + pathMirror + "/integration":                          h.listIntegrations,
		"POST " + pathMirror + "/integration":                         h.createIntegration,
		"GET " + pathMirror + "/integration/{integrationId}":          h.getIntegration,
		"DELETE " + pathMirror + "/integration/{integrationId}":       h.deleteIntegration,
		"GET " + pathKafka + "/capabilities/integration":              h.integrationCapabilities,
		"GET " + pathKafka + "/integration":                           h.listKafkaIntegrations,
		"POST " + pathKafka + "/integration":                          h.createKafkaIntegration,
		"GET " + pathKafka + "/integration/{integrationId}":           h.getKafkaIntegration,
		"DELETE " + pathKafka + "/integration/{integrationId}":        h.deleteKafkaIntegration,
		"GET " + pathMirror + "/replication":                          h.listReplications,
		"POST " + pathMirror + "/replication":                         h.createReplication,
		"GET " + pathMirror + "/replication/{replicationId}":          h.getReplication,
		"PUT " + pathMirror + "/replication/{replicationId}":          h.updateReplication,
		"DELETE " + pathMirror + "/replication/{replicationId}":       h.deleteReplication,
		"GET " + pathMirror + "/node":                                 h.listMirrorNodes,
		"GET " + pathMirror + "/node/{nodeId}":                        h.getMirrorNode,
		"GET " + pathMirror + "/metric":                               h.listMetrics,
		"GET " + pathMirror + "/metric/{metricName}":                  h.getMetric,
		"GET " + pathMirror + "/logs":                                 h.logs,
		"GET " + pathMirror + "/log/kind":                             h.none,
		"GET " + pathMirror + "/log/kind/{name}":                      h.noLogForwarding,
		"GET " + pathMirror + "/log/subscription":                     h.none,
		"POST " + pathMirror + "/log/subscription":                    h.noLogForwarding,
		"GET " + pathMirror + "/log/subscription/{subscriptionId}":    h.noLogForwarding,
		"DELETE " + pathMirror + "/log/subscription/{subscriptionId}": h.noLogForwarding,
		"POST " + pathMirror + "/log/url":                             h.noLogForwarding,
		"GET " + pathMirror + "/maintenance":                          h.none,
		"GET " + pathMirror + "/maintenance/{maintenanceId}":          h.noMaintenance,
		"POST " + pathMirror + "/maintenance/{maintenanceId}/apply":   h.noMaintenance,
		"GET " + pathMirror + "/prometheus":                           h.prometheus,
		"POST " + pathMirror + "/prometheus/credentials/reset":        h.noPrometheusUser,

		"GET " + pathKafka + "/node":                             h.listKafkaNodes,
		"GET " + pathKafka + "/node/{nodeId}":                    h.getKafkaNode,
		"GET " + pathKafka + "/permissions":                      h.permissions,
		"GET " + pathKafka + "/topic":                            h.onCluster(listTopics),
		"POST " + pathKafka + "/topic":                           h.createTopic,
		"GET " + pathKafka + "/topic/{topicId}":                  h.onCluster(getTopic),
		"PUT " + pathKafka + "/topic/{topicId}":                  h.onCluster(updateTopic),
		"DELETE " + pathKafka + "/topic/{topicId}":               h.onCluster(deleteTopic),
		"GET " + pathKafka + "/user":                             h.onCluster(listUsers),
		"POST " + pathKafka + "/user":                            h.createUser,
		"GET " + pathKafka + "/user/{userId}":                    h.onCluster(getUser),
		"DELETE " + pathKafka + "/user/{userId}":                 h.onCluster(deleteUser),
		"GET " + pathKafka + "/user/{userId}/access":             h.noCertificates,
		"POST " + pathKafka + "/user/{userId}/credentials/reset": h.resetPassword,
	}
	// The calls had the name acl before they were called topicAcl.
	for _, name := range []string{"/topicAcl", "/acl"} {
		routes["GET "+pathKafka+name] = h.onCluster(listACLs)
		routes["POST "+pathKafka+name] = h.createACL
		routes["GET "+pathKafka+name+"/{aclId}"] = h.onCluster(getACL)
		routes["DELETE "+pathKafka+name+"/{aclId}"] = h.onCluster(deleteACL)
	}
	for pattern, do := range routes {
		h.mux.HandleFunc(pattern, h.serve(do))
	}
}

// ServeHTTP answers a request below one of [Patterns].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Ovh-QueryID", "heliograph."+newID())
	inner := *r
	url := *r.URL
	for _, prefix := range []string{"/1.0", "/v1"} {
		if rest, ok := strings.CutPrefix(url.Path, prefix+"/"); ok {
			url.Path, url.RawPath = "/"+rest, strings.TrimPrefix(url.RawPath, prefix)
			break
		}
	}
	inner.URL = &url
	if _, pattern := h.mux.Handler(&inner); pattern == "" {
		h.refuse(w, r, h.unknown(&inner))
		return
	}
	h.mux.ServeHTTP(w, &inner)
}

// unknown is the answer to a path or a method that there is not.
func (h *Handler) unknown(r *http.Request) *Error {
	if adapter.OtherMethod(h.mux, r) {
		return &Error{Status: http.StatusMethodNotAllowed, Class: "Client::MethodNotAllowed", Message: "this path has no " + r.Method}
	}
	return notFound(classNotFound, "Got an invalid (or empty) URL")
}

// time is what a client takes its timestamps from. It asks for no credential.
func (h *Handler) time(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, h.o.Now().Unix())
}

// serve reads and checks a request before it is worked on.
func (h *Handler) serve(do work) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxDuration)
		defer cancel()
		value, err := h.work(w, r.WithContext(ctx), do)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		answer(w, http.StatusOK, value)
	}
}

func (h *Handler) work(w http.ResponseWriter, r *http.Request, do work) (any, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Class: "Client::BadRequest", Message: fmt.Sprintf("the body is over %d bytes", maxBody)}
	}
	if err != nil {
		return nil, badRequest("the body cannot be read")
	}
	grant, err := h.authenticate(r, data)
	if err != nil {
		return nil, err
	}
	c := &call{project: r.PathValue("serviceName"), actor: grant.Actor, data: data}
	c.Request = r.WithContext(control.WithActor(r.Context(), grant.Actor))
	if c.project == "" {
		c.project = grant.Project // the list of projects
	} else if grant.Project != "" && grant.Project != c.project {
		return nil, notFound(classNotFound, "The requested object (serviceName = %s) does not exist", c.project)
	}
	if !grant.Actor.May(adapter.Scope(r)) {
		return nil, &Error{Status: http.StatusForbidden, Class: classForbidden, Message: "This call has not been granted", Code: "NOT_GRANTED_CALL"}
	}
	for _, name := range []string{"clusterId", "integrationId", "replicationId", "nodeId", "topicId", "aclId", "userId", "maintenanceId", "subscriptionId"} {
		v := r.PathValue(name)
		if v == "" {
			continue
		}
		if !isUUID(v) {
			return nil, badRequest("[%s] given data (%q) is not valid for type uuid", name, v)
		}
		r.SetPathValue(name, strings.ToLower(v))
	}
	return do(c)
}

// refuse writes an error.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e := answerOf(err)
	if e.Status >= http.StatusInternalServerError {
		h.o.Log.Error("a request was not answered", "method", r.Method, "path", r.URL.Path, "status", e.Status,
			"query_id", w.Header().Get("X-Ovh-QueryID"), "err", err)
	}
	answer(w, e.Status, e.body())
}

// answer writes a value as OVHcloud's clients expect it: even nothing is a null.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache, no-store")
	adapter.Answer(w, status, value, internal().body())
}
