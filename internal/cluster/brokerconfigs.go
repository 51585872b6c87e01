package cluster

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BrokerConfigs reads settings of the brokers that are up: for each of the names
// the values that they have, those that a release does not know left out. It
// needs DESCRIBE_CONFIGS on the cluster.
func (c *Client) BrokerConfigs(ctx context.Context, names ...string) (map[string][]string, error) {
	const op = "read broker configs"
	meta := kmsg.NewPtrMetadataRequest()
	meta.Topics = []kmsg.MetadataRequestTopic{}
	brokers, err := c.askMetadata(ctx, meta)
	if err != nil {
		return nil, c.fail(op, "", err)
	}
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, b := range brokers.Brokers {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.NodeID)), names
		req.Resources = append(req.Resources, r)
	}
	out := map[string][]string{}
	answered := false
	for _, shard := range c.kgo.RequestSharded(ctx, req) {
		resp, ok := shard.Resp.(*kmsg.DescribeConfigsResponse)
		if shard.Err != nil || !ok {
			err = shard.Err
			continue
		}
		for i := range resp.Resources {
			r := &resp.Resources[i]
			if failed := c.answered(op, "broker "+r.ResourceName, r.ErrorCode, r.ErrorMessage); failed != nil {
				err = failed
				continue
			}
			answered = true
			for _, cfg := range r.Configs {
				if cfg.Value != nil {
					out[cfg.Name] = append(out[cfg.Name], *cfg.Value)
				}
			}
		}
	}
	if !answered {
		return nil, c.fail(op, "", err)
	}
	return out, nil
}
