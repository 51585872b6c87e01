//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// TestNothingIsFetchedTwice: while the target is slow, stands still and catches up,
// what the source sends is what it has, once. The proxy in front of the source counts.
func TestNothingIsFetchedTwice(t *testing.T) {
	t.Parallel()
	const parts, count, size, most = 2, 480, 250 << 10, 1.02
	a := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "once-A", Version: kafkatest.ReleaseSource, Proxied: true})
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "once-B", Version: kafkatest.ReleaseTarget, Proxied: true})
	tr := newTrial(t, a, b)
	tr.append("refresh.topics.interval.seconds = 600") // what it asks is not what is counted here
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, parts, nil)
	// Large batches, of which a careless limit cuts the most off; enough of them that the
	// first answers, whose batches nobody knows yet, weigh little.
	noise := seeded(t)
	records := kafkatest.Messages(topic, parts, count/parts)
	for _, r := range records {
		r.Value = make([]byte, size)
		for i := range r.Value {
			r.Value[i] = byte(noise.Uint32())
		}
	}
	wire := func() float64 { return float64(a.Broker(1).Proxy().Sent()) }
	target := b.Broker(1)
	target.Proxy().Throttle(8 << 20)
	p := tr.start()
	awaitTopic(t, b, tr.remote(topic), parts)
	before := wire()
	a.Produce(t, records, kgo.ProducerBatchMaxBytes(size+1024), kgo.ProducerBatchCompression(kgo.NoCompression()))
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), count/6)
	if err := target.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if err := target.Resume(); err != nil {
		t.Fatal(err)
	}
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), count/2)
	target.Proxy().Heal()
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), count)
	stored := float64(logSize(t, a, topic))
	if sent := wire() - before; sent < stored || sent > most*stored {
		t.Errorf("the source sent %.0f bytes of a log of %.0f: %.3f", sent, stored, sent/stored)
	} else {
		t.Logf("the source sent %.0f bytes of a log of %.0f: %.4f", sent, stored, sent/stored)
	}
	await(t, "all is counted as delivered", func() string { return lacks(int(stored), int(p.metric("heliograph_flow_delivered_bytes_total"))) })
	fetched, delivered, cut := p.metric("heliograph_flow_fetched_bytes_total"), p.metric("heliograph_flow_delivered_bytes_total"), p.metric("heliograph_flow_cut_bytes_total")
	t.Logf("%.0f bytes fetched, %.0f delivered, %.0f cut off", fetched, delivered, cut)
	if fetched > most*delivered || fetched < delivered+cut {
		t.Errorf("%.0f bytes are said to be fetched, %.0f delivered, %.0f cut off", fetched, delivered, cut)
	}
	same(t, kafkatest.Side{Cluster: a, Topic: topic}, kafkatest.Side{Cluster: b, Topic: tr.remote(topic)})
	p.stop()
}

// logSize is how many bytes a topic has on the disks of a cluster of one broker.
func logSize(t *testing.T, c *kafkatest.Cluster, topic string) (size int64) {
	t.Helper()
	dirs, err := c.Admin(t).DescribeAllLogDirs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == topic {
				size += p.Size
			}
		})
	})
	return size
}

// TestReadsFromTheNearReplica: with client.rack, records come from the replica in the
// own rack, whoever leads (KIP-392), and from the leader when that replica is away.
func TestReadsFromTheNearReplica(t *testing.T) {
	t.Parallel()
	const count, size = 2000, 1000
	a := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "racks", Version: kafkatest.ReleaseSource, Brokers: 2, Proxied: true, Racks: []string{"east", "west"},
		Properties: map[string]string{
			"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
			"min.insync.replicas":    "1",
		},
	})
	_, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b)
	tr.append(tr.alias + ".consumer.client.rack = west")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 2, nil) // each broker leads one
	produce := func() {
		records := kafkatest.Messages(topic, 2, count/2)
		for _, r := range records {
			r.Value = make([]byte, size)
		}
		a.Produce(t, records, kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	sent := func(broker int32) int64 { return a.Broker(broker).Proxy().Sent() }
	p := tr.start()
	produce()
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), count)
	// The first answers of a leader may still hold records: the follower had to be in sync.
	east, west := sent(1), sent(2)
	produce()
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), 2*count)
	if far, near := sent(1)-east, sent(2)-west; near < count*size || far > count*size/10 {
		t.Errorf("the far broker sent %d bytes, the near one %d of %d", far, near, count*size)
	}
	if err := a.Broker(2).Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the other broker leads both partitions", func() string {
		topics, err := a.Admin(t).ListTopics(t.Context(), topic)
		if err != nil {
			return err.Error()
		}
		for _, p := range topics[topic].Partitions {
			if p.Leader != 1 {
				return fmt.Sprintf("broker %d leads one", p.Leader)
			}
		}
		return ""
	})
	produce()
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), 3*count)
	p.stop()
}
