package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The demo's topics and consumer groups on cluster A.
const (
	TopicOrders   = "orders"
	TopicPayments = "payments"
	TopicPrices   = "prices" // compacted

	GroupBilling  = "billing"  // reads orders and payments, always running
	GroupShipping = "shipping" // reads orders, always running
	GroupReports  = "reports"  // read some orders once; nobody runs it now
)

// The ports asked for, so that the commands shown stay the same from run to run.
// Where one is taken, a free one takes its place.
const (
	portA = 19092
	portB = 29092
)

// topicBytes bounds a partition: the demo may run for days and everything is in memory.
const topicBytes = 8 << 20

// Demo is two clusters that run. Close ends them.
type Demo struct {
	a, b *kfake.Cluster
	rate int
}

// Options configures a [Demo].
type Options struct {
	RecordsPerSecond int // written to A, all topics together; zero is 200
}

// Open starts both clusters and creates the topics on A.
func Open(ctx context.Context, o Options) (*Demo, error) {
	if o.RecordsPerSecond == 0 {
		o.RecordsPerSecond = 200
	}
	a, err := startCluster("heliograph-demo-A", portA)
	if err != nil {
		return nil, fmt.Errorf("start cluster A: %w", err)
	}
	b, err := startCluster("heliograph-demo-B", portB)
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("start cluster B: %w", err)
	}
	d := &Demo{a: a, b: b, rate: o.RecordsPerSecond}
	if err := d.createTopics(ctx); err != nil {
		d.Close()
		return nil, fmt.Errorf("create the demo's topics: %w", err)
	}
	return d, nil
}

// Close ends both clusters and forgets their data.
func (d *Demo) Close() {
	d.a.Close()
	d.b.Close()
}

// Addresses are the bootstrap servers of both clusters.
func (d *Demo) Addresses() (a, b string) { return d.a.ListenAddrs()[0], d.b.ListenAddrs()[0] }

// File is the configuration that replicates A to B, in MirrorMaker's form.
func (d *Demo) File() string {
	a, b := d.Addresses()
	return fmt.Sprintf(`clusters = A, B
A.bootstrap.servers = %s
B.bootstrap.servers = %s

A->B.enabled = true
A->B.topics = .*
A->B.sync.group.offsets.enabled = true
A->B.sync.group.offsets.interval.seconds = 2
A->B.emit.checkpoints.interval.seconds = 2
A->B.refresh.groups.interval.seconds = 2

replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
`, a, b)
}

// startCluster listens on port, or on a free one where it is taken.
func startCluster(id string, port int) (*kfake.Cluster, error) {
	c, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ClusterID(id),
		kfake.Ports(port),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address) //nolint:noctx // the library's hook has no context
			if errors.Is(err, syscall.EADDRINUSE) {
				return net.Listen(network, net.JoinHostPort("127.0.0.1", "0")) //nolint:noctx // as above
			}
			return l, err
		}),
	)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d *Demo) createTopics(ctx context.Context) error {
	cl, err := d.client("demo-setup")
	if err != nil {
		return err
	}
	defer cl.Close()
	bytes := strconv.Itoa(topicBytes)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = []kmsg.CreateTopicsRequestTopic{
		newTopic(TopicOrders, 4, map[string]string{"retention.bytes": bytes}),
		newTopic(TopicPayments, 3, map[string]string{"retention.bytes": bytes}),
		newTopic(TopicPrices, 1, map[string]string{"cleanup.policy": "compact"}),
	}
	res, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, t := range res.Topics {
		if t.ErrorCode != 0 {
			return fmt.Errorf("topic %s: error code %d", t.Topic, t.ErrorCode)
		}
	}
	return nil
}

func newTopic(name string, partitions int32, configs map[string]string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		t.Configs = append(t.Configs, c)
	}
	return t
}

// client connects to cluster A.
func (d *Demo) client(id string, opts ...kgo.Opt) (*kgo.Client, error) {
	a, _ := d.Addresses()
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(a), kgo.ClientID(id)}, opts...)...)
}
