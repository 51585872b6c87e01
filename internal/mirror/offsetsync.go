package mirror

import (
	"fmt"

	"heliograph/internal/kafka"
)

// OffsetSync says that a record of the source became a certain record of the target.
type OffsetSync struct {
	// TopicPartition has the source's name of the topic.
	TopicPartition kafka.TopicPartition
	Upstream       UpstreamOffset
	Downstream     DownstreamOffset
}

// AppendKey appends the record's key to dst.
func (s OffsetSync) AppendKey(dst []byte) []byte {
	return appendInt32(appendString(dst, s.TopicPartition.Topic), s.TopicPartition.Partition)
}

// AppendValue appends the record's value to dst.
func (s OffsetSync) AppendValue(dst []byte) []byte {
	return appendInt64(appendInt64(dst, int64(s.Upstream)), int64(s.Downstream))
}

// DecodeOffsetSync reads a record of an offset syncs topic.
func DecodeOffsetSync(key, value []byte) (OffsetSync, error) {
	k := reader{b: key}
	var s OffsetSync
	s.TopicPartition.Topic = k.string("topic")
	s.TopicPartition.Partition = k.partition("partition")
	if k.err != nil {
		return OffsetSync{}, fmt.Errorf("offset sync key: %w", k.err)
	}
	v := reader{b: value}
	s.Upstream = UpstreamOffset(v.int64("upstreamOffset"))
	s.Downstream = DownstreamOffset(v.int64("offset"))
	if v.err != nil {
		return OffsetSync{}, fmt.Errorf("offset sync of %s: %w", s.TopicPartition, v.err)
	}
	return s, nil
}

// String prints the sync as Kafka's OffsetSyncFormatter does.
func (s OffsetSync) String() string {
	return fmt.Sprintf("OffsetSync{topicPartition=%s, upstreamOffset=%d, downstreamOffset=%d}",
		s.TopicPartition, s.Upstream, s.Downstream)
}
