//go:build e2e

package e2e

import (
	"testing"

	"heliograph/internal/kafkatest"
)

// The main path with the oldest Kafka on either side: copy, stop in order,
// start again, be killed, start again.
func TestOldKafka(t *testing.T) {
	t.Parallel()
	old := kafkatest.Shared(t, kafkatest.ReleaseOld)
	a, b := kafkatest.Pair(t)
	for _, row := range []struct {
		name           string
		source, target *kafkatest.Cluster
	}{
		{"2.4.1-to-4.3.1", old, b},
		{"3.9.2-to-2.4.1", a, old},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, row.source, row.target)
			topic := tr.topic("orders")
			row.source.CreateTopic(t, topic, 4, nil)
			l := startLoad(t, row.source, topic, 4, perSecond/5, 0)
			p := tr.start()
			tr.arrived(l, 1)
			p.stop()
			p = tr.start()
			tr.moves(l)
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			p = tr.start()
			tr.moves(l)
			if fence := "marker"; p.metric("heliograph_flow_lanes") == 0 {
				t.Errorf("owns no lane, fence %s", fence)
			}
			tr.equal(l)
			p.stop()
		})
	}
}

// Brokers before 2.5 forget a producer with its last record, and refuse its next
// batch, whose sequence is not 0. The lane raises its epoch and starts at 0.
func TestOldKafkaForgetsTheProducer(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	old := kafkatest.Shared(t, kafkatest.ReleaseOld)
	tr := newTrial(t, a, old)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	p := tr.start()
	first := startLoad(t, a, topic, 1, perSecond/10, 0)
	tr.arrived(first, 100)
	tr.equal(first)
	deleteRecords(t, old, tr.remote(topic), ends(t, old, tr.remote(topic)))
	before := ends(t, old, tr.remote(topic))[0]
	a.Produce(t, kafkatest.Messages(topic, 1, 50))
	await(t, "what comes after is copied", func() string {
		if got := ends(t, old, tr.remote(topic))[0]; got < before+50 {
			return "not all has arrived"
		}
		return ""
	})
	awaitCount(within(t, patience), t, old, tr.remote(topic), 50)
	p.stop()
}
