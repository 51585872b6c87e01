//go:build e2e

package e2e

import (
	"testing"

	"heliograph/internal/kafkatest"
)

// The rows of the acceptance checklist about topics' settings. Retention that is
// lowered is held back by default; off is what MirrorMaker does.
const applyAtOnce = "heliograph.retention.hold.hours = off"

// TestI10ConfigSync: what an operator changes on a copy goes back to the source's
// value, except what is excluded.
func TestI10ConfigSync(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic("test-topic-with-config")
		f.primary.CreateTopic(t, topic, partitions, map[string]string{"delete.retention.ms": "1000", "retention.bytes": "1000"})
		start(t, f.oneWay(applyAtOnce))
		awaitTopic(t, f.backup, f.remote(topic), partitions)
		overrideRetention(t, f.backup, f.remote(topic))
		awaitTopicConfig(t, f.backup, f.remote(topic), "retention.bytes", "1000")
		if got := topicConfig(t, f.backup, f.remote(topic), "delete.retention.ms"); got != "2000" {
			t.Errorf("delete.retention.ms is %s though excluded", got)
		}
	})
}

// overrideRetention changes an excluded setting and one that is synced on a copy,
// in one request, and returns when the change was seen.
func overrideRetention(t *testing.T, c *kafkatest.Cluster, topic string) {
	t.Helper()
	setTopicConfig(t, c, topic, map[string]string{"delete.retention.ms": "2000", "retention.bytes": "2000"})
	awaitTopicConfig(t, c, topic, "delete.retention.ms", "2000")
}

// TestI11DefaultsFromSource: with use.defaults.from=source the source's defaults are copied.
func TestI11DefaultsFromSource(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic("test-topic-with-config")
		f.primary.CreateTopic(t, topic, partitions, nil)
		start(t, f.oneWay(applyAtOnce, f.flow()+".use.defaults.from = source"))
		awaitTopic(t, f.backup, f.remote(topic), partitions)
		overrideRetention(t, f.backup, f.remote(topic))
		awaitTopicConfig(t, f.backup, f.remote(topic), "retention.bytes", "-1")
		if got := topicConfig(t, f.backup, f.remote(topic), "delete.retention.ms"); got != "2000" {
			t.Errorf("delete.retention.ms is %s though excluded", got)
		}
		if got := topicConfig(t, f.primary, topic, "retention.bytes"); got != "-1" {
			t.Errorf("retention.bytes of the source is %s", got)
		}
	})
}

// TestI12DefaultsFromTarget: a setting that the source gives up goes back to the target's default.
func TestI12DefaultsFromTarget(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic := f.topic("test-topic-with-config")
		f.primary.CreateTopic(t, topic, partitions, map[string]string{"retention.bytes": "1000"})
		start(t, f.oneWay(applyAtOnce))
		awaitTopic(t, f.backup, f.remote(topic), partitions)
		awaitTopicConfig(t, f.backup, f.remote(topic), "retention.bytes", "1000")
		setTopicConfig(t, f.primary, topic, map[string]string{"retention.bytes": ""})
		awaitTopicConfig(t, f.backup, f.remote(topic), "retention.bytes", "-1")
	})
}

// TestRetentionLoweredOnSourceIsHeld: a slip on the source must not empty the copy.
func TestRetentionLoweredOnSourceIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic("test-topic-1")
	f.primary.CreateTopic(t, topic, 1, map[string]string{"retention.ms": "604800000", "max.message.bytes": "500000"})
	h := start(t, f.oneWay())
	awaitTopic(t, f.backup, f.remote(topic), 1)
	setTopicConfig(t, f.primary, topic, map[string]string{"retention.ms": "1000", "max.message.bytes": "600000"})
	h.awaitLog("held", f.remote(topic), "retention.ms")
	awaitTopicConfig(t, f.backup, f.remote(topic), "max.message.bytes", "600000")
	if got := topicConfig(t, f.backup, f.remote(topic), "retention.ms"); got != "604800000" {
		t.Errorf("retention.ms of the copy is %s", got)
	}
}
