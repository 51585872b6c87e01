//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/mirror"
)

// partitions is how many each topic of the fixture has.
const partitions = 10

// fixture is the setting of the specification's part 8.1 for one test. All
// tests share the two clusters, so aliases, topics and groups carry the test's
// name: none sees another's topics, positions or groups.
type fixture struct {
	tb              testing.TB
	primary, backup *kafkatest.Cluster
	from, to        string // the clusters' aliases
	name            string // what everything of the test starts with
	identity        bool
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	a, b := kafkatest.Pair(tb)
	name := kafkatest.Name(tb, "")
	return &fixture{tb: tb, primary: a, backup: b, from: "primary-" + name, to: "backup-" + name, name: name}
}

// namings runs a row of the checklist under both naming policies, side by side.
func namings(t *testing.T, row func(t *testing.T, f *fixture)) {
	t.Parallel()
	for _, naming := range []string{"default", "identity"} {
		t.Run(naming, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.identity = naming == "identity"
			row(t, f)
		})
	}
}

// topic is the test's own topic of a name.
func (f *fixture) topic(suffix string) string { return f.name + "-" + suffix }

// group is the test's own group.
func (f *fixture) group() string { return "consumer-group-" + f.name }

// remote is a topic of primary as it is called on backup.
func (f *fixture) remote(topic string) string {
	if f.identity {
		return topic
	}
	return f.from + "." + topic
}

// returned is a topic of backup as it is called on primary.
func (f *fixture) returned(topic string) string { return f.to + "." + topic }

// flow is the name of the flow from primary to backup.
func (f *fixture) flow() string { return f.from + "->" + f.to }

// oneWay is the fixture's file with only primary->backup; more lines are added
// at its end and win.
func (f *fixture) oneWay(lines ...string) string {
	return f.file(append([]string{f.to + "->" + f.from + ".emit.heartbeats.enabled = false"}, lines...)...)
}

// file is the fixture's file. It copies heartbeats only where topics says so:
// two tests' flows in opposite directions would otherwise hand each other's
// heartbeats topics to and fro under ever longer names.
func (f *fixture) file(lines ...string) string {
	f.tb.Helper()
	all := []string{
		"clusters = " + f.from + ", " + f.to,
		f.from + ".bootstrap.servers = " + f.primary.Bootstrap(),
		f.to + ".bootstrap.servers = " + f.backup.Bootstrap(),
		f.flow() + ".enabled = true",
		"heartbeats.replication.enabled = false",
		"topics = " + f.topics(),
		"groups = " + f.group() + ".*",
		"sync.topic.acls.enabled = false",
		"emit.checkpoints.interval.seconds = 1",
		"emit.heartbeats.interval.seconds = 1",
		"refresh.topics.interval.seconds = 1",
		"refresh.groups.interval.seconds = 1",
		"sync.topic.configs.interval.seconds = 1",
		`config.properties.exclude = delete\\.retention\\..*`,
		"replication.factor = 1",
		"checkpoints.topic.replication.factor = 1",
		"heartbeats.topic.replication.factor = 1",
		"offset-syncs.topic.replication.factor = 1",
		"offset.storage.replication.factor = 1",
		"status.storage.replication.factor = 1",
		"config.storage.replication.factor = 1",
		f.from + ".offset.flush.interval.ms = 5000",
		f.to + ".offset.flush.interval.ms = 5000",
	}
	if f.identity {
		all = append(all, "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
	}
	return writeFile(f.tb, append(all, lines...)...)
}

// withoutSyncs is the fixture's one-way file with offset syncs switched off.
// MirrorMaker refuses any other key about them then, so none is left.
func (f *fixture) withoutSyncs() string {
	f.tb.Helper()
	text, err := os.ReadFile(f.oneWay("emit.offset-syncs.enabled = false"))
	if err != nil {
		f.tb.Fatal(err)
	}
	return writeFile(f.tb, slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "offset-syncs")
	})...)
}

// topics are the fixture's topics as a file names them.
func (f *fixture) topics() string {
	return fmt.Sprintf("%[1]s-test-topic-.*, %[2]s.%[1]s-test-topic-.*, %[3]s.%[1]s-test-topic-.*", f.name, f.from, f.to)
}

// topic1 makes the fixture's first topic on primary.
func (f *fixture) topic1() string {
	f.tb.Helper()
	topic := f.topic("test-topic-1")
	f.primary.CreateTopic(f.tb, topic, partitions, nil)
	return topic
}

