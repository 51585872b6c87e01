//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// TestPartitionsAddedWhileProducing: the copy grows too, partition by partition,
// nothing is lost or moved, and groups are followed on the new partitions.
func TestPartitionsAddedWhileProducing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic("test-topic-1")
	f.primary.CreateTopic(t, topic, 3, nil)
	h := start(t, f.oneWay(groupSync))
	awaitTopic(t, f.backup, f.remote(topic), 3)

	var writer sync.WaitGroup
	stop := make(chan struct{})
	written := 0
	writer.Go(func() {
		cl := f.primary.Client(t)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := cl.ProduceSync(t.Context(), kafkatest.Messages(topic, 3, 10)...).FirstErr(); err != nil {
				t.Error(err)
				return
			}
			written += 30
		}
	})
	grow(t, f.primary, topic, 6)
	var fresh []*kgo.Record
	for _, r := range kafkatest.Messages(topic, 6, 50) {
		if r.Partition >= 3 {
			fresh = append(fresh, r)
		}
	}
	f.primary.Produce(t, fresh)
	awaitTopic(t, f.backup, f.remote(topic), 6)
	close(stop)
	writer.Wait()

	awaitCount(within(t, patience), t, f.backup, f.remote(topic), written+len(fresh))
	same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
	want := ends(t, f.primary, topic)
	f.primary.CommitGroup(t, f.group(), topic, want[0], want[1], want[2], want[3], want[4], want[5])
	await(t, "the group stands at the end of all six partitions", func() string {
		if at := groupOffsets(t, f.backup, f.group(), f.remote(topic)); !maps.Equal(at, want) {
			return fmt.Sprintf("it stands at %v, the ends are %v", at, want)
		}
		return ""
	})
	h.stop()
}

// grow adds partitions to a topic and waits until they can be written to.
func grow(t *testing.T, c *kafkatest.Cluster, topic string, to int) {
	t.Helper()
	answers, err := c.Admin(t).UpdatePartitions(t.Context(), to, topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitTopic(t, c, topic, to)
}

// TestBornWhileRunningFromLatest: with auto.offset.reset=latest, what is born
// while the flow runs is copied from its start: no record was there before it.
func TestBornWhileRunningFromLatest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old, born := f.topic("test-topic-1"), f.topic("test-topic-born")
	f.primary.CreateTopic(t, old, 1, nil)
	f.produce(f.primary, old, 1, 100)
	h := start(t, f.oneWay(f.from+".consumer.auto.offset.reset = latest"))
	await(t, "the old topic has its place", func() string {
		return lacks(1, int(h.metric("heliograph_flow_partitions", `state="running"`)))
	})
	f.primary.CreateTopic(t, born, 3, nil)
	f.produce(f.primary, born, 3, 30)
	grow(t, f.primary, old, 2)
	second := kafkatest.Messages(old, 2, 10)[10:]
	f.primary.Produce(t, second)

	awaitCount(within(t, patience), t, f.backup, f.remote(born), 30)
	same(t, kafkatest.Side{Cluster: f.primary, Topic: born}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(born)})
	awaitCount(within(t, patience), t, f.backup, f.remote(old), len(second))
	h.stop()
}
