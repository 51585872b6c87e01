package connect

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"heliograph/internal/api/jsonobject"
	"heliograph/internal/config"
	"heliograph/internal/control"
)

// The settings of a connector's configuration that say what it is.
const (
	keyName   = "name"
	keyClass  = "connector.class"
	keySource = "source.cluster.alias"
	keyTarget = "target.cluster.alias"

	sourcePrefix = "source.cluster."
	targetPrefix = "target.cluster."
)

// converters are settings that mean nothing here as long as they say what MirrorMaker
// needs: bytes as they are.
var converters = map[string]string{
	"key.converter":    "org.apache.kafka.connect.converters.ByteArrayConverter",
	"value.converter":  "org.apache.kafka.connect.converters.ByteArrayConverter",
	"header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}

// configOf is a connector's configuration, with its secrets hidden.
func (h *handler) configOf(r *request, c connector, f control.Flow) map[string]string {
	out := control.Shown(f.Properties)
	for prefix, alias := range map[string]string{sourcePrefix: f.Source, targetPrefix: f.Target} {
		if cl, err := h.o.Control.Cluster(r.Context(), alias); err == nil {
			for key, value := range control.Shown(cl.Properties) {
				out[prefix+key] = value
			}
		}
	}
	out[keyName], out[keyClass] = c.String(), c.class()
	out[keySource], out[keyTarget] = f.Source, f.Target
	return out
}

func (h *handler) config(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	return ok(h.configOf(r, c, f))
}

// readConfig reads a configuration: names and values, which Connect takes as text
// whatever they are. A null is not given.
func readConfig(data []byte) (map[string]string, error) {
	o := jsonobject.Parse(data)
	if !o.OK() {
		return nil, o.Done()
	}
	out := map[string]string{}
	for key, raw := range o.Rest() {
		var value any
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		if err := dec.Decode(&value); err != nil {
			return nil, badRequest("[%s] is not JSON", key)
		}
		switch v := value.(type) {
		case nil:
		case string:
			out[key] = v
		case bool, json.Number:
			out[key] = fmt.Sprint(v)
		default:
			return nil, badRequest("[%s] must be one value, not a list or an object", key)
		}
	}
	return out, nil
}

// create makes a connector, as POST asks for it.
func (h *handler) create(r *request) (reply, error) {
	o := jsonobject.Parse(r.data)
	name := o.Required("name")
	raw, given := o.Take("config")
	if !given {
		o.Fail("config", "is required")
	}
	initial, _ := o.Enum("initial_state", "RUNNING", "PAUSED", "STOPPED")
	if err := o.Done(); err != nil {
		return reply{}, err
	}
	settings, err := readConfig(raw)
	if err != nil {
		return reply{}, err
	}
	made, err := h.write(r, name, settings, mustBeNew, initial)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusCreated, made}, nil
}

func (h *handler) putConfig(r *request) (reply, error) {
	settings, err := readConfig(r.data)
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK
	if _, _, err := h.find(r); err != nil {
		status = http.StatusCreated
	}
	out, err := h.write(r, r.PathValue("name"), settings, mayBeNew, "")
	if err != nil {
		return reply{}, err
	}
	return reply{status, out}, nil
}

// patchConfig changes the settings that are named; a null takes one away.
func (h *handler) patchConfig(r *request) (reply, error) {
	c, f, err := h.find(r)
	if err != nil {
		return reply{}, err
	}
	var patch map[string]*json.RawMessage
	if err := json.Unmarshal(r.data, &patch); err != nil {
		return reply{}, badRequest("the body is not a JSON object")
	}
	settings, err := readConfig(r.data)
	if err != nil {
		return reply{}, err
	}
	all := h.configOf(r, c, f)
	for key, value := range patch {
		if value == nil {
			delete(all, key)
		}
	}
	maps.Copy(all, settings)
	out, err := h.write(r, c.String(), all, mayBeNew, "")
	if err != nil {
		return reply{}, err
	}
	return ok(out)
}

// newness is what a write expects of its connector.
type newness bool

const (
	mayBeNew  newness = false
	mustBeNew newness = true
)

