package control

import (
	"encoding/json"
	"maps"

	"heliograph/internal/mirror"
)

// Revision numbers commits. The zero Revision is before the first.
type Revision int64

// Match is the revision that a change expects of what it changes.
type Match int64

// The matches that are no revision.
const (
	Any    Match = -1 // whatever is there, or nothing
	Absent Match = 0  // nothing is there
)

// At expects exactly that revision.
func At(r Revision) Match { return Match(r) }

// Cluster is a Kafka cluster that flows may use.
type Cluster struct {
	// Alias is MirrorMaker's: it names the cluster in flows, topics and properties.
	Alias string
	// Properties are what follows "<alias>." in an mm2.properties: bootstrap.servers,
	// security.protocol, sasl.*, ssl.*, consumer.*, producer.*, admin.*. They hold secrets.
	Properties map[string]string
	// Labels are the owner's words for policies: region=eu, owner=payments.
	Labels map[string]string
	// Tenant owns the cluster; empty for the server's own.
	Tenant string
	// File is the file that the cluster stands in; such a cluster is read-only here.
	File     string
	Revision Revision
}

// Flow is one ordered pair of clusters.
type Flow struct {
	Source, Target string
	// Enabled is false for a flow that is kept and not run.
	Enabled bool
	// Paused stops a flow without forgetting its place; it is kept over restarts.
	Paused bool
	// Properties are MirrorMaker's keys without "A->B.": topics, groups, replication.policy.class.
	Properties map[string]string
	Labels     map[string]string
	Tenant     string
	File       string
	Revision   Revision
}

// ID is the flow's name in MirrorMaker's words.
func (f Flow) ID() mirror.FlowID {
	return mirror.FlowID{Source: mirror.ClusterAlias(f.Source), Target: mirror.ClusterAlias(f.Target)}
}

// Document is an adapter's JSON value.
type Document struct {
	Kind, ID string
	Value    json.RawMessage
	// Tenant is the tenant that made it; others do not see it.
	Tenant   string
	Revision Revision
}

func (c Cluster) clone() Cluster {
	c.Properties, c.Labels = maps.Clone(c.Properties), maps.Clone(c.Labels)
	return c
}

func (f Flow) clone() Flow {
	f.Properties, f.Labels = maps.Clone(f.Properties), maps.Clone(f.Labels)
	return f
}
