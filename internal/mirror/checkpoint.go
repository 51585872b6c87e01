package mirror

import (
	"fmt"

	"heliograph/internal/kafka"
)

// Checkpoint says where a group stands on both clusters.
type Checkpoint struct {
	Group string
	// TopicPartition has the target's name of the topic.
	TopicPartition kafka.TopicPartition
	// Upstream is what the group has committed on the source.
	Upstream UpstreamOffset
	// Downstream is where to go on reading on the target.
	Downstream DownstreamOffset
	// Metadata is the group's own committed text; null became empty.
	Metadata string
}

// AppendKey appends the record's key to dst.
func (c Checkpoint) AppendKey(dst []byte) []byte {
	dst = appendString(appendString(dst, c.Group), c.TopicPartition.Topic)
	return appendInt32(dst, c.TopicPartition.Partition)
}

// AppendValue appends the record's value to dst.
func (c Checkpoint) AppendValue(dst []byte) []byte {
	dst = appendInt64(appendInt16(dst, recordVersion), int64(c.Upstream))
	return appendString(appendInt64(dst, int64(c.Downstream)), c.Metadata)
}

// DecodeCheckpoint reads a record of a checkpoints topic.
func DecodeCheckpoint(key, value []byte) (Checkpoint, error) {
	k := reader{b: key}
	c := Checkpoint{Group: k.string("group")}
	c.TopicPartition.Topic = k.string("topic")
	c.TopicPartition.Partition = k.partition("partition")
	if k.err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint key: %w", k.err)
	}
	v := reader{b: value}
	v.version()
	c.Upstream = UpstreamOffset(v.int64("upstreamOffset"))
	c.Downstream = DownstreamOffset(v.int64("offset"))
	c.Metadata = v.string("metadata")
	if v.err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint of group %s for %s: %w", c.Group, c.TopicPartition, v.err)
	}
	return c, nil
}

// String prints the checkpoint as Kafka's CheckpointFormatter does.
func (c Checkpoint) String() string {
	return fmt.Sprintf("Checkpoint{consumerGroupId=%s, topicPartition=%s, upstreamOffset=%d, downstreamOffset=%d, metadata=%s}",
		c.Group, c.TopicPartition, c.Upstream, c.Downstream, c.Metadata)
}
