package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// Topics lists every topic that this principal may describe, with ids where
// the brokers tell them (2.8 and later).
func (c *Client) Topics(ctx context.Context) ([]kafka.TopicDetail, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	req.AllowAutoTopicCreation = false
	resp, err := c.askMetadata(ctx, req)
	if err != nil {
		return nil, c.fail("list topics", "", err)
	}
	topics := make([]kafka.TopicDetail, 0, len(resp.Topics))
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			topics = append(topics, topicDetail(t))
		}
	}
	return topics, nil
}

func topicDetail(t *kmsg.MetadataResponseTopic) kafka.TopicDetail {
	d := kafka.TopicDetail{
		Name:       *t.Topic,
		ID:         kafka.TopicID(t.TopicID),
		Internal:   t.IsInternal,
		Code:       kafka.Code(t.ErrorCode),
		Partitions: make([]kafka.PartitionDetail, len(t.Partitions)),
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		d.Partitions[i] = kafka.PartitionDetail{
			Partition:   p.Partition,
			Leader:      p.Leader,
			LeaderEpoch: kafka.LeaderEpoch(p.LeaderEpoch),
			Replicas:    p.Replicas,
			ISR:         p.ISR,
			Code:        kafka.Code(p.ErrorCode),
		}
	}
	return d
}

// Brokers lists the brokers that are up.
func (c *Client) Brokers(ctx context.Context) ([]kafka.BrokerDetail, error) {
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, c.fail("list brokers", "", err)
	}
	brokers := make([]kafka.BrokerDetail, len(resp.Brokers))
	for i := range resp.Brokers {
		b := &resp.Brokers[i]
		brokers[i] = kafka.BrokerDetail{ID: b.NodeID, Host: b.Host, Port: b.Port}
		if b.Rack != nil {
			brokers[i].Rack = *b.Rack
		}
	}
	return brokers, nil
}

// CreateTopics makes the topics, or only asks whether they could be made. The
// map has an entry for each topic, nil where it worked.
func (c *Client) CreateTopics(ctx context.Context, topics []kafka.NewTopic, validateOnly bool) map[string]error {
	const op = "create topic"
	out := make(map[string]error, len(topics))
	if len(topics) == 0 {
		return out
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = validateOnly
	req.TimeoutMillis = c.timeoutMillis()
	for _, t := range topics {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, t.ReplicationFactor
		for name, value := range t.Configs {
			cfg := kmsg.NewCreateTopicsRequestTopicConfig()
			cfg.Name, cfg.Value = name, new(value)
			rt.Configs = append(rt.Configs, cfg)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	for _, t := range topics {
		out[t.Name] = c.unanswered(op, t.Name, err)
	}
	if err != nil {
		return out
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		out[t.Topic] = c.answered(op, t.Topic, t.ErrorCode, t.ErrorMessage)
	}
	return out
}

// DeleteTopics removes the topics with all their records. The map has an entry
// for each topic, nil where it worked.
func (c *Client) DeleteTopics(ctx context.Context, topics ...string) map[string]error {
	const op = "delete topic"
	out := make(map[string]error, len(topics))
	if len(topics) == 0 {
		return out
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = c.timeoutMillis()
	req.TopicNames = topics // read up to protocol 5
	for _, name := range topics {
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.Topic = new(name)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	for _, name := range topics {
		out[name] = c.unanswered(op, name, err)
	}
	if err != nil {
		return out
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			out[*t.Topic] = c.answered(op, *t.Topic, t.ErrorCode, t.ErrorMessage)
		}
	}
	return out
}

// CreatePartitions raises topics to the given partition counts. The map has an
// entry for each topic, nil where it worked.
func (c *Client) CreatePartitions(ctx context.Context, counts map[string]int32) map[string]error {
	const op = "add partitions"
	out := make(map[string]error, len(counts))
	if len(counts) == 0 {
		return out
	}
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = c.timeoutMillis()
	for topic, count := range counts {
		rt := kmsg.NewCreatePartitionsRequestTopic()
		rt.Topic, rt.Count = topic, count
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	for topic := range counts {
		out[topic] = c.unanswered(op, topic, err)
	}
	if err != nil {
		return out
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		out[t.Topic] = c.answered(op, t.Topic, t.ErrorCode, t.ErrorMessage)
	}
	return out
}

// unanswered is what an item's outcome is until the answer names it: the
// request's error, or the fact that the broker left the item out.
func (c *Client) unanswered(op, subject string, err error) error {
	if err == nil {
		err = errLeftOut
	}
	return c.fail(op, subject, err)
}

func (c *Client) timeoutMillis() int32 { return int32(c.opts.RequestTimeout.Milliseconds()) }