// produce writes count records, spread evenly over the partitions of a topic.
func (f *fixture) produce(c *kafkatest.Cluster, topic string, over int32, count int) {
	f.tb.Helper()
	c.Produce(f.tb, kafkatest.Messages(topic, over, count/int(over)))
}

// consume reads a group's next records until it has count of them, commits what
// it has read and leaves the group.
func consume(tb testing.TB, c *kafkatest.Cluster, group string, count int, topics ...string) {
	tb.Helper()
	consumeUntil(tb, c, group, topics, func(*kgo.Record) bool {
		count--
		return count == 0
	})
}

// consumeUntil reads a group's next records until one of them is the last one.
func consumeUntil(tb testing.TB, c *kafkatest.Cluster, group string, topics []string, last func(*kgo.Record) bool) {
	tb.Helper()
	ctx := within(tb, patience)
	cl, err := c.Open(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(30*time.Second),
	)
	if err != nil {
		tb.Fatal(err)
	}
	defer cl.Close()
	var records []*kgo.Record
	for done := false; !done; {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			tb.Fatalf("group %s on cluster %s: %d records of %v: %v", group, c.Name(), len(records), topics, err)
		}
		for _, r := range fetches.Records() {
			records = append(records, r)
			done = last(r) || done
		}
	}
	if err := cl.CommitRecords(ctx, records...); err != nil {
		tb.Fatalf("group %s on cluster %s: commit: %v", group, c.Name(), err)
	}
	if err := cl.LeaveGroupContext(ctx); err != nil {
		tb.Fatalf("group %s on cluster %s: leave: %v", group, c.Name(), err)
	}
}

// ends are the log ends of a topic by partition.
func ends(tb testing.TB, c *kafkatest.Cluster, topic string) map[int32]int64 {
	tb.Helper()
	listed, err := c.Admin(tb).ListEndOffsets(tb.Context(), topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		tb.Fatalf("ends of %s on cluster %s: %v", topic, c.Name(), err)
	}
	out := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out
}

// fullySynced waits until backup holds count records of every topic, and the
// group's offsets there are less than lag records behind the last one of each
// partition, and never ahead of the end.
func (f *fixture) fullySynced(count, lag int, topics ...string) {
	f.tb.Helper()
	for _, topic := range topics {
		remote := f.remote(topic)
		lasts := map[int32]int64{}
		for p, records := range f.backup.AwaitRecords(within(f.tb, patience), f.tb, remote, count) {
			if len(records) > 0 {
				lasts[p] = records[len(records)-1].Offset
			}
		}
		await(f.tb, "group "+f.group()+" follows "+remote, func() string {
			committed, end := groupOffsets(f.tb, f.backup, f.group(), remote), ends(f.tb, f.backup, remote)
			for p, last := range lasts {
				at, ok := committed[p]
				switch {
				case !ok:
					return fmt.Sprintf("partition %d has no offset", p)
				case at <= last-int64(lag):
					return fmt.Sprintf("partition %d stands at %d, the last record at %d", p, at, last)
				case at > end[p]:
					f.tb.Fatalf("%s-%d: the group stands at %d beyond the end %d", remote, p, at, end[p])
				}
			}
			return ""
		})
	}
}

// checkpoints are all records of the flow's checkpoints topic on backup, in order.
func (f *fixture) checkpoints() []mirror.Checkpoint {
	f.tb.Helper()
	return readCheckpoints(f.tb, f.backup, f.from+".checkpoints.internal")
}

func readCheckpoints(tb testing.TB, c *kafkatest.Cluster, topic string) []mirror.Checkpoint {
	tb.Helper()
	if !slices.Contains(c.TopicNames(tb), topic) {
		return nil
	}
	var out []mirror.Checkpoint
	for _, r := range c.ReadTopic(tb, topic)[0] {
		checkpoint, err := mirror.DecodeCheckpoint(r.Key, r.Value)
		if err != nil {
			tb.Fatalf("%s offset %d: %v", topic, r.Offset, err)
		}
		out = append(out, checkpoint)
	}
	return out
}

// translated is what MirrorMaker's client library answers for a group: the last
// checkpoint of each partition of a remote topic.
func (f *fixture) translated(remote string) map[int32]mirror.Checkpoint {
	f.tb.Helper()
	out := map[int32]mirror.Checkpoint{}
	for _, c := range f.checkpoints() {
		if c.Group == f.group() && c.TopicPartition.Topic == remote {
			out[c.TopicPartition.Partition] = c
		}
	}
	return out
}

