package config

import (
	"maps"
	"strings"

	"heliograph/internal/mirror"
)

// resolver computes what MirrorMaker would hand to each part of a flow. All its
// methods are pure functions of the raw view.
type resolver struct {
	raw  view // the whole file, references already replaced in Text
	keys *catalogue
}

// under are the keys that begin with the prefix, without it.
func (v view) under(prefix string) view {
	out := view{}
	for key, val := range v {
		if rest, ok := strings.CutPrefix(key, prefix); ok && rest != "" {
			out[rest] = val
		}
	}
	return out
}

// cluster is the configuration of one cluster: its own keys, then the
// connection keys copied into each kind of client where absent, then the
// top-level connection keys wherever still absent.
func (r *resolver) cluster(alias string) view {
	out := r.raw.under(alias + ".")
	for key := range connectionNames {
		if val, ok := out[key]; ok {
			for _, role := range roleNames {
				out.putAbsent(role+"."+key, val)
			}
		}
	}
	for key := range connectionNames {
		if val, ok := r.raw[key]; ok {
			for _, role := range roleNames {
				out.putAbsent(role+"."+key, val)
			}
			out.putAbsent(key, val)
		}
	}
	return out
}

// workerPrefixes are the top-level keys that beat the target's own.
var workerPrefixes = []string{
	"offset.storage", "config.storage", "status.storage",
	"key.converter", "value.converter", "header.converter", "task", "worker", "replication.policy",
}

const byteArrayConverter = "org.apache.kafka.connect.converters.ByteArrayConverter"

// worker is the configuration of the flow's Connect worker, whose clients all
// talk to the target.
func (r *resolver) worker(id mirror.FlowID) view {
	out := r.cluster(string(id.Target))
	for key, val := range r.raw {
		if hasAnyPrefix(key, workerPrefixes) || strings.HasPrefix(key, "config.providers") {
			out[key] = val
		}
	}
	source := string(id.Source)
	for key, text := range map[string]string{
		"client.id":            id.String(),
		"group.id":             source + "-mm2",
		"offset.storage.topic": mirror.PositionsTopic(mirror.ClusterAlias(source)),
		"status.storage.topic": "mm2-status." + source + ".internal",
		"config.storage.topic": "mm2-configs." + source + ".internal",
		"key.converter":        byteArrayConverter,
		"value.converter":      byteArrayConverter,
		"header.converter":     byteArrayConverter,
	} {
		out.putAbsent(key, defaultValue(text))
	}
	return out
}

// connector is the configuration of one of the flow's three connectors.
func (r *resolver) connector(id mirror.FlowID, class string) view {
	out := view{}
	for key, val := range r.raw {
		if r.keys.isConnectorKey(key) || isConnectionKey(key) && key != "bootstrap.servers" ||
			hasAnyPrefix(key, []string{"config.providers", "replication.policy"}) {
			out[key] = val
		}
	}
	for _, side := range []struct {
		name  string
		alias mirror.ClusterAlias
	}{{"source", id.Source}, {"target", id.Target}} {
		for key, val := range r.cluster(string(side.alias)) {
			if hasAnyPrefix(key, roleNames) {
				out[side.name+"."+key] = val
			} else {
				out[side.name+".cluster."+key] = val
			}
		}
	}
	out.putAbsent("name", defaultValue(class))
	out.putAbsent("connector.class", defaultValue(mirrorPackage+class))
	out.putAbsent("source.cluster.alias", defaultValue(string(id.Source)))
	out.putAbsent("target.cluster.alias", defaultValue(string(id.Target)))
	maps.Copy(out, r.raw.under(id.String()+"."))
	out.putAbsent("enabled", defaultValue("false"))
	return out
}

// connectorClient is a client that a connector builds for itself: the side's
// connection keys, then the role's layer, then the side's layer of the role.
func connectorClient(connector view, side, role string) view {
	out := view{}
	for key, val := range connector.under(side + ".cluster.") {
		if isConnectionKey(key) {
			out[key] = val
		}
	}
	for _, prefix := range []string{role + ".", side + "." + role + "."} {
		maps.Copy(out, connector.under(prefix))
	}
	if role == "consumer" {
		out["enable.auto.commit"] = defaultValue("false")
		out.putAbsent("auto.offset.reset", defaultValue("earliest"))
	}
	return out
}

// recordProducer is the producer that the worker owns for a connector: the
// target's producer layer, then the connector's overrides.
func recordProducer(worker, connector view) view {
	out := view{}
	if val, ok := worker["bootstrap.servers"]; ok {
		out["bootstrap.servers"] = val
	}
	maps.Copy(out, worker.under("producer."))
	maps.Copy(out, connector.under("producer.override."))
	return out
}

// workerClient is what the worker's own clients use: its plain keys.
func workerClient(worker view) view {
	out := view{}
	for key, val := range worker {
		if isConnectionKey(key) || !hasAnyPrefix(key, roleNames) {
			out[key] = val
		}
	}
	return out
}

// pair says what runs between two clusters.
type pair struct {
	id         mirror.FlowID
	enabled    bool // by its own key, as MirrorMaker selects pairs
	heartbeats bool
}

// pairs are all ordered pairs that get a worker: those enabled, and those that
// write heartbeats, which is every pair by default.
func (r *resolver) pairs(aliases []mirror.ClusterAlias) []pair {
	var out []pair
	for _, source := range aliases {
		for _, target := range aliases {
			if source == target {
				continue
			}
			p := pair{id: mirror.FlowID{Source: source, Target: target}, heartbeats: true}
			if val, ok := r.raw["emit.heartbeats.enabled"]; ok {
				p.heartbeats = isTrue(val)
			}
			if val, ok := r.raw[p.id.String()+".emit.heartbeats.enabled"]; ok {
				p.heartbeats = isTrue(val)
			}
			if val, ok := r.raw[p.id.String()+".enabled"]; ok {
				p.enabled = isTrue(val)
			}
			if p.enabled || p.heartbeats {
				out = append(out, p)
			}
		}
	}
	return out
}

// isTrue reads the keys that select pairs. MirrorMaker takes "true " for false
// here; blanks alone are harmless with us.
func isTrue(val value) bool {
	b, _ := val.boolean()
	return b
}

func defaultValue(text string) value { return value{Raw: text, Text: text} }

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
