package kafka

import (
	"encoding/base64"
	"strconv"
)

// TopicPartition names one partition of one topic on one cluster.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String writes the partition as Kafka's tools do: topic-partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Compare orders by topic, then by partition.
func (tp TopicPartition) Compare(other TopicPartition) int {
	switch {
	case tp.Topic < other.Topic:
		return -1
	case tp.Topic > other.Topic:
		return 1
	case tp.Partition < other.Partition:
		return -1
	case tp.Partition > other.Partition:
		return 1
	}
	return 0
}

// TopicID is the unique id a cluster gives a topic at its creation (KIP-516,
// brokers from 2.8). A topic deleted and made again gets another one. The zero
// value means that the cluster does not tell.
type TopicID [16]byte

// Known reports whether the cluster told the id.
func (id TopicID) Known() bool { return id != TopicID{} }

// String writes the id as Kafka's tools do: 22 characters of URL-safe base64.
func (id TopicID) String() string {
	if !id.Known() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// ParseTopicID reads what [TopicID.String] wrote. Anything else is the unknown id.
func ParseTopicID(s string) TopicID {
	var id TopicID
	if b, err := base64.RawURLEncoding.DecodeString(s); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// LeaderEpoch counts the leaders a partition has had. NoLeaderEpoch means unknown.
type LeaderEpoch int32

// NoLeaderEpoch is sent where the epoch is not known; the broker then skips the check.
const NoLeaderEpoch LeaderEpoch = -1

// NoNode is the node id of a partition without a leader, and of no preferred replica.
const NoNode int32 = -1

// Isolation is what a reader may see of transactions.
type Isolation int8

// The two isolation levels, with their wire values.
const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// ProducerID is the identity under which a producer writes: what InitProducerId
// returned. Epoch fences older holders of the same ID.
type ProducerID struct {
	ID    int64
	Epoch int16
}

// NoProducer is the identity of batches written without idempotence.
var NoProducer = ProducerID{ID: -1, Epoch: -1}
