//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/mirror"
)

// The rows of the acceptance checklist (specification part 8.1) that are about
// topics and records. Groups are in rows_groups_test.go, settings in rows_configs_test.go.

// TestI1Replication replicates both ways between two clusters that know each other.
func TestI1Replication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic("test-topic-1")
	back := f.to + "->" + f.from
	f.primary.CreateTopic(t, topic, partitions, map[string]string{"cleanup.policy": "compact"})
	f.backup.CreateTopic(t, topic, partitions, nil)
	f.produce(f.primary, topic, partitions, 100)
	f.produce(f.backup, topic, partitions, 100)
	h := start(t, f.file(back+".enabled = true", "topics = heartbeats, "+f.topics()))

	awaitTopic(t, f.backup, f.remote(topic), partitions)
	awaitTopic(t, f.primary, f.returned(topic), partitions)
	awaitTopic(t, f.primary, "mm2-offset-syncs."+f.to+".internal", 1)
	if got := topicConfig(t, f.backup, f.remote(topic), "cleanup.policy"); got != "compact" {
		t.Errorf("cleanup.policy of the copy is %s", got)
	}
	for _, end := range []struct {
		c     *kafkatest.Cluster
		topic string
	}{{f.primary, topic}, {f.backup, f.remote(topic)}, {f.backup, topic}, {f.primary, f.returned(topic)}} {
		awaitCount(within(t, patience), t, end.c, end.topic, 100)
	}
	same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
	same(t, kafkatest.Side{Cluster: f.backup, Topic: topic}, kafkatest.Side{Cluster: f.primary, Topic: f.returned(topic)})

	settingsAtCreation(t, f)
	heartbeats(t, f.backup, "heartbeats", f.from, f.to)
	heartbeats(t, f.primary, "heartbeats", f.to, f.from)
	heartbeats(t, f.backup, f.from+".heartbeats", f.to, f.from)
	heartbeats(t, f.primary, f.to+".heartbeats", f.from, f.to)
	failOver(t, f, f.primary, f.backup, f.from, topic)
	failOver(t, f, f.backup, f.primary, f.to, topic)
	f.monotonic()
	bornLater(t, f)
	h.stop()
}

// settingsAtCreation: a new topic is made with the source's settings but for the excluded ones.
func settingsAtCreation(t *testing.T, f *fixture) {
	t.Helper()
	topic := f.topic("test-topic-with-config")
	f.primary.CreateTopic(t, topic, partitions, map[string]string{"delete.retention.ms": "1000", "retention.bytes": "1000"})
	awaitTopic(t, f.backup, f.remote(topic), partitions)
	if got := topicConfig(t, f.backup, f.remote(topic), "retention.bytes"); got != "1000" {
		t.Errorf("retention.bytes of the copy is %s", got)
	}
	if got := topicConfig(t, f.backup, f.remote(topic), "delete.retention.ms"); got == "1000" {
		t.Error("delete.retention.ms was copied though excluded")
	}
}

// bornLater makes a topic on each side while both flows run.
func bornLater(t *testing.T, f *fixture) {
	t.Helper()
	topic2, topic3 := f.topic("test-topic-2"), f.topic("test-topic-3")
	f.primary.CreateTopic(t, topic2, partitions, nil)
	f.backup.CreateTopic(t, topic3, partitions, nil)
	f.produce(f.primary, topic2, 1, 10)
	f.produce(f.backup, topic3, 1, 10)
	awaitTopic(t, f.backup, f.remote(topic2), partitions)
	awaitTopic(t, f.primary, f.returned(topic3), partitions)
	awaitCount(within(t, patience), t, f.backup, f.remote(topic2), 10)
	awaitCount(within(t, patience), t, f.primary, f.returned(topic3), 10)
}

// heartbeats waits for one of a pair's heartbeats in a topic.
func heartbeats(t *testing.T, c *kafkatest.Cluster, topic, source, target string) {
	t.Helper()
	await(t, fmt.Sprintf("a heartbeat %s->%s in %s on cluster %s", source, target, topic, c.Name()), func() string {
		if !slices.Contains(c.TopicNames(t), topic) {
			return "no topic"
		}
		for _, r := range c.ReadTopic(t, topic)[0] {
			beat, err := mirror.DecodeHeartbeat(r.Key, r.Value)
			if err != nil {
				return err.Error()
			}
			if beat.Source == mirror.ClusterAlias(source) && beat.Target == mirror.ClusterAlias(target) {
				return ""
			}
		}
		return "none"
	})
}