// write makes a connector, or gives it another configuration.
func (h *handler) write(r *request, name string, settings map[string]string, expect newness, initial string) (info, error) {
	c, ok := parseName(name)
	if !ok {
		return info{}, badRequest("[name] %v", errUnknownName)
	}
	if err := c.check(settings); err != nil {
		return info{}, err
	}
	f, err := h.o.Control.Flow(r.Context(), c.source, c.target)
	exists := err == nil
	switch {
	case err != nil && control.KindOf(err) != control.NotFound:
		return info{}, err
	case exists && c.of(f) && expect == mustBeNew:
		return info{}, conflict("Connector %s already exists", name)
	case !exists && !c.primary():
		return info{}, conflict("make %s first: the connector follows it", connector{kinds[0], c.source, c.target})
	}
	changes, err := h.clusters(r, c, settings)
	if err != nil {
		return info{}, err
	}
	put := control.PutFlow{If: control.Absent, Flow: control.Flow{Source: c.source, Target: c.target, Enabled: true, Properties: map[string]string{}}}
	if exists {
		put = control.PutFlow{If: control.At(f.Revision), Flow: f}
	}
	put.Flow.Properties = c.properties(put.Flow.Properties, settings)
	if !exists {
		// The two others are there when somebody makes them.
		for _, k := range kinds[1:] {
			put.Flow.Properties[k.enabled] = "false"
		}
	}
	switch initial {
	case "PAUSED":
		put.Flow.Paused = true
	case "STOPPED":
		put.Flow.Enabled = false
	}
	if _, err := h.o.Control.Commit(r.Context(), append(changes, put)...); err != nil {
		return info{}, err
	}
	f, err = h.o.Control.Flow(r.Context(), c.source, c.target)
	if err != nil {
		return info{}, err
	}
	return h.infoOf(r, c, f), nil
}

// check compares what a configuration says of itself with the connector's name.
func (c connector) check(settings map[string]string) error {
	for key, want := range map[string]string{keyName: c.String(), keyClass: c.class(), keySource: c.source, keyTarget: c.target} {
		got, said := settings[key]
		switch {
		case said && got != want && (key != keyClass || mirrorPackage+got != want):
			return badRequest("Connector configuration is invalid: [%s] is %q, and %s means %q", key, got, c, want)
		case !said && key == keyClass:
			return badRequest("Connector configuration is invalid: [%s] is required", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(converters)) {
		if v, said := settings[key]; said && v != converters[key] {
			return badRequest("Connector configuration is invalid: [%s] records are copied as they are: leave it out, or write %s", key, converters[key])
		}
	}
	return nil
}

// properties are the flow's settings after a new configuration of the connector, which
// says something about its own ones only.
func (c connector) properties(old, settings map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range old {
		if !c.owns(key) {
			out[key] = value
		}
	}
	for key, value := range control.Unhidden(settings, old) {
		if _, ours := converters[key]; ours || key == keyName || key == keyClass || strings.HasPrefix(key, sourcePrefix) || strings.HasPrefix(key, targetPrefix) {
			continue
		}
		if !c.owns(key) {
			continue // as MirrorMaker's connectors pass over each other's settings
		}
		out[key] = value
	}
	if !c.primary() && settings[c.enabled] == "" {
		delete(out, c.enabled) // making the connector switches it on
	}
	return out
}

// clusters are the changes that register the clusters which the configuration
// describes and nobody has registered. A cluster that is there must be as it says.
func (h *handler) clusters(r *request, c connector, settings map[string]string) ([]control.Change, error) {
	var changes []control.Change
	for _, side := range []struct{ prefix, alias string }{{sourcePrefix, c.source}, {targetPrefix, c.target}} {
		said := map[string]string{}
		for key, value := range settings {
			if name, ok := strings.CutPrefix(key, side.prefix); ok && name != "alias" {
				said[name] = value
			}
		}
		known, err := h.o.Control.Cluster(r.Context(), side.alias)
		if control.KindOf(err) == control.NotFound && len(said) > 0 {
			changes = append(changes, control.PutCluster{Cluster: control.Cluster{Alias: side.alias, Properties: said}, If: control.Absent})
			continue
		}
		if err != nil {
			continue // the commit says that it is not there
		}
		for _, name := range slices.Sorted(maps.Keys(said)) {
			have := known.Properties[name]
			if said[name] != have && said[name] != config.Shown(name, have) {
				return nil, conflict("[%s%s] cluster %s is registered with something else: change it where it is registered", side.prefix, name, side.alias)
			}
		}
	}
	return changes, nil
}
