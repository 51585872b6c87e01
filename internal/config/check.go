package config

import (
	"fmt"
	"slices"
	"strings"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// check looks at the deployment as a whole: what its keys mean together.
func (b *builder) check(src Source, d *Deployment) {
	if !src.parts {
		b.anyFlow(src.Name, d)
	}
	if val, ok := b.raw["enabled"]; ok && isTrue(val) {
		b.warnf(val.Origin, "write S->T.enabled = true for the flows that are meant", "at the top level it enables every pair of clusters that writes heartbeats")
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		if !f.Enabled {
			continue
		}
		conn := b.connector(f.ID, mirror.CheckpointConnector)
		b.offsetSyncSwitches(f, conn)
		b.exactlyOnce(f, conn)
	}
	b.bareExactlyOnce(d)
	b.sharedGroups(d)
	if !b.sharedBrokers(d) {
		b.loops(d)
	}
}

// anyFlow refuses a file that replicates nothing, unless heartbeats alone were
// asked for by name.
func (b *builder) anyFlow(file string, d *Deployment) {
	if slices.ContainsFunc(d.Flows, func(f Flow) bool { return f.Enabled }) {
		return
	}
	hint := "write S->T.enabled = true"
	if len(d.Aliases) > 1 {
		hint = fmt.Sprintf("write %s->%s.enabled = true", d.Aliases[0], d.Aliases[1])
	}
	for _, key := range b.raw.ordered() {
		if val := b.raw[key]; strings.HasSuffix(key, "emit.heartbeats.enabled") && isTrue(val) && len(d.Flows) > 0 {
			b.warnf(val.Origin, hint, "no flow is enabled: only heartbeats are written")
			return
		}
	}
	b.errorf(Origin{File: file}, hint, "no flow is enabled, so nothing would be replicated")
}

// checkpointConflicts are the keys for which MirrorMaker refuses the
// configuration of a checkpoint connector.
func checkpointConflicts(conn view) []string {
	if !isTrue(conn["enabled"]) {
		return nil
	}
	var keys []string
	for _, key := range []string{"emit.checkpoints.enabled", "emit.offset-syncs.enabled"} {
		if on, ok := conn[key].boolean(); ok && !on {
			keys = append(keys, key)
		}
	}
	return keys
}

// offsetSyncSwitches speaks of switches that contradict each other.
func (b *builder) offsetSyncSwitches(f *Flow, conn view) {
	off := checkpointConflicts(conn)
	sync := conn["sync.group.offsets.enabled"]
	switch {
	case len(off) == 0:
	case isTrue(sync):
		b.errorf(sync.Origin, "switch them on, or this off", "group offsets of %s need checkpoints and offset syncs, which are switched off by %s", f.ID, strings.Join(off, " and "))
	default:
		for _, key := range off {
			b.warnf(conn[key].Origin, "", "%s writes no checkpoints, so no group can be followed", f.ID)
		}
	}
	if f.OffsetSyncs.Enabled {
		return
	}
	var keys []string
	for key := range conn {
		if strings.HasPrefix(key, "offset-syncs.topic.") || strings.HasPrefix(key, "offset-syncs-") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		b.errorf(conn["emit.offset-syncs.enabled"].Origin, "remove "+strings.Join(keys, ", ")+", or switch offset syncs on",
			"offset syncs of %s are off while %s is set; MirrorMaker refuses that and replicates nothing", f.ID, strings.Join(keys, ", "))
	}
}

// readsCommitted is the answer of MirrorMaker's source connector to whether it
// supports exactly-once: the effective isolation is literally read_committed.
func readsCommitted(conn view) bool {
	return connectorClient(conn, "source", "consumer").word("isolation.level") == "read_committed"
}

func (b *builder) exactlyOnce(f *Flow, conn view) {
	if val, ok := conn["exactly.once.support"]; ok && strings.EqualFold(trim(val.Text), "required") {
		if !readsCommitted(conn) {
			b.errorf(val.Origin, fmt.Sprintf("add %s.consumer.isolation.level = read_committed", f.ID.Source),
				"exactly-once is required, and isolation.level of the source consumer is not read_committed")
		}
		if f.ExactlyOnce != ExactlyOnceEnabled {
			b.errorf(val.Origin, fmt.Sprintf("add %s.exactly.once.source.support = enabled", f.ID.Target), "exactly-once is required and not switched on")
		}
		return
	}
	if f.ExactlyOnce == ExactlyOnceEnabled && f.Data.Isolation != kafka.ReadCommitted {
		b.warnf(b.worker(f.ID)["exactly.once.source.support"].Origin,
			fmt.Sprintf("add %s.consumer.isolation.level = read_committed", f.ID.Source),
			"aborted records of %s are copied: the source is not read with read_committed", f.ID)
	}
}

// bareExactlyOnce adds what else a file needs whose exactly-once is written at
// a place where nothing reads it.
func (b *builder) bareExactlyOnce(d *Deployment) {
	val, ok := b.raw["exactly.once.source.support"]
	if !ok || !strings.EqualFold(trim(val.Text), string(ExactlyOnceEnabled)) {
		return
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		if f.Enabled && f.ExactlyOnce != ExactlyOnceEnabled && f.Data.Isolation != kafka.ReadCommitted {
			b.warnf(val.Origin, fmt.Sprintf("add %s.consumer.isolation.level = read_committed", f.ID.Source),
				"exactly-once of %s would also need the source to be read with read_committed", f.ID)
		}
	}
}

// sharedGroups warns where one group.id serves several flows into a cluster.
func (b *builder) sharedGroups(d *Deployment) {
	for _, target := range d.Aliases {
		val, ok := b.raw[string(target)+".group.id"]
		if !ok {
			continue
		}
		var flows []string
		for i := range d.Flows {
			if d.Flows[i].Enabled && d.Flows[i].ID.Target == target {
				flows = append(flows, d.Flows[i].ID.String())
			}
		}
		if len(flows) > 1 {
			b.errorf(val.Origin, "remove it: each flow then has a group of its own, <source>-mm2", "flows %s would share one group and collide", strings.Join(flows, ", "))
		}
	}
}

// sharedBrokers refuses flows between two aliases of one cluster and reports
// whether there are any.
func (b *builder) sharedBrokers(d *Deployment) bool {
	found := false
	for i := range d.Flows {
		f := &d.Flows[i]
		source, target := d.Clusters[f.ID.Source], d.Clusters[f.ID.Target]
		for _, server := range target.BootstrapServers {
			if f.Enabled && slices.ContainsFunc(source.BootstrapServers, func(s string) bool { return strings.EqualFold(s, server) }) {
				b.errorf(target.Origin, "one of the two lists names the wrong cluster", "%s and %s share the broker %s: they are one cluster, and %s would feed itself",
					f.ID.Source, f.ID.Target, server, f.ID)
				found = true
				break
			}
		}
	}
	return found
}

// loops refuses flows that would send a topic's records round for ever. It
// follows sample topics from cluster to cluster by the flows' own rules.
func (b *builder) loops(d *Deployment) {
	walk := loopWalk{deployment: d, done: map[station]bool{}}
	for _, topic := range samples(d) {
		for _, alias := range d.Aliases {
			if loop := walk.from(station{alias, topic}); loop != nil {
				b.loop(d, topic, loop)
				return
			}
		}
	}
}

func (b *builder) loop(d *Deployment, topic string, ids []mirror.FlowID) {
	var names []string
	var at Origin
	identity := false
	for _, id := range ids {
		if !slices.Contains(names, id.String()) {
			names = append(names, id.String())
		}
		if val, ok := b.raw[id.String()+".enabled"]; ok {
			at = val.Origin
		}
		for i := range d.Flows {
			identity = identity || d.Flows[i].ID == id && d.Flows[i].Naming.Identity
		}
	}
	cause := "their names do not tell where a topic came from"
	if identity {
		cause = "identity naming does not tell where a topic came from"
	}
	b.errorf(at, "narrow topics so that no topic passes all of them, or use DefaultReplicationPolicy",
		"flows %s would copy records round for ever: their filters overlap, for example in topic %q, and %s", strings.Join(names, " and "), topic, cause)
}

// station is a topic on a cluster.
type station struct {
	alias mirror.ClusterAlias
	topic string
}

// loopWalk follows topics through the flows, depth first.
type loopWalk struct {
	deployment *Deployment
	done       map[station]bool // no loop from there
	path       []station
	flows      []mirror.FlowID // flows[i] led from path[i] to path[i+1]
}

// from returns the flows of a loop that can be reached from the station, or nil.
// Names that only ever grow are a loop as well.
func (w *loopWalk) from(s station) []mirror.FlowID {
	if i := slices.Index(w.path, s); i >= 0 {
		return slices.Clone(w.flows[i:])
	}
	if w.done[s] {
		return nil
	}
	if depth := 3*len(w.deployment.Aliases) + 2; len(w.path) > depth {
		return slices.Clone(w.flows)
	}
	w.path = append(w.path, s)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	for i := range w.deployment.Flows {
		f := &w.deployment.Flows[i]
		if !f.Enabled || f.ID.Source != s.alias {
			continue
		}
		if copied, _ := f.Selection.Replicates(s.topic); !copied {
			continue
		}
		w.flows = append(w.flows, f.ID)
		loop := w.from(station{f.ID.Target, f.Policy.RemoteTopic(s.alias, s.topic)})
		w.flows = w.flows[:len(w.flows)-1]
		if loop != nil {
			return loop
		}
	}
	w.done[s] = true
	return nil
}
