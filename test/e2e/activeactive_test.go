//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// TestActiveActiveWithDotsInAliases: aliases of three parts as in MirrorMaker's
// guide, both ways, heartbeats too: no name gets two prefixes.
func TestActiveActiveWithDotsInAliases(t *testing.T) {
	t.Parallel()
	a, b := kafkatest.Pair(t)
	name := kafkatest.Name(t, "")
	f := &fixture{tb: t, primary: a, backup: b, from: "kafka-1.dc.one-" + name, to: "kafka-2.dc.two-" + name, name: name}
	topic := f.topic("test-topic-x.y_z")
	for _, c := range []*kafkatest.Cluster{a, b} {
		c.CreateTopic(t, topic, 2, nil)
		c.Produce(t, kafkatest.Messages(topic, 2, 10))
	}
	h := start(t, f.file(
		f.to+"->"+f.from+".enabled = true",
		"topics = .*"+name+".*, heartbeats",
	))
	awaitCount(within(t, patience), t, b, f.remote(topic), 20)
	awaitCount(within(t, patience), t, a, f.returned(topic), 20)
	// What comes later than the copies is looked at after they were found: two more topics go through.
	for _, c := range []*kafkatest.Cluster{a, b} {
		later := f.topic("test-topic-later")
		c.CreateTopic(t, later, 1, nil)
		c.Produce(t, []*kgo.Record{{Topic: later, Value: []byte("v")}})
	}
	awaitCount(within(t, patience), t, b, f.remote(f.topic("test-topic-later")), 1)
	awaitCount(within(t, patience), t, a, f.returned(f.topic("test-topic-later")), 1)
	h.stop()
	for c, own := range map[*kafkatest.Cluster]string{a: f.to, b: f.from} {
		var got []string
		for _, n := range c.TopicNames(t) {
			if strings.Contains(n, name) && !strings.HasPrefix(n, "mm2-") && !strings.HasSuffix(n, ".internal") {
				got = append(got, n)
			}
		}
		slices.Sort(got)
		want := []string{topic, f.topic("test-topic-later"), own + "." + topic, own + "." + f.topic("test-topic-later"), own + ".heartbeats"}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("cluster %s has %q, want %q", c.Name(), got, want)
		}
	}
}
