package plan

import (
	"fmt"
	"strings"

	"heliograph/internal/mirror"
)

// nameCheck keeps remote names apart: from each other, from reserved names, and
// from names that Kafka refuses beside them.
type nameCheck struct {
	target   map[string]Topic
	reserved map[string]string
	claimed  map[string]string // remote name -> source topic
	folded   map[string]string // name with dots as underscores -> name that holds it
}

func newNameCheck(target []Topic, reserved map[string]string) *nameCheck {
	n := &nameCheck{
		target:   make(map[string]Topic, len(target)),
		reserved: reserved,
		claimed:  map[string]string{},
		folded:   make(map[string]string, len(target)),
	}
	for _, t := range target {
		n.target[t.Name] = t
		n.folded[fold(t.Name)] = t.Name
	}
	return n
}

func (n *nameCheck) existing(remote string) (Topic, bool) {
	t, ok := n.target[remote]
	return t, ok
}

// claim takes the remote name for a source topic, or says why it cannot.
func (n *nameCheck) claim(source, remote string) (reason, hint string) {
	if err := mirror.CheckTopicName(remote); err != nil {
		return "its remote name is refused: " + err.Error(), "exclude the topic, or choose another alias or replication policy"
	}
	if who, taken := n.reserved[remote]; taken {
		return fmt.Sprintf("its remote name %s belongs to %s", remote, who),
			"exclude the topic, or use a policy that keeps the names apart"
	}
	if other, taken := n.claimed[remote]; taken {
		return fmt.Sprintf("its remote name %s is already that of topic %s", remote, other),
			"exclude one of the two: their records would mix"
	}
	_, exists := n.target[remote]
	if other, clash := n.folded[fold(remote)]; clash && other != remote && !exists {
		return fmt.Sprintf("its remote name %s differs from topic %s on the target only in . and _, which Kafka refuses", remote, other),
			"exclude one of the two"
	}
	n.claimed[remote] = source
	n.folded[fold(remote)] = remote
	return "", ""
}

// fold is the name as Kafka's metrics write it. Two topics whose folds are equal
// cannot be created beside each other.
func fold(name string) string { return strings.ReplaceAll(name, ".", "_") }

// InternalNames are the names on a flow's target that hold books, with what they
// are: no remote topic may take one.
func InternalNames(flow mirror.FlowID, policy mirror.ReplicationPolicy) map[string]string {
	return map[string]string{
		mirror.PositionsTopic(flow.Source):      "the positions of flows from " + string(flow.Source),
		mirror.OffsetRunsTopic(flow.Source):     "the offset map of flows from " + string(flow.Source),
		mirror.ConnectConfigsTopic(flow.Source): "MirrorMaker's configurations",
		mirror.ConnectStatusTopic(flow.Source):  "MirrorMaker's states",
		mirror.LossesTopic:                      "the loss ledger",
		policy.HeartbeatsTopic():                "the target's own heartbeats",
		policy.CheckpointsTopic(flow.Source):    "the checkpoints of flows from " + string(flow.Source),
		policy.OffsetSyncsTopic(flow.Source):    "offset syncs of flows from " + string(flow.Source),
		policy.OffsetSyncsTopic(flow.Target):    "offset syncs of flows to " + string(flow.Target),
	}
}
