package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// ListOffsets finds where partitions begin or end. The map has an entry for
// each partition. Under ReadCommitted, Latest is the last stable offset.
func (c *Client) ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	const op = "list offsets"
	out := make(map[kafka.TopicPartition]kafka.PartitionOffset, len(tps))
	if len(tps) == 0 {
		return out
	}
	byTopic := make(map[string][]kmsg.ListOffsetsRequestTopicPartition)
	for _, tp := range tps {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = tp.Partition, int64(at)
		byTopic[tp.Topic] = append(byTopic[tp.Topic], p)
		out[tp] = c.offsetFailed(op, tp, errLeftOut)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = int8(iso)
	for topic, parts := range byTopic {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic, t.Partitions = topic, parts
		req.Topics = append(req.Topics, t)
	}
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		c.listedOffsets(op, shard, out)
	}
	return out
}

func (c *Client) listedOffsets(op string, shard kgo.ResponseShard, out map[kafka.TopicPartition]kafka.PartitionOffset) {
	if shard.Err != nil {
		if req, ok := shard.Req.(*kmsg.ListOffsetsRequest); ok {
			for _, t := range req.Topics {
				for _, p := range t.Partitions {
					tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
					out[tp] = c.offsetFailed(op, tp, shard.Err)
				}
			}
		}
		return
	}
	resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
	if !ok {
		return
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			out[tp] = kafka.PartitionOffset{
				Offset: p.Offset, LeaderEpoch: kafka.LeaderEpoch(p.LeaderEpoch),
				Err: c.answered(op, tp.String(), p.ErrorCode, nil),
			}
		}
	}
}

func (c *Client) offsetFailed(op string, tp kafka.TopicPartition, err error) kafka.PartitionOffset {
	return kafka.PartitionOffset{Offset: -1, LeaderEpoch: kafka.NoLeaderEpoch, Err: c.fail(op, tp.String(), err)}
}
