//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

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
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		var records []*kgo.Record
		for p := range int32(parts) {
			value := make([]byte, digits)
			putNumber(value, n)
			records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: value})
		}
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	at := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	places := make([]int64, parts)
	for p, n := range at {
		places[p] = 2 * n
	}
	a.CommitGroup(t, group, topic, places...)
	remote := tr.remote(topic)
	await(t, "the group stands at the same records", func() string {
		offsets := groupOffsets(t, b, group, remote)
		for p, want := range at {
			there, ok := offsets[int32(p)]
			if !ok {
				return fmt.Sprintf("partition %d has no offset", p)
			}
			if got := tr.numberAt(remote, int32(p), there); got != want {
				return fmt.Sprintf("partition %d stands at record %d, want %d", p, got, want)
			}
		}
		return ""
	})
	first.stop()
	second.stop()
}

// Thousands of groups on a thousand partitions, on real brokers. It measures, and
// runs where longer runs were asked for; docs/benchmarks.md has what it said.
func TestThousandsOfGroupsOnBrokers(t *testing.T) {
	if !long() {
		t.Skip("HELIOGRAPH_LONG is not set")
	}
	const groups, parts, each = 4000, 1000, 5
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 60")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, parts, nil)
	a.Produce(t, kafkatest.Messages(topic, parts, 10))
	name := func(g int) string { return fmt.Sprintf("%s-%04d", tr.alias, g) }
	commit := func(c *kafkatest.Cluster, g int, at int64) {
		var all kadm.Offsets
		for i := range each {
			all.Add(kadm.Offset{Topic: topic, Partition: int32((g*each + i) % parts), At: at, LeaderEpoch: -1})
		}
		resp, err := c.Admin(t).CommitOffsets(t.Context(), name(g), all)
		if err == nil {
			err = resp.Error()
		}
		if err != nil {
			t.Error(err)
		}
	}
	var work errgroup.Group
	work.SetLimit(8)
	for g := range groups {
		work.Go(func() error { commit(a, g, int64(g%10)); return nil })
	}
	_ = work.Wait()
	h := start(t, tr.file)
	awaitWithin(t, 3*patience, "all is copied", func() string {
		return lacks(parts*10, int(h.metric("heliograph_partition_records_total")))
	})
	began := time.Now()
	exact := func(want func(g int) int64) int {
		names := make([]string, groups)
		for g := range names {
			names[g] = name(g)
		}
		n := 0
		for g, r := range b.Admin(t).FetchManyOffsets(t.Context(), names...) {
			var index int
			_, _ = fmt.Sscanf(strings.TrimPrefix(g, tr.alias+"-"), "%d", &index)
			ok := 0
			for _, o := range r.Fetched.Sorted() {
				if o.At == want(index) {
					ok++
				}
			}
			if ok == each {
				n++
			}
		}
		return n
	}
	awaitWithin(t, 3*patience, "all groups stand on the target", func() string { return lacks(groups, exact(func(g int) int64 { return int64(g % 10) })) })
	t.Logf("%d of %d groups exact %s after the copy, interval 60s; CPU %s", groups, groups, time.Since(began).Round(100*time.Millisecond), h.CPU().Round(100*time.Millisecond))
	h.stop()

	// One second by choice: how long a commit takes to the target.
	tr.append("sync.group.offsets.interval.seconds = 1")
	h = start(t, tr.file)
	h.awaitState(tr.flow(), "running")
	cpu, since := h.CPU(), time.Now()
	for round := range 20 {
		for g := round; g < groups; g += groups / 10 {
			commit(a, g, int64((g+round)%10))
		}
		time.Sleep(time.Second)
	}
	t.Logf("interval 1s, ten of %d groups move a second: at most %.2fs (median), %.2fs (99th percentile); %.1f%% of a core",
		groups, h.metric("heliograph_flow_group_sync_seconds", `quantile="0.5"`), h.metric("heliograph_flow_group_sync_seconds", `quantile="0.99"`),
		100*(h.CPU()-cpu).Seconds()/time.Since(since).Seconds())
	h.stop()
}
