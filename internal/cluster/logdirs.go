package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafka"
)

// PartitionSizes is how many bytes each partition of the topics takes on disk, of
// its replicas the largest. Partitions that no broker tells of are left out: the
// request needs DESCRIBE on the cluster, and some services refuse it.
func (c *Client) PartitionSizes(ctx context.Context, topics ...string) map[kafka.TopicPartition]int64 {
	sizes := map[kafka.TopicPartition]int64{}
	if len(topics) == 0 {
		return sizes
	}
	all, err := c.adm.DescribeAllLogDirs(ctx, nil)
	if err != nil && len(all) == 0 {
		return sizes
	}
	wanted := make(map[string]bool, len(topics))
	for _, topic := range topics {
		wanted[topic] = true
	}
	all.Each(func(d kadm.DescribedLogDir) {
		for topic, partitions := range d.Topics {
			if !wanted[topic] {
				continue
			}
			for n, p := range partitions {
				tp := kafka.TopicPartition{Topic: topic, Partition: n}
				sizes[tp] = max(sizes[tp], p.Size)
			}
		}
	})
	return sizes
}
