//go:build e2e

package e2e

import (
	"context"
	bits "encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// Outages that need clusters of their own: a full disk, a login that is taken
// away, addresses that change, an upgrade, hours without the target. The process
// is the same before and after, and nothing is lost or doubled.

// TestTargetDiskFull fills the target's disk: the broker ends itself, as Kafka
// does, and comes back once there is space.
func TestTargetDiskFull(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	b, err := kafkatest.Launch(t.Context(), kafkatest.ClusterOptions{
		Name: "full", Version: kafkatest.ReleaseTarget, Disk: 96 << 20,
		Properties: map[string]string{"log.segment.bytes": "1048576", "log.index.size.max.bytes": "65536"},
	})
	if errors.Is(err, kafkatest.ErrNoMount) && os.Geteuid() != 0 {
		t.Skip(err) // by root, as in CI, it is a failure
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.ShowOnFailure(t)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	broker := b.Broker(1)
	if err := broker.FillDisk(); err != nil {
		t.Fatal(err)
	}
	await(t, "the broker ends for want of space", func() string {
		if broker.Process().Running() {
			return "it runs"
		}
		return ""
	})
	p.awaitState(tr.flow(), "waiting")
	if err := broker.FreeDisk(); err != nil {
		t.Fatal(err)
	}
	restart(t, broker)
	tr.moves(l)
	tr.equal(l)
	p.stop()
}

// TestLoginTakenAway deletes the flow's user on the target while records move,
// and makes it again.
func TestLoginTakenAway(t *testing.T) {
	t.Parallel()
	const user, password = "mover", "mover-secret"
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "logins", Version: kafkatest.ReleaseTarget, Listeners: []kafkatest.Protocol{kafkatest.SASLPlaintext}, Proxied: true,
		Users: map[string]string{user: password},
	})
	adm := b.Admin(t)
	tr := newTrial(t, a, b)
	tr.append(prefixed(tr.to+".", b.ClientProperties(kafkatest.SASLPlaintext, "SCRAM-SHA-512", user))...)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	altered, err := adm.AlterUserSCRAMs(t.Context(), []kadm.DeleteSCRAM{{User: user, Mechanism: kadm.ScramSha512}}, nil)
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Broker(1).Proxy().Reset() // sessions outlive their user
	await(t, "the flow says that its login is refused", func() string {
		if now := p.part(tr.flow()); now.State != "waiting" || !strings.Contains(now.Reason, "SASL_AUTHENTICATION_FAILED") {
			return now.State + ": " + now.Reason
		}
		return ""
	})
	if strings.Contains(p.Log(), password) {
		t.Error("the log holds the password")
	}
	altered, err = adm.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	tr.moves(l)
	tr.equal(l)
	p.stop()
}

// TestAddressesReplaced moves the only broker of either side to an address that
// no client has heard of. Only the bootstrap address is what it was.
func TestAddressesReplaced(t *testing.T) {
	t.Parallel()
	a := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "moving-A", Version: kafkatest.ReleaseSource, Proxied: true})
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "moving-B", Version: kafkatest.ReleaseTarget, Proxied: true})
	tr := newTrial(t, a, b)
	// A name that stays, as a load balancer's: it leads to whatever the broker's
	// client listener is behind.
	stays := func(c *kafkatest.Cluster) string {
		p, err := kafkatest.NewProxy(t.Context(), c.Broker(1).Listening())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return p.Addr()
	}
	tr.append(tr.alias+".bootstrap.servers = "+stays(a), tr.to+".bootstrap.servers = "+stays(b))
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	l := startLoad(t, a, topic, 4, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	for _, c := range []*kafkatest.Cluster{b, a} {
		if err := c.Broker(1).Readdress(t.Context()); err != nil {
			t.Fatal(err)
		}
		tr.moves(l)
	}
	tr.equal(l)
	p.stop()
}

// TestRollingUpgradeOfTheTarget takes a target of three brokers from one release
// to the next under load, its features too, and kills the program at the end.
func TestRollingUpgradeOfTheTarget(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "upgrade", Version: kafkatest.ReleaseSource, Brokers: 3,
		Properties: map[string]string{"default.replication.factor": "3", "min.insync.replicas": "2", "broker.session.timeout.ms": "6000"},
	})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 6, nil)
	l := startLoad(t, a, topic, 6, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	if err := b.UpgradeController(t.Context(), kafkatest.ReleaseTarget); err != nil {
		t.Fatal(err)
	}
	for _, broker := range b.Brokers() {
		if err := broker.Upgrade(t.Context(), kafkatest.ReleaseTarget); err != nil {
			t.Fatal(err)
		}
		awaitInSync(t, b, tr.remote(topic), 3)
	}
	tr.moves(l)
	if err := b.UpgradeFeatures(t.Context(), kafkatest.ReleaseTarget); err != nil {
		t.Fatal(err)
	}
	tr.moves(l)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	p = tr.start()
	tr.moves(l)
	tr.equal(l)
	p.stop()
}