// monotonic checks that no checkpoint goes back behind an earlier one.
func (f *fixture) monotonic() {
	f.tb.Helper()
	type key struct {
		group string
		kafka.TopicPartition
	}
	last := map[key]mirror.DownstreamOffset{}
	for _, c := range f.checkpoints() {
		k := key{c.Group, c.TopicPartition}
		if before, ok := last[k]; ok && c.Downstream < before {
			f.tb.Errorf("checkpoint of %v went from %d back to %d", k, before, c.Downstream)
		}
		last[k] = c.Downstream
	}
}

// awaitTopic waits until a topic exists and all its partitions have leaders.
func awaitTopic(tb testing.TB, c *kafkatest.Cluster, topic string, partitions int) {
	tb.Helper()
	adm := c.Admin(tb)
	await(tb, fmt.Sprintf("%s with %d partitions on cluster %s", topic, partitions, c.Name()), func() string {
		topics, err := adm.ListTopics(tb.Context(), topic)
		if err != nil {
			return err.Error()
		}
		led := 0
		for _, p := range topics[topic].Partitions {
			if p.Err == nil && p.Leader >= 0 {
				led++
			}
		}
		if led != partitions {
			return fmt.Sprintf("%d partitions have leaders", led)
		}
		return ""
	})
}

// awaitTopicConfig waits until a topic's setting has a value.
func awaitTopicConfig(tb testing.TB, c *kafkatest.Cluster, topic, key, want string) {
	tb.Helper()
	await(tb, fmt.Sprintf("%s of %s on cluster %s is %s", key, topic, c.Name(), want), func() string {
		if got := topicConfig(tb, c, topic, key); got != want {
			return "it is " + got
		}
		return ""
	})
}

func topicConfig(tb testing.TB, c *kafkatest.Cluster, topic, key string) string {
	tb.Helper()
	all, err := c.Admin(tb).DescribeTopicConfigs(tb.Context(), topic)
	if err != nil {
		tb.Fatal(err)
	}
	for _, rc := range all {
		if rc.Err != nil {
			tb.Fatalf("settings of %s on cluster %s: %v", topic, c.Name(), rc.Err)
		}
		for _, entry := range rc.Configs {
			if entry.Key == key {
				return entry.MaybeValue()
			}
		}
	}
	return ""
}

// setTopicConfig sets a topic's settings; an empty value removes one.
func setTopicConfig(tb testing.TB, c *kafkatest.Cluster, topic string, settings map[string]string) {
	tb.Helper()
	var changes []kadm.AlterConfig
	for key, value := range settings {
		if value == "" {
			changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
			continue
		}
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value})
	}
	answers, err := c.Admin(tb).AlterTopicConfigs(tb.Context(), changes, topic)
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range answers {
		if a.Err != nil {
			tb.Fatalf("settings of %s on cluster %s: %v", topic, c.Name(), a.Err)
		}
	}
}

// awaitCount waits until a topic holds so many records and checks that it holds no more.
func awaitCount(ctx context.Context, tb testing.TB, c *kafkatest.Cluster, topic string, want int) map[int32][]kafka.Record {
	tb.Helper()
	records := c.AwaitRecords(ctx, tb, topic, want)
	if got := countRecords(records); got != want {
		tb.Fatalf("%s on cluster %s holds %d records, want %d", topic, c.Name(), got, want)
	}
	return records
}

func countRecords(records map[int32][]kafka.Record) int {
	n := 0
	for _, list := range records {
		n += len(list)
	}
	return n
}

// same checks that two topics hold the same records in the same order.
func same(tb testing.TB, source, target kafkatest.Side) {
	tb.Helper()
	report, err := kafkatest.Compare(tb.Context(), source, target)
	if err != nil {
		tb.Fatal(err)
	}
	if !report.Equal() {
		tb.Fatal(report)
	}
}

// groupOffsets is what a group has committed on a topic. A cluster that has had
// no group yet takes a moment to answer.
func groupOffsets(tb testing.TB, c *kafkatest.Cluster, group, topic string) map[int32]int64 {
	tb.Helper()
	out := map[int32]int64{}
	adm := c.Admin(tb)
	await(tb, "offsets of group "+group+" on cluster "+c.Name(), func() string {
		offsets, err := adm.FetchOffsets(tb.Context(), group)
		if err == nil {
			err = offsets.Error()
		}
		if err != nil {
			return err.Error()
		}
		for _, o := range offsets.Sorted() {
			if o.Topic == topic {
				out[o.Partition] = o.At
			}
		}
		return ""
	})
	return out
}
