package mirror

import (
	"cmp"
	"slices"
	"strings"
)

// DefaultSeparator stands between the alias and the topic in remote names.
const DefaultSeparator = "."

// HeartbeatsTopic is the topic heartbeats are written to, under every policy
// and with every separator.
const HeartbeatsTopic = "heartbeats"

// ReplicationPolicy is the naming of a deployment: what a topic is called on
// the other side, and what a name tells of its past. Implementations are
// immutable.
type ReplicationPolicy interface {
	// RemoteTopic is what the source's topic is called on the target.
	RemoteTopic(source ClusterAlias, topic string) string
	// TopicSource is the cluster a topic was copied from, as far as its name tells.
	TopicSource(topic string) (ClusterAlias, bool)
	// UpstreamTopic is what the topic is called on its immediate source.
	UpstreamTopic(topic string) (string, bool)

	// HeartbeatsTopic is the name of the local heartbeats topic.
	HeartbeatsTopic() string
	// OffsetSyncsTopic is the topic of offset syncs; alias is the cluster at the
	// other end from the one that holds the topic.
	OffsetSyncsTopic(alias ClusterAlias) string
	// CheckpointsTopic is the topic of checkpoints of flows from alias.
	CheckpointsTopic(alias ClusterAlias) string

	// IsHeartbeatsTopic reports whether the topic's original name is the heartbeats topic's.
	IsHeartbeatsTopic(topic string) bool
	// IsCheckpointsTopic reports whether the name is one of a checkpoints topic.
	IsCheckpointsTopic(topic string) bool
	// IsInternalTopic reports whether the topic belongs to Kafka, Connect or
	// MirrorMaker and is never copied.
	IsInternalTopic(topic string) bool
}

// PolicyOptions configure a policy. The zero value is MirrorMaker's default.
type PolicyOptions struct {
	// Separator stands between alias and topic. Empty means [DefaultSeparator]:
	// naming with nothing in between is identity naming, which whoever reads the
	// configuration must choose by name. Splitting names at an empty separator
	// would make the topic Billing a copy from cluster B.
	Separator string
	// InternalSeparator is used in the names of offset syncs and checkpoints.
	// Empty means Separator.
	InternalSeparator string
	// Aliases are the known clusters. A name that begins with one of them and the
	// separator came from there, the longest alias first, so that an alias may
	// hold the separator. Other names are split as MirrorMaker splits them.
	Aliases []ClusterAlias
	// Source is the cluster that unprefixed topics come from under identity
	// naming. Empty where there is none.
	Source ClusterAlias
	// BaselineInternal applies the rule of 3.9 and before: every topic that ends
	// in ".internal" or "-internal" is internal. From 4.0 on only MirrorMaker's
	// own topics are.
	BaselineInternal bool
}

// defaultPolicy names topics <alias><separator><topic>.
type defaultPolicy struct {
	separator, internal string
	dotted              []string // known aliases that hold the separator, longest first, each with a separator behind
	baseline            bool
}

// NewDefaultPolicy is MirrorMaker's DefaultReplicationPolicy: the source's alias
// before the name.
func NewDefaultPolicy(o PolicyOptions) ReplicationPolicy { return newDefaultPolicy(o) }

