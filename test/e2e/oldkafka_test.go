//go:build e2e

package e2e

import (
	"testing"
	"time"

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
			p.awaitLog("the last owner had not stopped in order", `"fence":"marker"`)
			tr.moves(l)
			tr.equal(l)
			p.stop()
		})
	}
}

// A restart makes brokers forget producers whose records are old, and those
// before 2.5 refuse the next batch of a producer they do not know if its
// sequence is not 0. The lane is taken over with a new epoch and starts at 0.
func TestOldKafkaForgetsTheProducer(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	old := kafkatest.Start(t, kafkatest.ClusterOptions{Name: "forgetful", Version: kafkatest.ReleaseOld})
	tr := newTrial(t, a, old)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	write := func(from, to int64) {
		records := numbered(topic, from, to)
		for _, r := range records {
			r.Timestamp = time.Now().Add(-10 * 24 * time.Hour)
		}
		a.Produce(t, records)
		awaitCount(within(t, patience), t, old, tr.remote(topic), int(to))
	}
	p := tr.start()
	write(0, 100)
	restart(t, old.Broker(1))
	write(100, 150)
	p.awaitLog("the last owner had not stopped in order")
	p.stop()
}
