package importer

import (
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/config"
)

// The three connectors of a flow, by the end of their class.
const (
	sourceConnector     = "MirrorSourceConnector"
	checkpointConnector = "MirrorCheckpointConnector"
	heartbeatConnector  = "MirrorHeartbeatConnector"
)

var connectorOrder = []string{sourceConnector, checkpointConnector, heartbeatConnector}

// connector is one of them, as Kafka Connect is told to run it.
type connector struct {
	class  string
	config []setting // in the connector's own keys
	at     origin
	off    string // why it does not run; empty: it runs
}

// String names the connector and where it stands.
func (c *connector) String() string {
	if c.at.path == "" {
		return c.class
	}
	return c.class + " (" + c.at.path + ")"
}

func (c *connector) find(key string) *setting {
	i := slices.IndexFunc(c.config, func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	return &c.config[i]
}

func (c *connector) value(key string) string {
	if s := c.find(key); s != nil {
		return trim(s.value)
	}
	return ""
}

// readBy are the keys that only some connectors read; all other keys of a flow
// are the source connector's, and clusters and policy are everybody's.
var readBy = []struct {
	prefixes   []string
	connectors []string
}{
	{[]string{"groups", "group.filter.class", "refresh.groups.", "emit.checkpoints.", "sync.group.offsets.", "checkpoints.topic."}, connectorOrder[1:2]},
	{[]string{"emit.heartbeats.", "heartbeats.topic."}, connectorOrder[2:]},
	{[]string{"topics", "topic.filter.class", "offset-syncs.topic.location", "emit.offset-syncs.enabled"}, connectorOrder[:2]},
	{[]string{
		"replication.policy.", "source.", "target.", "producer.", "consumer.", "admin.", "enabled", "tasks.max", "key.converter", "value.converter",
		"header.converter", "transforms", "predicates", "errors.", "config.action.reload", "config.providers", "forwarding.admin.class", "metric",
		"exactly.once.support", "transaction.boundary", "offsets.storage.topic", "topic.creation.",
	}, connectorOrder},
}

// readers are the connectors that read a key; none is named for keys that
// MirrorMaker does not know, of which config tells.
func readers(key string) []string {
	for _, group := range readBy {
		for _, p := range group.prefixes {
			if key == p || strings.HasPrefix(key, p) && (strings.HasSuffix(p, ".") || strings.HasPrefix(key, p+".")) || p == "metric" && strings.HasPrefix(key, p) {
				return group.connectors
			}
		}
	}
	for _, k := range config.Catalogue() {
		if k.Name == key && k.Scope&config.ScopeFlow != 0 {
			return connectorOrder[:1]
		}
	}
	return connectorOrder
}

// shared are keys for which the source and the checkpoint connector must agree.
func shared(key string) bool {
	return len(readers(key)) == 2 || strings.HasPrefix(key, "replication.policy.")
}

// joinConnectors makes flows of connectors: the three of one pair become one.
func (d *draft) joinConnectors(all []connector) {
	type pair struct{ source, target string }
	var order []pair
	flows := map[pair][]connector{}
	for _, c := range all {
		p := pair{c.value("source.cluster.alias"), c.value("target.cluster.alias")}
		if p.target == "" {
			p.target = "target" // MirrorMaker's default
			d.remark(c.at, "it names no target.cluster.alias; MirrorMaker calls the target \"target\" then")
		}
		if p.source == "" {
			d.missing(c.at, "source.cluster.alias is missing, without which a connector does not start")
			p.source = "source"
		}
		if _, known := flows[p]; !known {
			order = append(order, p)
		}
		flows[p] = append(flows[p], c)
	}
	for _, p := range order {
		d.cluster(p.source)
		d.cluster(p.target)
		j := &join{draft: d, source: p.source, target: p.target, flow: p.source + "->" + p.target, parts: map[string]*connector{}}
		j.run(flows[p])
	}
	if len(order) > 0 {
		d.add("emit.heartbeats.enabled", "false", "connectors write heartbeats only where a "+heartbeatConnector+" runs; heliograph would for every pair", origin{})
	}
}

// join makes one flow.
type join struct {
	*draft
	source, target, flow string
	parts                map[string]*connector
}

func (j *join) run(connectors []connector) {
	for _, class := range connectorOrder {
		for i := range connectors {
			c := &connectors[i]
			switch {
			case c.class != class:
			case j.parts[class] == nil:
				j.parts[class] = c
			default:
				j.missing(c.at, fmt.Sprintf("a second %s from %s to %s: heliograph has one flow for a pair; nothing of this one is taken over, so add its topics to the flow if they are meant", class, j.source, j.target))
				for _, s := range c.config {
					j.drop(s.from, "of the second "+class)
				}
			}
		}
	}
	j.running()
	j.agree()
	for _, class := range connectorOrder {
		if c := j.parts[class]; c != nil {
			for _, s := range c.config {
				j.setting(c, s)
			}
		}
	}
	if s := j.find(j.flow + ".exactly.once.support"); s != nil && strings.EqualFold(trim(s.value), "required") {
		j.add(j.target+".exactly.once.source.support", "enabled", "exactly.once.support = required lets the connector start on such a worker only", s.from)
	}
}

// running says which parts of the flow run.
func (j *join) running() {
	source, checkpoint, heartbeat := j.parts[sourceConnector], j.parts[checkpointConnector], j.parts[heartbeatConnector]
	runs := func(c *connector) bool { return c != nil && c.off == "" }
	switch {
	case runs(source) && !strings.EqualFold(source.value("enabled"), "false"):
		j.settings = append(j.settings, setting{key: j.flow + ".enabled", value: "true", from: source.at, verdict: Kept})
	case source != nil:
		why := source.off
		if why == "" {
			why = "enabled is false"
		}
		j.add(j.flow+".enabled", "false", sourceConnector+" does not copy: "+why, source.at)
	default:
		only := checkpoint
		if only == nil {
			only = heartbeat
		}
		j.add(j.flow+".enabled", "false", "there is no "+sourceConnector+" for "+j.flow, only.at)
		if checkpoint != nil {
			j.missing(checkpoint.at, "no "+sourceConnector+" for "+j.flow+": import its configuration together with this one")
		}
	}
	if source != nil && !runs(checkpoint) {
		why, at := "no "+checkpointConnector+" for "+j.flow+" is among the files, so groups are not followed; import it together with this one if there is one", source.at
		if checkpoint != nil {
			why, at = checkpointConnector+" does not run: "+checkpoint.off, checkpoint.at
		}
		j.add(j.flow+".emit.checkpoints.enabled", "false", why, at)
	}
	if runs(heartbeat) && heartbeat.find("emit.heartbeats.enabled") == nil {
		j.add(j.flow+".emit.heartbeats.enabled", "true", fmt.Sprintf("%s writes heartbeats to %s; the flow %s->%s carries them on, if there is one", heartbeatConnector, j.target, j.target, j.source), heartbeat.at)
	}
}

// agree looks at keys that two connectors read: heliograph has one value for the flow.
func (j *join) agree() {
	source, checkpoint := j.parts[sourceConnector], j.parts[checkpointConnector]
	if source == nil || checkpoint == nil || checkpoint.off != "" {
		return
	}
	for i := range source.config {
		s := &source.config[i]
		if shared(s.key) && checkpoint.find(s.key) == nil && s.key != "topics" && !strings.HasPrefix(s.key, "topics.") {
			s.verdict = Changed
			s.because(fmt.Sprintf("it holds for groups too; %s does not have it, so that MirrorMaker's two connectors disagree", checkpoint))
			if strings.HasPrefix(s.key, "replication.policy.") {
				s.because("WARNING: offsets of groups were written for topics of other names than those that data lies in")
			}
		}
	}
	checkpoint.config = slices.DeleteFunc(checkpoint.config, func(s setting) bool {
		if !shared(s.key) || source.find(s.key) != nil {
			return false
		}
		j.drop(s.from, fmt.Sprintf("%s does not have it and copies by the default, which holds for the whole flow", source))
		return true
	})
}

const deadTuning = "MirrorMaker passes only connection and security settings from there, so it has had no effect"

// setting finds the place of one of a connector's keys.
func (j *join) setting(c *connector, s setting) {
	switch s.key {
	case "name":
		j.drop(s.from, "flows are named by their clusters")
		return
	case "connector.class":
		j.changed(s.from, "flow "+j.flow, "")
		return
	case "source.cluster.alias", "target.cluster.alias":
		if s.from.path != "" { // a resource names its clusters elsewhere
			j.changed(s.from, "clusters", "")
		}
		return
	case "enabled":
		j.changed(s.from, j.flow, "a flow is enabled by being listed")
		return
	case "initial_state":
		return
	}
	for _, side := range []struct{ prefix, alias string }{{"source.cluster.", j.source}, {"target.cluster.", j.target}} {
		if name, ok := strings.CutPrefix(s.key, side.prefix); ok {
			j.clusterSetting(s, side.alias, name)
			return
		}
	}
	if by := readers(s.key); !slices.Contains(by, c.class) {
		j.drop(s.from, c.class+" does not read it; "+strings.Join(by, " and ")+" does")
		return
	}
	if role, name, ok := strings.Cut(s.key, "."); ok && slices.Contains([]string{"consumer", "producer", "admin"}, role) {
		if j.client(c, s, role, name) {
			return
		}
	}
	if strings.HasPrefix(s.key, "config.providers") {
		j.keep(s)
		return
	}
	s.key = j.flow + "." + s.key
	j.keep(s)
}

// clusterSetting takes over what says how to reach a cluster.
func (j *join) clusterSetting(s setting, alias, name string) {
	if config.IsConnectionKey(name) {
		s.key = alias + "." + name
		j.keep(s)
		return
	}
	now := alias + "." + name
	if role := config.ClientRole(name); role != "" {
		now = alias + "." + role + "." + name
	}
	j.drop(s.from, deadTuning+" (to give it one, write "+now+")")
}

// client takes over a client layer. It reports false for keys that only look like one.
func (j *join) client(c *connector, s setting, role, name string) bool {
	override, isOverride := strings.CutPrefix(name, "override.")
	switch {
	case s.key == "consumer.poll.timeout.ms", s.key == "admin.timeout.ms":
		return false
	case isOverride && role == "producer":
		j.override(c, s, override)
		return true
	case isOverride:
		j.drop(s.from, "of clients that only exactly-once workers make; heliograph keeps positions with the target's own login")
		return true
	case role == "producer", config.IsConnectionKey(name):
		// Said for both sides, so that it beats what the clusters say, as in the connector.
		for _, side := range []string{"source", "target"} {
			if c.find(side+"."+s.key) == nil {
				t := s
				t.key = j.flow + "." + side + "." + s.key
				j.keep(t)
			}
		}
		return true
	}
	s.key = j.flow + "." + s.key
	j.keep(s)
	return true
}

// override takes over a setting of the producer that the worker makes for the connector.
func (j *join) override(c *connector, s setting, name string) {
	if config.IsConnectionKey(name) {
		same := c.find("target.cluster." + name)
		switch {
		case same != nil && trim(same.value) == trim(s.value):
			why := "the same as target.cluster." + name + ", which holds"
			if name == "bootstrap.servers" && c.find("producer.override.security.protocol") == nil && c.value("target.cluster.security.protocol") != "" {
				why += "; WARNING: producer.override.* has no login, so that Connect used the worker's, while heliograph logs in as target.cluster.* says"
			}
			j.drop(s.from, why)
		case name == "bootstrap.servers" && same != nil:
			j.missing(s.from, fmt.Sprintf("the connector writes to other brokers than target.cluster.bootstrap.servers names; decide which of them %s is", j.target))
		default:
			s.key = j.flow + ".producer.override." + name
			j.keep(s)
		}
		return
	}
	if c.class != sourceConnector {
		j.drop(s.from, "of "+c.class+"'s own producer, which has next to nothing to write")
		return
	}
	s.key = j.flow + "." + s.key
	j.keep(s)
}

// worker takes over the settings of the Connect worker that runs connectors into target.
func (d *draft) worker(target string, settings []setting) {
	for _, s := range settings {
		role, _, _ := strings.Cut(s.key, ".")
		switch {
		case s.key == "group.id":
			d.drop(s.from, "each flow has a group of its own, <source>-mm2; one for several flows would make them collide")
		case s.key == "offset.storage.topic":
			d.drop(s.from, "positions are kept in mm2-offsets.<source>.internal. Those of Connect lie in "+oneLine(trim(s.value))+" under the connector's name, "+takeover)
		case role == "consumer" || role == "admin":
			d.drop(s.from, "the worker's own clients of that kind do nothing for MirrorMaker")
		case role == "config" && strings.HasPrefix(s.key, "config.providers"):
			d.keep(s)
		default:
			s.key = target + "." + s.key
			d.keep(s)
		}
	}
}

// takeover tells what becomes of copies that exist.
const takeover = "where heliograph does not look for them: for copies that exist already, heliograph.missing.position says what to do; scan finds the place by comparing both sides"