// awaitInSync waits until all replicas of a topic are in sync.
func awaitInSync(t *testing.T, c *kafkatest.Cluster, topic string, replicas int) {
	t.Helper()
	adm := c.Admin(t)
	await(t, "the replicas of "+topic+" are in sync", func() string {
		topics, err := adm.ListTopics(t.Context(), topic)
		if err != nil {
			return err.Error()
		}
		for _, p := range topics[topic].Partitions {
			if len(p.ISR) < replicas {
				return fmt.Sprintf("partition %d has %d", p.Partition, len(p.ISR))
			}
		}
		return ""
	})
}

// bystander is another client of the target that writes small records and minds
// how long each takes. What it sees is told, not judged: machines differ.
type bystander struct {
	tb   testing.TB
	mu   sync.Mutex
	took []time.Duration
}

func startBystander(tb testing.TB, c *kafkatest.Cluster) *bystander {
	tb.Helper()
	topic := kafkatest.Name(tb, "bystander")
	c.CreateTopic(tb, topic, 1, nil)
	cl := c.Client(tb, kgo.ProducerLinger(0))
	b := &bystander{tb: tb}
	ctx, stop := context.WithCancel(tb.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: make([]byte, 100)}).FirstErr(); err == nil {
				b.mu.Lock()
				b.took = append(b.took, time.Since(began))
				b.mu.Unlock()
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	tb.Cleanup(func() { stop(); wg.Wait() })
	return b
}

// p99 waits for at least so many records, tells their p99, and begins anew.
func (b *bystander) p99(least int) time.Duration {
	b.tb.Helper()
	var took []time.Duration
	await(b.tb, "the bystander has written", func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.took) == 0 || len(b.took) < least {
			return fmt.Sprintf("%d records", len(b.took))
		}
		took, b.took = b.took, nil
		return ""
	})
	slices.Sort(took)
	return took[len(took)*99/100].Round(100 * time.Microsecond)
}

// TestMemoryWhileTheTargetIsDown lets the source run far ahead of a target that
// is away: what is held in memory stays within its bound, and nothing is missing
// afterwards.
func TestMemoryWhileTheTargetIsDown(t *testing.T) {
	t.Parallel()
	const budget, generous, records, size = 16 << 20, 160 << 20, 120_000, 1000
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "away", Version: kafkatest.ReleaseTarget, Proxied: true})
	tr := newTrial(t, a, b, fmt.Sprintf("heliograph.memory.bytes = %d", budget))
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 4, nil)
	small := kgo.ProducerBatchMaxBytes(512 << 10)
	noise := seeded(t)
	batch := func(n int) []*kgo.Record {
		out := kafkatest.Messages(topic, 4, n/4)
		for _, r := range out {
			for len(r.Value) < size { // nothing that compresses
				r.Value = bits.LittleEndian.AppendUint64(r.Value, noise.Uint64())
			}
		}
		return out
	}
	a.Produce(t, batch(100), small)
	p := tr.start()
	b.AwaitRecords(within(t, patience), t, tr.remote(topic), 100)
	b.Broker(1).Proxy().Cut()
	most := 0.0
	for range 10 {
		a.Produce(t, batch(records/10), small)
		most = max(most, p.metric("heliograph_memory_used_bytes"))
	}
	await(t, "the flow says that it waits", func() string {
		most = max(most, p.metric("heliograph_memory_used_bytes"))
		if why := p.part(tr.flow()); why.State != "waiting" {
			return why.State
		}
		return ""
	})
	if most > budget {
		t.Errorf("%.0f bytes were held, the bound is %d", most, budget)
	}
	others := startBystander(t, b)
	calm := others.p99(50)
	b.Broker(1).Proxy().Heal()
	b.AwaitRecords(within(t, 2*patience), t, tr.remote(topic), records+100)
	t.Logf("produce p99 of another client on the target: %v, while the flow catches up %v", calm, others.p99(0))
	same(t, kafkatest.Side{Cluster: a, Topic: topic}, kafkatest.Side{Cluster: b, Topic: tr.remote(topic)})
	if peak := p.PeakMemory(); peak > generous {
		t.Errorf("the process took %d MiB at its peak", peak>>20)
	} else {
		t.Logf("at most %.1f MiB of record data held, %d MiB in all", most/(1<<20), peak>>20)
	}
	p.stop()
}