func newDefaultPolicy(o PolicyOptions) *defaultPolicy {
	p := &defaultPolicy{
		separator: cmp.Or(o.Separator, DefaultSeparator),
		baseline:  o.BaselineInternal,
	}
	p.internal = cmp.Or(o.InternalSeparator, p.separator)
	// A plain alias is what the split finds anyway.
	for _, a := range o.Aliases {
		if p.splitsInside(string(a)) {
			p.dotted = append(p.dotted, string(a)+p.separator)
		}
	}
	slices.SortFunc(p.dotted, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return p
}

// splitsInside reports whether splitting a remote name of alias would not give
// the alias back: it holds the separator, or makes one with what follows it.
func (p *defaultPolicy) splitsInside(alias string) bool {
	return alias != "" && strings.Index(alias+p.separator, p.separator) < len(alias)
}

// RemoteTopic puts the alias before the topic, whatever the topic is called.
func (p *defaultPolicy) RemoteTopic(source ClusterAlias, topic string) string {
	return string(source) + p.separator + topic
}

// TopicSource is the known alias the name begins with, or else what stands
// before the first separator. A name with nothing but separators behind it has
// no source: "foo." is an original topic.
func (p *defaultPolicy) TopicSource(topic string) (ClusterAlias, bool) {
	for _, prefix := range p.dotted {
		if rest, ok := strings.CutPrefix(topic, prefix); ok && p.hasName(rest) {
			return ClusterAlias(strings.TrimSuffix(prefix, p.separator)), true
		}
	}
	alias, rest, found := strings.Cut(topic, p.separator)
	if !found || !p.hasName(rest) {
		return "", false
	}
	return ClusterAlias(alias), true
}

// hasName reports whether rest holds more than separators. Java drops trailing
// empty pieces when it splits.
func (p *defaultPolicy) hasName(rest string) bool {
	return strings.ReplaceAll(rest, p.separator, "") != ""
}

// UpstreamTopic is the name without its source and one separator.
func (p *defaultPolicy) UpstreamTopic(topic string) (string, bool) {
	source, ok := p.TopicSource(topic)
	if !ok {
		return "", false
	}
	return topic[len(source)+len(p.separator):], true
}

// HeartbeatsTopic is always "heartbeats".
func (p *defaultPolicy) HeartbeatsTopic() string { return HeartbeatsTopic }

// OffsetSyncsTopic is mm2-offset-syncs.<alias>.internal with the internal separator.
func (p *defaultPolicy) OffsetSyncsTopic(alias ClusterAlias) string {
	return "mm2-offset-syncs" + p.internal + string(alias) + p.internal + "internal"
}

// CheckpointsTopic is <alias>.checkpoints.internal with the internal separator.
func (p *defaultPolicy) CheckpointsTopic(alias ClusterAlias) string {
	return string(alias) + p.checkpointsSuffix()
}

func (p *defaultPolicy) checkpointsSuffix() string {
	return p.internal + "checkpoints" + p.internal + "internal"
}

// IsHeartbeatsTopic holds for heartbeats and for its copies over any number of hops.
func (p *defaultPolicy) IsHeartbeatsTopic(topic string) bool {
	return OriginalTopic(p, topic) == HeartbeatsTopic
}

// IsCheckpointsTopic goes by the end of the name.
func (p *defaultPolicy) IsCheckpointsTopic(topic string) bool {
	return strings.HasSuffix(topic, p.checkpointsSuffix())
}

// IsInternalTopic applies the rule the options chose. MirrorMaker from 4.0 on
// looks only for the internal separator; Connect's topics and ours always end in
// ".internal" and are never to be copied, so that end counts as well.
func (p *defaultPolicy) IsInternalTopic(topic string) bool {
	if strings.HasPrefix(topic, "__") || strings.HasPrefix(topic, ".") || p.IsCheckpointsTopic(topic) {
		return true
	}
	ours := strings.HasSuffix(topic, p.internal+"internal")
	if p.baseline {
		return ours || strings.HasSuffix(topic, "-internal") || strings.HasSuffix(topic, ".internal")
	}
	return (ours || strings.HasSuffix(topic, ".internal")) && strings.HasPrefix(topic, "mm2")
}

// identityPolicy keeps names, except those of heartbeats topics.
type identityPolicy struct {
	*defaultPolicy
	source ClusterAlias
}

// NewIdentityPolicy is MirrorMaker's IdentityReplicationPolicy: topics keep
// their names. Those that end in "heartbeats" are still prefixed, so that
// topology can be discovered; a user's topic with such a name is, too.
//
// Loops can be recognised by name for heartbeats only.
func NewIdentityPolicy(o PolicyOptions) ReplicationPolicy {
	return &identityPolicy{defaultPolicy: newDefaultPolicy(o), source: o.Source}
}

func looksLikeHeartbeats(topic string) bool { return strings.HasSuffix(topic, HeartbeatsTopic) }

// RemoteTopic is the topic itself, or the prefixed name of a heartbeats topic.
func (p *identityPolicy) RemoteTopic(source ClusterAlias, topic string) string {
	if looksLikeHeartbeats(topic) {
		return p.defaultPolicy.RemoteTopic(source, topic)
	}
	return topic
}

// TopicSource is the configured source, because names do not tell.
func (p *identityPolicy) TopicSource(topic string) (ClusterAlias, bool) {
	if looksLikeHeartbeats(topic) {
		return p.defaultPolicy.TopicSource(topic)
	}
	return p.source, p.source != ""
}

// UpstreamTopic is the topic itself, or the rest of the name of a heartbeats topic.
func (p *identityPolicy) UpstreamTopic(topic string) (string, bool) {
	if looksLikeHeartbeats(topic) {
		return p.defaultPolicy.UpstreamTopic(topic)
	}
	return topic, true
}

// IsHeartbeatsTopic holds for heartbeats and for its copies over any number of hops.
func (p *identityPolicy) IsHeartbeatsTopic(topic string) bool {
	return OriginalTopic(p, topic) == HeartbeatsTopic
}

// OriginalTopic undoes every hop that the topic's name tells of.
func OriginalTopic(p ReplicationPolicy, topic string) string {
	for {
		up, ok := p.UpstreamTopic(topic)
		// Each hop shortens the name, so the walk ends under any policy.
		if !ok || len(up) >= len(topic) {
			return topic
		}
		topic = up
	}
}

// passedThrough reports whether any hop in the topic's name is the cluster.
// Copying such a topic to that cluster would close a loop.
func passedThrough(p ReplicationPolicy, topic string, cluster ClusterAlias) bool {
	for {
		source, ok := p.TopicSource(topic)
		if !ok {
			return false
		}
		if source == cluster {
			return true
		}
		up, ok := p.UpstreamTopic(topic)
		if !ok || len(up) >= len(topic) {
			return false
		}
		topic = up
	}
}
