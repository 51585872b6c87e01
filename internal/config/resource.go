package config

import (
	"maps"
	"slices"
	"strings"
)

// Resource is a cluster or a flow that stands in no file: its keys without the
// prefix that a file would give them.
type Resource struct {
	// Name is the cluster's alias, or the flow as "S->T". An empty Name holds what
	// stands without a prefix in a file.
	Name string
	// Place is shown as the file of its problems, whose Key is then one of Properties.
	Place      string
	Properties map[string]string
	// Literal values are taken as they are: they may hold "${" and mean it.
	Literal bool
	// Off keeps a flow from being run. It is checked all the same.
	Off bool
}

func (r Resource) isFlow() bool { return strings.Contains(r.Name, "->") }

// Resolve is [Load] for resources: the same rules, as strict as the native YAML form. A flow
// exists if it is named; no pair gets a flow that only writes heartbeats, as it would from a file.
// Clusters may stand alone, so that one can be checked before there is a flow.
func Resolve(src Source, resources ...Resource) *Deployment {
	var r report
	src.parts = true
	quiet := Origin{File: src.Name}
	clusters := Entry{Key: "clusters", Items: []string{}, Origin: quiet}
	var entries []Entry
	add := func(res Resource, key, value string) {
		full := key
		if res.Name != "" {
			full = res.Name + "." + key
		}
		// "A" may not set a key of "A.x": neighbours may have other owners.
		for _, other := range resources {
			if other.Name != res.Name && len(other.Name) > len(res.Name) && strings.HasPrefix(full, other.Name+".") {
				r.errorf(Origin{File: res.Place, Key: key}, "", "it would be a setting of %s", other.Name)
			}
		}
		entries = append(entries, Entry{Key: full, Value: value, Origin: Origin{File: res.Place, Key: key}, literal: res.Literal})
	}
	for _, res := range resources {
		for _, key := range slices.Sorted(maps.Keys(res.Properties)) {
			add(res, key, res.Properties[key])
		}
		switch _, beats := res.Properties["emit.heartbeats.enabled"]; {
		case res.isFlow() && res.Off:
			entries = append(entries, Entry{Key: res.Name + ".enabled", Value: "true", Origin: quiet})
		case res.isFlow():
			entries = append(entries, Entry{Key: res.Name + ".enabled", Value: "true", Origin: quiet})
			if !beats {
				entries = append(entries, Entry{Key: res.Name + ".emit.heartbeats.enabled", Value: "true", Origin: quiet})
			}
		case res.Name != "":
			clusters.Items = append(clusters.Items, res.Name)
		}
	}
	clusters.Value = strings.Join(clusters.Items, ", ")
	entries = append(entries, clusters)
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Key == "emit.heartbeats.enabled" }) {
		entries = append(entries, Entry{Key: "emit.heartbeats.enabled", Value: "false", Origin: quiet})
	}
	return r.load(src, entries, true)
}
