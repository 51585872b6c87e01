package kafkatest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
)

// workPatience bounds one request of the harness's own clients.
const workPatience = 30 * time.Second

// Open connects a franz-go client to the internal listener, with more options
// where the caller needs them. The caller closes it.
func (c *Cluster) Open(opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(c.Internal()...),
		kgo.DisableClientMetrics(),
		kgo.ClientID("kafkatest"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(2 << 20),
		kgo.RetryTimeout(workPatience),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("client of cluster %s: %w", c.opts.Name, err)
	}
	return cl, nil
}

// Client is [Cluster.Open] for the time of a test.
func (c *Cluster) Client(tb testing.TB, opts ...kgo.Opt) *kgo.Client {
	tb.Helper()
	cl, err := c.Open(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cl.Close)
	return cl
}

// Admin is franz-go's admin client for the time of a test.
func (c *Cluster) Admin(tb testing.TB) *kadm.Client {
	tb.Helper()
	return kadm.NewClient(c.Client(tb))
}

// CreateTopic makes a topic and waits until it has leaders. Its replication
// factor is the number of brokers, three at most. configs may be nil.
func (c *Cluster) CreateTopic(tb testing.TB, topic string, partitions int32, configs map[string]string) {
	tb.Helper()
	if err := c.MakeTopic(tb.Context(), topic, partitions, configs); err != nil {
		tb.Fatal(err)
	}
}

// MakeTopic is [Cluster.CreateTopic] outside a test.
func (c *Cluster) MakeTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	cl, err := c.Open()
	if err != nil {
		return err
	}
	defer cl.Close()
	values := map[string]*string{}
	for name, value := range configs {
		values[name] = &value
	}
	adm := kadm.NewClient(cl)
	resp, err := adm.CreateTopic(ctx, partitions, int16(min(c.opts.Brokers, 3)), values, topic)
	if err == nil {
		err = resp.Err
	}
	if err != nil {
		return fmt.Errorf("create topic %s on cluster %s: %w", topic, c.opts.Name, err)
	}
	return c.awaitLeaders(ctx, adm, topic, int(partitions))
}

// awaitLeaders returns once every partition of a topic has a leader that knows of
// it: an accepted creation only means that the controller knows the topic.
func (c *Cluster) awaitLeaders(ctx context.Context, adm *kadm.Client, topic string, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, workPatience)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		topics, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return fmt.Errorf("leaders of %s on cluster %s: %w", topic, c.opts.Name, err)
		}
		ends, _ := adm.ListEndOffsets(ctx, topic) // what did not answer is not among them
		led := 0
		for _, p := range topics[topic].Partitions {
			if end, ok := ends.Lookup(topic, p.Partition); ok && end.Err == nil && p.Err == nil && p.Leader >= 0 {
				led++
			}
		}
		if led == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("leaders of %s on cluster %s: %d of %d: %w", topic, c.opts.Name, led, partitions, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// Produce writes records, each to the partition it names, in order, with acks=all.
func (c *Cluster) Produce(tb testing.TB, records []*kgo.Record, opts ...kgo.Opt) {
	tb.Helper()
	cl, err := c.Open(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(tb.Context(), records...).FirstErr(); err != nil {
		tb.Fatalf("produce to cluster %s: %v", c.opts.Name, err)
	}
}

// Messages makes count records for each partition with keys "key-i" and values
// "message-i", as MirrorMaker's own tests do.
func Messages(topic string, partitions int32, count int) []*kgo.Record {
	var out []*kgo.Record
	for p := range partitions {
		for i := range count {
			out = append(out, &kgo.Record{
				Topic: topic, Partition: p,
				Key: fmt.Appendf(nil, "key-%d", i), Value: fmt.Appendf(nil, "message-%d", i),
			})
		}
	}
	return out
}

// ReadTopic reads a topic from its start to its end as a read_committed consumer
// would and returns each partition's records in order.
func (c *Cluster) ReadTopic(tb testing.TB, topic string) map[int32][]kafka.Record {
	tb.Helper()
	records, err := c.Read(tb.Context(), topic, kafka.ReadCommitted)
	if err != nil {
		tb.Fatal(err)
	}
	return records
}

// AwaitTopic waits until a topic exists and has so many partitions.
func (c *Cluster) AwaitTopic(tb testing.TB, topic string, partitions int) {
	tb.Helper()
	if err := c.awaitLeaders(tb.Context(), c.Admin(tb), topic, partitions); err != nil {
		tb.Fatal(err)
	}
}

// AwaitRecords reads a topic until it holds at least so many records, over all
// partitions, and returns them. It fails the test when ctx ends before.
func (c *Cluster) AwaitRecords(ctx context.Context, tb testing.TB, topic string, count int) map[int32][]kafka.Record {
	tb.Helper()
	poll := time.NewTicker(4 * pollEvery)
	defer poll.Stop()
	for {
		records, err := c.Read(ctx, topic, kafka.ReadCommitted)
		have := 0
		for _, list := range records {
			have += len(list)
		}
		if err == nil && have >= count {
			return records
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s on cluster %s: %d of %d records: %v (%v)", topic, c.opts.Name, have, count, context.Cause(ctx), err)
		case <-poll.C:
		}
	}
}

// CommitGroup sets a group's offsets on one topic, partition by partition from 0.
func (c *Cluster) CommitGroup(tb testing.TB, group, topic string, offsets ...int64) {
	tb.Helper()
	var all kadm.Offsets
	for p, at := range offsets {
		all.Add(kadm.Offset{Topic: topic, Partition: int32(p), At: at, LeaderEpoch: -1})
	}
	resp, err := c.Admin(tb).CommitOffsets(tb.Context(), group, all)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		tb.Fatalf("commit group %s on cluster %s: %v", group, c.opts.Name, err)
	}
}

// GroupOffsets is what a group has committed on a topic, by partition.
func (c *Cluster) GroupOffsets(tb testing.TB, group, topic string) map[int32]int64 {
	tb.Helper()
	resp, err := c.Admin(tb).FetchOffsets(tb.Context(), group)
	if err != nil {
		tb.Fatalf("offsets of group %s on cluster %s: %v", group, c.opts.Name, err)
	}
	out := map[int32]int64{}
	for _, o := range resp.Sorted() {
		if o.Topic == topic {
			out[o.Partition] = o.At
		}
	}
	return out
}

// TopicNames lists the cluster's topics except those that brokers keep for themselves.
func (c *Cluster) TopicNames(tb testing.TB) []string {
	tb.Helper()
	topics, err := c.Admin(tb).ListTopics(tb.Context())
	if err != nil {
		tb.Fatalf("topics of cluster %s: %v", c.opts.Name, err)
	}
	names := topics.Names()
	slices.Sort(names)
	return names
}
