package mirror

import "fmt"

// TopicSelection decides which topics of the source a flow copies.
type TopicSelection struct {
	Policy ReplicationPolicy
	Filter TopicFilter
	// Target is where the flow copies to.
	Target ClusterAlias
	// ReplicateHeartbeats copies heartbeats topics whatever the filter says.
	ReplicateHeartbeats bool
}

// Replicates reports whether the topic is copied. Where it is not, the reason
// is a phrase for people that completes "not copied: …"; otherwise it is empty.
//
// Topics that the broker itself flags as internal must have been left out before.
func (s TopicSelection) Replicates(topic string) (replicates bool, reason string) {
	if s.Policy.IsInternalTopic(topic) {
		return false, "internal topic of Kafka, Connect or MirrorMaker"
	}
	if passedThrough(s.Policy, topic, s.Target) {
		return false, fmt.Sprintf("its name says that it came from %s, and copying it back would be a loop", s.Target)
	}
	if s.ReplicateHeartbeats && s.Policy.IsHeartbeatsTopic(topic) {
		return true, ""
	}
	return s.Filter.Explain(topic)
}
