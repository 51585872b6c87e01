package connect

import (
	"errors"
	"slices"
	"strings"

	"heliograph/internal/control"
)

// kind is one of MirrorMaker's three connectors.
type kind struct {
	name string // of its class, without the package
	// enabled is the setting that takes it away; empty for the one that always is.
	enabled string
	// own are its own settings, or their beginnings: what a new configuration of it
	// leaves out is taken away.
	own []string
}

const mirrorPackage = "org.apache.kafka.connect.mirror."

func (k kind) class() string { return mirrorPackage + k.name }

// owns says whether a setting is this connector's own. What is neither of the two
// others' is the source connector's.
func (k kind) owns(key string) bool {
	if k.enabled == "" {
		return !slices.ContainsFunc(kinds[1:], func(other kind) bool { return other.owns(key) })
	}
	return slices.ContainsFunc(k.own, func(p string) bool { return strings.HasPrefix(key, p) })
}

var kinds = []kind{
	{name: "MirrorSourceConnector"},
	{name: "MirrorCheckpointConnector", enabled: "emit.checkpoints.enabled", own: []string{
		"emit.checkpoints.", "checkpoints.", "sync.group.offsets.", "refresh.groups.", "groups", "group.filter.class",
	}},
	{name: "MirrorHeartbeatConnector", enabled: "emit.heartbeats.enabled", own: []string{"emit.heartbeats.", "heartbeats.topic."}},
}

// connector is one of a flow.
type connector struct {
	kind
	source, target string
}

func (c connector) String() string { return c.source + "->" + c.target + "." + c.name }

// primary says whether it is the flow itself.
func (c connector) primary() bool { return c.enabled == "" }

// parseName takes a connector's name apart.
func parseName(name string) (connector, bool) {
	for _, k := range kinds {
		flow, ok := strings.CutSuffix(name, "."+k.name)
		source, target, arrow := strings.Cut(flow, "->")
		if ok && arrow && source != "" && target != "" {
			return connector{k, source, target}, true
		}
	}
	return connector{}, false
}

// of says whether a flow has the connector.
func (c connector) of(f control.Flow) bool { return c.primary() || f.Properties[c.enabled] != "false" }

// connectorsOf are a flow's.
func connectorsOf(f control.Flow) []connector {
	var out []connector
	for _, k := range kinds {
		if c := (connector{k, f.Source, f.Target}); c.of(f) {
			out = append(out, c)
		}
	}
	return out
}

// find is the connector that the path names, with its flow.
func (h *handler) find(r *request) (connector, control.Flow, error) {
	name := r.PathValue("name")
	c, ok := parseName(name)
	if !ok {
		return connector{}, control.Flow{}, notFound(name)
	}
	f, err := h.o.Control.Flow(r.Context(), c.source, c.target)
	if err != nil {
		if control.KindOf(err) == control.NotFound {
			err = notFound(name)
		}
		return connector{}, control.Flow{}, err
	}
	if !c.of(f) {
		return connector{}, control.Flow{}, notFound(name)
	}
	return c, f, nil
}

// info is what Connect tells of a connector.
type info struct {
	Name   string            `json:"name"`
	Config map[string]string `json:"config"`
	Tasks  []taskID          `json:"tasks"`
	Type   string            `json:"type"`
}

type taskID struct {
	Connector string `json:"connector"`
	Task      int    `json:"task"`
}

// tasksOf are a connector's tasks: one, unless it is stopped.
func tasksOf(c connector, f control.Flow) []taskID {
	if !f.Enabled {
		return []taskID{}
	}
	return []taskID{{c.String(), 0}}
}

func (h *handler) infoOf(r *request, c connector, f control.Flow) info {
	return info{Name: c.String(), Config: h.configOf(r, c, f), Tasks: tasksOf(c, f), Type: "source"}
}

func (h *handler) list(r *request) (reply, error) {
	expand := r.URL.Query()["expand"]
	names, expanded := []string{}, map[string]map[string]any{}
	for _, f := range h.o.Control.Flows(r.Context()) {
		for _, c := range connectorsOf(f) {
			names = append(names, c.String())
			if len(expand) == 0 {
				continue
			}
			one := map[string]any{}
			if slices.Contains(expand, "status") {
				one["status"] = h.statusOf(r, c, f)
			}
			if slices.Contains(expand, "info") {
				one["info"] = h.infoOf(r, c, f)
			}
			expanded[c.String()] = one
		}
	}
	if len(expand) > 0 {
		return ok(expanded)
	}
	return ok(names)
}

func (h *handler) info(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	return ok(h.infoOf(r, c, f))
}

func (h *handler) delete(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	change := control.Change(control.DeleteFlow{Source: c.source, Target: c.target, If: control.At(f.Revision)})
	if !c.primary() {
		for key := range f.Properties {
			if c.owns(key) {
				delete(f.Properties, key)
			}
		}
		f.Properties[c.enabled] = "false"
		if c.enabled == "emit.checkpoints.enabled" {
			f.Properties["sync.group.offsets.enabled"] = "false"
		}
		change = control.PutFlow{Flow: f, If: control.At(f.Revision)}
	}
	if _, err := h.o.Control.Commit(r.Context(), change); err != nil {
		return reply{}, err
	}
	return done(204)
}

// errUnknownName is why a connector is refused that no flow can be.
var errUnknownName = errors.New(`a connector is called as its flow and its class: "A->B.MirrorSourceConnector"`)