// failOver has a group read a topic on one cluster and goes on at the translated
// offsets on the other.
func failOver(t *testing.T, f *fixture, from, to *kafkatest.Cluster, alias, topic string) {
	t.Helper()
	group := f.group() + "-from-" + from.Name()
	consume(t, from, group, 100, topic)
	remote := alias + "." + topic
	offsets := map[int32]kgo.Offset{}
	await(t, "translated offsets of "+group+" for all partitions of "+remote, func() string {
		for _, c := range readCheckpoints(t, to, alias+".checkpoints.internal") {
			if c.Group == group && c.TopicPartition.Topic == remote {
				offsets[c.TopicPartition.Partition] = kgo.NewOffset().At(int64(c.Downstream))
				if c.Downstream <= 0 || c.Downstream > 100 {
					t.Fatalf("checkpoint %v", c)
				}
			}
		}
		return lacks(partitions, len(offsets))
	})
	// One more record in each partition is what a consumer finds there at last.
	last := kafkatest.Messages(topic, partitions, 1)
	for _, r := range last {
		r.Value = []byte("last")
	}
	from.Produce(t, last)
	cl := to.Client(t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{remote: offsets}))
	ctx := within(t, patience)
	for lasts, read := 0, 0; lasts < partitions; {
		records := cl.PollFetches(ctx).Records()
		if ctx.Err() != nil {
			t.Fatalf("%d of %d partitions read to their end from translated offsets", lasts, partitions)
		}
		for _, r := range records {
			if read++; string(r.Value) == "last" {
				lasts++
			}
		}
		if read > 100 {
			t.Fatalf("%d records read again", read-lasts)
		}
	}
}

// TestI2EmptyPartition: a partition without records has no checkpoint, and that
// does not keep a group from moving to backup. The group is Java's consumer,
// because that one commits its place in an empty partition too.
func TestI2EmptyPartition(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic("test-topic-with-empty-partition")
		f.primary.CreateTopic(t, topic, partitions, nil)
		f.produce(f.primary, topic, 9, 90)
		consume(t, f.primary, f.group(), 90, topic)
		start(t, f.oneWay())
		awaitCount(within(t, patience), t, f.backup, f.remote(topic), 90)
		await(t, "checkpoints of the nine partitions", func() string {
			return lacks(9, len(f.translated(f.remote(topic))))
		})
		out, err := kafkatest.Tool(t.Context(), f.backup.Version(), "ConsoleConsumer", "--bootstrap-server", f.backup.Bootstrap(),
			"--topic", f.remote(topic), "--group", f.group(), "--from-beginning", "--max-messages", "90", "--timeout-ms", "60000")
		if err != nil {
			t.Fatal(err)
		}
		if read := strings.Count(out, "\n"); read != 90 {
			t.Errorf("the group read %d records on backup, want 90", read)
		}
		if at, ok := groupOffsets(t, f.backup, f.group(), f.remote(topic))[9]; !ok || at != 0 {
			t.Errorf("the empty partition's offset is %d (%t), want 0", at, ok)
		}
	})
}

// lacks says how many of so many are there, or nothing when all are.
func lacks(want, have int) string {
	if have >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d", have, want)
}

// TestI5NoOffsetSyncs: data flows without any offset syncs topic.
func TestI5NoOffsetSyncs(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic1()
		start(t, f.withoutSyncs())
		f.produce(f.primary, topic, partitions, 100)
		awaitTopic(t, f.backup, f.remote(topic), partitions)
		awaitCount(within(t, patience), t, f.backup, f.remote(topic), 100)
		heartbeats(t, f.backup, "heartbeats", f.from, f.to)
		noTopics(t, f.primary, "mm2-offset-syncs."+f.to+".internal")
		noTopics(t, f.backup, "mm2-offset-syncs."+f.from+".internal")
	})
}

func noTopics(t *testing.T, c *kafkatest.Cluster, topics ...string) {
	t.Helper()
	names := c.TopicNames(t)
	for _, topic := range topics {
		if slices.Contains(names, topic) {
			t.Errorf("%s is on cluster %s", topic, c.Name())
		}
	}
}

// TestI6SyncsOnTarget: with offset-syncs.topic.location=target nothing is
// written to the source and checkpoints work.
func TestI6SyncsOnTarget(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic1()
		start(t, f.oneWay(f.flow()+".offset-syncs.topic.location = target"))
		awaitTopic(t, f.backup, "mm2-offset-syncs."+f.from+".internal", 1)
		f.produce(f.primary, topic, partitions, 100)
		consume(t, f.primary, f.group(), 100, topic)
		await(t, "a checkpoint of "+f.remote(topic), func() string {
			return lacks(1, len(f.translated(f.remote(topic))))
		})
		f.monotonic()
		noTopics(t, f.primary, "mm2-offset-syncs."+f.from+".internal", "mm2-offset-syncs."+f.to+".internal")
	})
}

// TestI13FromLatest: with auto.offset.reset=latest what was there before stays behind.
func TestI13FromLatest(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic1()
		f.produce(f.primary, topic, partitions, 100)
		h := start(t, f.oneWay(f.flow()+".offset-syncs.topic.location = target", f.from+".consumer.auto.offset.reset = latest"))
		awaitTopic(t, f.backup, f.remote(topic), partitions)
		// The flow has its place in a partition once it shows the source's end.
		await(t, "all partitions have their place", func() string {
			return lacks(partitions, int(h.metric("heliograph_flow_partitions", `state="running"`)))
		})
		fresh := kafkatest.Messages(topic, partitions, 10)
		for _, r := range fresh {
			r.Value = append([]byte("fresh "), r.Value...)
		}
		f.primary.Produce(t, fresh)
		for p, records := range awaitCount(within(t, patience), t, f.backup, f.remote(topic), 100) {
			if len(records) != 10 || slices.ContainsFunc(records, func(r kafka.Record) bool { return string(r.Value[:6]) != "fresh " }) {
				t.Errorf("partition %d: %d records, want the 10 fresh ones", p, len(records))
			}
		}
		h.stop()
	})
}
