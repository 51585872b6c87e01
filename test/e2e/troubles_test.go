//go:build e2e

package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// TestTroubleOfATopicStaysThere: copies that refuse, each for another reason.
// Every one is named with what would help; the others go on.
func TestTroubleOfATopicStaysThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := func(suffix string) string { return f.topic("test-topic-" + suffix) }
	prepare := func(suffix string, partitions int32, copyConfigs map[string]string) {
		f.primary.CreateTopic(t, topic(suffix), partitions, nil)
		if copyConfigs != nil {
			f.backup.CreateTopic(t, f.remote(topic(suffix)), 1, copyConfigs)
		}
	}
	prepare("good", 3, nil)
	prepare("narrow", 3, map[string]string{})
	prepare("small", 1, map[string]string{"max.message.bytes": "2000"})
	prepare("old", 1, map[string]string{"message.timestamp.before.max.ms": "3600000"})
	prepare("future", 1, nil)
	long := topic(strings.Repeat("x", 249-len(topic(""))))
	f.primary.CreateTopic(t, long, 1, nil)
	prepare("a.b", 1, nil)
	f.backup.CreateTopic(t, strings.ReplaceAll(f.remote(topic("a.b")), ".", "_"), 1, nil)

	record := func(suffix string, value []byte, at time.Time) []*kgo.Record {
		return []*kgo.Record{{Topic: topic(suffix), Value: value, Timestamp: at}}
	}
	noise := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	now := time.Now()
	f.produce(f.primary, topic("good"), 3, 300)
	f.produce(f.primary, topic("narrow"), 3, 300)
	f.primary.Produce(t, kafkatest.Messages(topic("small"), 1, 100), kgo.ProducerBatchCompression(kgo.NoCompression())) // one batch, too large
	f.primary.Produce(t, record("small", noise, now))
	f.primary.Produce(t, record("old", nil, now))
	f.primary.Produce(t, record("old", nil, now.AddDate(-1, 0, 0)))
	f.primary.Produce(t, record("future", nil, now.AddDate(10, 0, 0)))
	f.primary.Produce(t, []*kgo.Record{{Topic: long, Value: []byte("v")}, {Topic: topic("a.b"), Value: []byte("v")}})

	h := start(t, f.oneWay("sync.topic.configs.enabled = false"))
	for suffix, want := range map[string]int{"good": 300, "narrow": 300, "small": 100, "old": 1} {
		awaitCount(within(t, patience), t, f.backup, f.remote(topic(suffix)), want)
	}
	for _, words := range [][]string{
		{"parked", topic("small"), `"upstream":100`, "max.message.bytes = 2000"},
		{"parked", topic("old"), `"upstream":1`, "message.timestamp.before.max.ms = 3600000"},
		{"parked", topic("future"), now.AddDate(10, 0, 0).Format("2006-01-02"), "message.timestamp.after.max.ms"},
		{long, "Kafka allows 249"},
		{topic("a.b"), "differs", "only in . and _"},
	} {
		h.awaitLog(words...)
	}
	h.awaitState(f.flow(), "degraded")
	h.stop()
}
