//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// Groups of the newer protocol (KIP-848) are followed from the source, and moved on
// the target while they are empty.
func TestGroupsOfTheNewerProtocol(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, b, a, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1")
	topic, group := tr.topic("orders"), tr.alias+"-group"
	b.CreateTopic(t, topic, 1, nil)
	b.Produce(t, numbered(topic, 0, 50))
	newer := func(c *kafkatest.Cluster, topic string, count int) {
		t.Helper()
		_, err := kafkatest.Tool(within(t, patience), c.Version(), "ConsoleConsumer", "--bootstrap-server", c.Bootstrap(), "--topic", topic,
			"--group", group, "--consumer-property", "group.protocol=consumer", "--from-beginning", "--max-messages", fmt.Sprint(count))
		if err != nil {
			t.Fatal(err)
		}
	}
	newer(b, topic, 20)
	h := start(t, tr.file)
	await(t, "the group is on the target", func() string { return lacks(20, int(groupOffsets(t, a, group, tr.remote(topic))[0])) })
	h.stop()

	// The other way round: the group is of the newer protocol on the target.
	back := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1",
		identityPolicy, "topics = "+tr.alias+"-classic")
	classic := tr.alias + "-classic"
	a.CreateTopic(t, classic, 1, nil)
	a.Produce(t, numbered(classic, 0, 50))
	h = start(t, back.file)
	await(t, "the copy is there", func() string { return lacks(50, int(endOf(t, b, classic))) })
	newer(b, classic, 10)
	a.CommitGroup(t, group, classic, 30)
	await(t, "the group moves on the target", func() string {
		if at := groupOffsets(t, b, group, classic)[0]; at != 30 {
			return fmt.Sprintf("it stands at %d", at)
		}
		return ""
	})
	h.stop()
}

// Two processes share a flow: groups are exact also on partitions that the process
// which follows the groups does not copy itself.
func TestGroupsAreExactOverProcesses(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 1", "emit.heartbeats.enabled = false")
	const parts, rounds = 8, 12
	topic, group := tr.topic("orders"), tr.alias+"-group"
	a.CreateTopic(t, topic, parts, nil)
	first, second := tr.start(), tr.start()
	await(t, "both own lanes", func() string {
		if first.metric("heliograph_flow_lanes") > 0 && second.metric("heliograph_flow_lanes") > 0 {
			return ""
		}
		return "one owns all"
	})
	// A transaction a record: each takes two offsets on the source and one on the target.
	cl := a.Client(t, kgo.TransactionalID(topic))
	for n := range int64(rounds) {
		var records []*kgo.Record
		for p := range int32(parts) {
			r := numbered(topic, n, n+1)[0]
			r.Partition = p
			records = append(records, r)
		}
		if err := transact(t.Context(), cl, kgo.TryCommit, records...); err != nil {
			t.Fatal(err)
		}
	}
	at := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	places := make([]int64, parts)
	for p, n := range at {
		places[p] = 2 * n
	}
	a.CommitGroup(t, group, topic, places...)
	tr.standsAt(group, topic, at)
	first.stop()
	second.stop()
}
