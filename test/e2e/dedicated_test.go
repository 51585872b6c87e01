//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"heliograph/internal/kafkatest"
)

// dedicated is the file of the specification's part 8.2, with aliases of the test.
func (f *fixture) dedicated(lines ...string) string {
	f.tb.Helper()
	all := []string{
		"clusters = " + f.from + ", " + f.to,
		f.from + ".bootstrap.servers = " + f.primary.Bootstrap(),
		f.to + ".bootstrap.servers = " + f.backup.Bootstrap(),
		"dedicated.mode.enable.internal.rest = false",
		"refresh.topics.interval.seconds = 1",
		f.flow() + ".enabled = true",
		f.flow() + ".topics = ^" + f.topic("test-topic-") + ".*",
		f.to + "->" + f.from + ".enabled = false",
		"replication.factor = 1",
		"checkpoints.topic.replication.factor = 1",
		"heartbeats.topic.replication.factor = 1",
		"offset.storage.replication.factor = 1",
		"status.storage.replication.factor = 1",
		"config.storage.replication.factor = 1",
	}
	return writeFile(f.tb, append(all, lines...)...)
}

// TestD1SingleNode: one process, one flow, a topic made while it runs.
func TestD1SingleNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := start(t, f.dedicated("offset-syncs.topic.replication.factor = 1", f.to+"->"+f.from+".emit.heartbeats.enabled = false"))
	heartbeats(t, f.backup, "heartbeats", f.from, f.to)
	topic := f.topic("test-topic-1")
	f.primary.CreateTopic(t, topic, 1, nil)
	awaitTopic(t, f.backup, f.remote(topic), 1)
	f.primary.Produce(t, kafkatest.Messages(topic, 1, 11))
	awaitCount(within(t, patience), t, f.backup, f.remote(topic), 11)
	h.awaitState(f.flow(), "running")
	h.stop()
}

// TestD2OffsetSyncsOff: without offset syncs there are no checkpoints, and the
// rest runs: the data of one direction and the heartbeats of both.
func TestD2OffsetSyncsOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	h := start(t, f.dedicated("emit.offset-syncs.enabled = false"))
	heartbeats(t, f.backup, "heartbeats", f.from, f.to)
	heartbeats(t, f.primary, "heartbeats", f.to, f.from)
	heartbeats(t, f.backup, f.from+".heartbeats", f.to, f.from)
	topic := f.topic("test-topic-1")
	f.primary.CreateTopic(t, topic, 1, nil)
	f.primary.Produce(t, kafkatest.Messages(topic, 1, 11))
	awaitTopic(t, f.backup, f.remote(topic), 1)
	awaitCount(within(t, patience), t, f.backup, f.remote(topic), 11)
	noTopics(t, f.primary, "mm2-offset-syncs."+f.to+".internal")
	h.awaitState(f.flow(), "running")
	h.awaitState(fmt.Sprintf("%s->%s", f.to, f.from), "running")
	h.stop()
}
