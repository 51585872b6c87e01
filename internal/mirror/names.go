package mirror

import (
	"fmt"
	"strings"
)

// ClusterAlias is the name that the configuration gives a cluster. It becomes
// part of topic names under the default policy.
type ClusterAlias string

// FlowID names a flow: an ordered pair of clusters.
type FlowID struct {
	Source, Target ClusterAlias
}

// String writes the flow as MirrorMaker's files do: A->B.
func (f FlowID) String() string { return string(f.Source) + "->" + string(f.Target) }

// UpstreamOffset is an offset in a partition of the source.
type UpstreamOffset int64

// DownstreamOffset is an offset in a partition of the target.
type DownstreamOffset int64

// The connectors of MirrorMaker's dedicated mode that are told apart here. Their
// names are the first element of the keys in the positions topic.
const (
	SourceConnector     = "MirrorSourceConnector"
	CheckpointConnector = "MirrorCheckpointConnector"
)

// PositionsTopic is the topic on the target that holds the positions of all
// flows from source: mm2-offsets.<source>.internal. The policy's separator has
// no part in it.
func PositionsTopic(source ClusterAlias) string {
	return "mm2-offsets." + string(source) + ".internal"
}

// ConnectConfigsTopic is where MirrorMaker keeps its connector configurations.
// It is only read, to recognise a MirrorMaker at work.
func ConnectConfigsTopic(source ClusterAlias) string {
	return "mm2-configs." + string(source) + ".internal"
}

// ConnectStatusTopic is where MirrorMaker keeps its task states. It is only
// read, to recognise a MirrorMaker at work.
func ConnectStatusTopic(source ClusterAlias) string {
	return "mm2-status." + string(source) + ".internal"
}

// OffsetRunsTopic is the topic of ours on the target that holds the exact
// offset map of all flows from source.
func OffsetRunsTopic(source ClusterAlias) string {
	return "mm2-offset-runs." + string(source) + ".internal"
}

// DeadLettersTopic is the topic of ours on the target that keeps, unless another
// is named, what could not be copied from source.
func DeadLettersTopic(source ClusterAlias) string {
	return "mm2-dead-letters." + string(source) + ".internal"
}

// progressPrefix begins the names of progress groups. Groups that begin with two
// underscores are not followed by any MirrorMaker unless it is told to.
const progressPrefix = "__heliograph."

// ProgressGroup is the consumer group on a flow's source that tells how far the
// flow has copied.
func ProgressGroup(f FlowID) string {
	return progressPrefix + string(f.Source) + "." + string(f.Target)
}

// ProgressMetadata is the metadata of offsets that a progress group commits, by
// which a progress group of any name is told from a consumer's.
const ProgressMetadata = "heliograph: replication progress"

// IsProgressGroup reports whether the name is one of a progress group.
func IsProgressGroup(group string) bool { return strings.HasPrefix(group, progressPrefix) }

// LossesTopic is the topic of ours on the target that holds the loss ledger.
const LossesTopic = "mm2-losses.internal"

// MaxTopicName is the length a broker allows a topic name, in bytes.
const MaxTopicName = 249

// CheckTopicName says why a broker would refuse name, or returns nil. A remote
// name can be illegal although the source's is not: the prefix makes it longer,
// and an alias may hold any character.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("topic name is empty")
	case name == "." || name == "..":
		return fmt.Errorf("topic name %q is not allowed by Kafka", name)
	case len(name) > MaxTopicName:
		return fmt.Errorf("topic name %q has %d characters and Kafka allows %d: shorten the alias or use the identity policy",
			name, len(name), MaxTopicName)
	}
	if i := strings.IndexFunc(name, illegalInTopic); i >= 0 {
		bad := []rune(name[i:])[0]
		return fmt.Errorf("topic name %q holds %q: Kafka allows letters, digits, '.', '_' and '-'", name, bad)
	}
	return nil
}

func illegalInTopic(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return r != '.' && r != '_' && r != '-'
}
