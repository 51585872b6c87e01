//go:build e2e && long

package e2e

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"heliograph/internal/kafkatest"
)

// What the end of an outage costs the target's other clients: thousands of
// partitions go on at once, each with records that have waited. Heliograph first,
// then Java MirrorMaker with topics of its own, on the same brokers. It measures;
// docs/reliability.md has what it said.
func TestThousandsOfPartitionsGoOn(t *testing.T) {
	const parts, each, size = 2000, 100, 200
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "crowd", Version: kafkatest.ReleaseTarget, Proxied: true})
	others := startBystander(t, b)
	adm := b.Admin(t)
	contender := func(t *testing.T, who string, run func(*trial) func()) {
		tr := newTrial(t, a, b, "tasks.max = 4", "emit.checkpoints.enabled = false", "emit.heartbeats.enabled = false")
		topic := tr.topic(who)
		a.CreateTopic(t, topic, parts, nil)
		a.Produce(t, kafkatest.Messages(topic, parts, 1))
		end := run(tr)
		defer end()
		arrived := func(n int) {
			t.Helper()
			await(t, "the copies have all", func() string {
				ends, err := adm.ListEndOffsets(t.Context(), tr.remote(topic))
				if err != nil {
					return err.Error()
				}
				have := 0
				ends.Each(func(o kadm.ListedOffset) { have += int(max(o.Offset, 0)) })
				return lacks(n, have)
			})
		}
		arrived(parts)
		_ = others.p99(0)
		time.Sleep(10 * time.Second)
		before := others.p99(100)
		b.Broker(1).Proxy().Cut()
		records := kafkatest.Messages(topic, parts, each)
		for _, r := range records {
			r.Value = append(r.Value, make([]byte, size)...)
		}
		a.Produce(t, records)
		time.Sleep(20 * time.Second)
		_ = others.p99(0)
		began := time.Now()
		b.Broker(1).Proxy().Heal()
		arrived(parts * (each + 1))
		t.Logf("%s: %d partitions with %d records each went on and were done after %v; produce p99 of another client %v, before the outage %v",
			who, parts, each, time.Since(began).Round(100*time.Millisecond), others.p99(1), before)
	}
	t.Run("heliograph", func(t *testing.T) {
		contender(t, "heliograph", func(tr *trial) func() { p := tr.start(); return p.stop })
	})
	t.Run("java", func(t *testing.T) {
		contender(t, "java", func(tr *trial) func() {
			p := tr.java(kafkatest.ReleaseTarget)
			return func() { _ = p.Kill() }
		})
	})
}
