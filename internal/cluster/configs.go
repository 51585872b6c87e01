package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

var errLeftOut = errors.New("the answer left it out")

// TopicConfigs reads the topics' configs. The map has an entry for each name.
// An error means that no topic was answered.
func (c *Client) TopicConfigs(ctx context.Context, names ...string) (map[string]kafka.TopicConfigs, error) {
	const op = "read topic configs"
	out := make(map[string]kafka.TopicConfigs, len(names))
	if len(names) == 0 {
		return out, nil
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
		req.Resources = append(req.Resources, r)
		out[name] = kafka.TopicConfigs{Err: c.fail(op, name, errLeftOut)}
	}
	answered := false
	var failed error
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		if shard.Err != nil {
			failed = shard.Err
			c.configsFailed(op, shard, out)
			continue
		}
		resp, ok := shard.Resp.(*kmsg.DescribeConfigsResponse)
		if !ok {
			continue
		}
		answered = true
		for i := range resp.Resources {
			r := &resp.Resources[i]
			out[r.ResourceName] = kafka.TopicConfigs{
				Entries: configEntries(r.Configs),
				Err:     c.answered(op, r.ResourceName, r.ErrorCode, r.ErrorMessage),
			}
		}
	}
	if !answered {
		return nil, c.fail(op, "", failed)
	}
	return out, nil
}

func (c *Client) configsFailed(op string, shard kgo.ResponseShard, out map[string]kafka.TopicConfigs) {
	req, ok := shard.Req.(*kmsg.DescribeConfigsRequest)
	if !ok {
		return
	}
	for i := range req.Resources {
		name := req.Resources[i].ResourceName
		out[name] = kafka.TopicConfigs{Err: c.fail(op, name, shard.Err)}
	}
}

func configEntries(configs []kmsg.DescribeConfigsResponseResourceConfig) []kafka.ConfigEntry {
	entries := make([]kafka.ConfigEntry, len(configs))
	for i := range configs {
		cfg := &configs[i]
		entries[i] = kafka.ConfigEntry{
			Name: cfg.Name, Source: kafka.ConfigSource(cfg.Source),
			ReadOnly: cfg.ReadOnly, Sensitive: cfg.IsSensitive, Null: cfg.Value == nil,
		}
		if cfg.Value != nil {
			entries[i].Value = *cfg.Value
		}
	}
	return entries
}

// AlterTopicConfigs changes the named configs and leaves all others alone. The
// map has an entry for each topic, nil where it worked.
func (c *Client) AlterTopicConfigs(ctx context.Context, changes map[string][]kafka.ConfigChange) map[string]error {
	const op = "alter topic configs"
	out := make(map[string]error, len(changes))
	if len(changes) == 0 {
		return out
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	for topic, list := range changes {
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		for _, change := range list {
			cfg := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			cfg.Name = change.Name
			if change.Delete {
				cfg.Op = kmsg.IncrementalAlterConfigOpDelete
			} else {
				cfg.Op, cfg.Value = kmsg.IncrementalAlterConfigOpSet, new(change.Value)
			}
			r.Configs = append(r.Configs, cfg)
		}
		req.Resources = append(req.Resources, r)
		out[topic] = c.fail(op, topic, errLeftOut)
	}
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		if sreq, ok := shard.Req.(*kmsg.IncrementalAlterConfigsRequest); ok && shard.Err != nil {
			for i := range sreq.Resources {
				name := sreq.Resources[i].ResourceName
				out[name] = c.fail(op, name, shard.Err)
			}
		}
		if resp, ok := shard.Resp.(*kmsg.IncrementalAlterConfigsResponse); ok && shard.Err == nil {
			for i := range resp.Resources {
				r := &resp.Resources[i]
				out[r.ResourceName] = c.answered(op, r.ResourceName, r.ErrorCode, r.ErrorMessage)
			}
		}
	}
	return out
}
