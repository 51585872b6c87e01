package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliograph/internal/mirror"
)

// Parts is a file taken apart into what an API holds: clusters and flows that mean on
// their own what they mean in the file.
type Parts struct {
	Clusters, Flows []Resource
	// Left are the file's keys that concern a whole process and no cluster or flow.
	Left []string
	// Problems are the file's; with an error among them there are no parts.
	Problems Problems
}

// Split reads a file and takes it apart. What stands there for all clusters or all flows
// is written into each, and references are resolved. A file may hold one cluster alone, and
// flows that are all switched off.
func Split(src Source) Parts {
	src.parts = true
	d := Load(src)
	p := Parts{Problems: d.Problems}
	if d.Err() != nil {
		return p
	}
	var r report // its problems are told already
	entries := parse(src, &r)
	raw := collect(entries, &r)
	providers := newProviders(src, raw, &r)
	for _, key := range raw.ordered() {
		raw[key] = providers.resolve(raw[key], &r)
	}
	s := splitter{resolver: resolver{raw: raw, keys: newCatalogue()}, parts: &p, file: src.Name, items: map[string]string{}}
	s.lists()
	if p.Problems.HasErrors() {
		return p
	}
	targets := map[mirror.ClusterAlias]bool{}
	for i := range d.Flows {
		f := &d.Flows[i]
		if f.Enabled {
			targets[f.ID.Target] = true
		}
		if f.Enabled || s.kept(f.ID) {
			p.Flows = append(p.Flows, s.flow(f))
		}
	}
	for _, alias := range d.Aliases {
		p.Clusters = append(p.Clusters, s.cluster(d.Clusters[alias], targets[alias]))
	}
	s.left()
	return p
}

type splitter struct {
	resolver
	parts *Parts
	file  string
	items map[string]string // lists as one text
}

// lists writes real lists as properties do, which hold no comma in an item.
func (s *splitter) lists() {
	for _, key := range s.raw.ordered() {
		val := s.raw[key]
		if val.Items == nil {
			s.items[key] = val.Text
			continue
		}
		s.items[key] = strings.Join(val.Items, ",")
		if i := slices.IndexFunc(val.Items, func(item string) bool { return strings.Contains(item, ",") }); i >= 0 && key != "clusters" {
			var r report
			r.errorf(val.Origin, "write the pattern without a comma", "an API takes lists as one text, in which item %d would be torn at its comma", i+1)
			s.parts.Problems = append(s.parts.Problems, r.problems...)
		}
	}
}

// kept says whether a file has settings for a flow that it switches off. To switch it or
// its heartbeats off is none: an API's pairs write none without a flow.
func (s *splitter) kept(id mirror.FlowID) bool {
	for key := range s.raw.under(id.String() + ".") {
		if key != "enabled" && !strings.HasPrefix(key, "emit.heartbeats.") {
			return true
		}
	}
	return false
}

// flow is a flow with the file's defaults.
func (s *splitter) flow(f *Flow) Resource {
	r := Resource{Name: f.ID.String(), Place: s.file, Properties: map[string]string{}, Off: !f.Enabled}
	for key := range s.raw {
		if s.keys.isConnectorKey(key) && !s.keys.exactDriver(key) {
			r.Properties[key] = s.items[key]
		}
	}
	for key := range s.raw.under(r.Name + ".") {
		r.Properties[key] = s.items[r.Name+"."+key]
	}
	delete(r.Properties, "enabled")
	return r
}

// exactDriver says whether a key that reaches connectors chooses among flows instead.
func (c *catalogue) exactDriver(key string) bool { return key == "enabled" || c.isOwnProcessKey(key) }

// isOwnProcessKey says whether a key concerns the process where it stands without a prefix.
func (c *catalogue) isOwnProcessKey(key string) bool {
	return slices.Contains([]string{
		"heliograph.memory.bytes", "heliograph.rate.bytes.per.second", "heliograph.metrics.address", "heliograph.strict",
	}, key)
}

// cluster is a cluster with the file's defaults; a target has the worker's too, which beat its own.
func (s *splitter) cluster(c Cluster, target bool) Resource {
	r := Resource{Name: string(c.Alias), Place: s.file, Properties: maps.Clone(c.Properties())}
	for key := range s.raw {
		if target && hasAnyPrefix(key, workerPrefixes) && !strings.HasPrefix(key, "replication.policy") {
			r.Properties[key] = s.items[key]
		}
	}
	for name := range r.Properties {
		if text, ok := s.items[r.Name+"."+name]; ok {
			r.Properties[name] = text
		}
	}
	return r
}

// left names what concerns the process.
func (s *splitter) left() {
	for _, key := range s.raw.ordered() {
		if s.keys.isOwnProcessKey(key) {
			s.parts.Left = append(s.parts.Left, fmt.Sprintf("%s (line %d)", key, s.raw[key].Origin.Line))
		}
	}
}
