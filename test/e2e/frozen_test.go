//go:build e2e

package e2e

import (
	"testing"
	"time"

	"heliograph/internal/kafkatest"
)

// A broker of the target that is frozen (it leads copies and coordinates, takes
// requests and answers none) is left for those that have taken over: everything
// arrives while it is still frozen. How long that took is told, not judged.
func TestFrozenBrokerIsLeft(t *testing.T) {
	t.Parallel()
	a, _ := kafkatest.Pair(t)
	b := kafkatest.Start(t, kafkatest.ClusterOptions{
		Name: "frozen", Version: kafkatest.ReleaseTarget, Brokers: 3,
		Properties: map[string]string{"default.replication.factor": "3", "min.insync.replicas": "2", "broker.session.timeout.ms": "6000"},
	})
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 6, nil)
	l := startLoad(t, a, topic, 6, perSecond/10, 0)
	p := tr.start()
	tr.arrived(l, 1)
	lanes := tr.alias + "-mm2"
	for _, c := range b.Admin(t).FindGroupCoordinators(t.Context(), lanes) {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		frozen := b.Broker(c.NodeID)
		if err := frozen.Pause(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := frozen.Resume(); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		time.Sleep(time.Second) // so that records are sent to it first
		tr.moves(l)
		t.Logf("with the broker frozen that coordinates the lanes, everything has arrived after %v", time.Since(began).Round(100*time.Millisecond))
		if err := frozen.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	tr.moves(l)
	tr.equal(l)
	p.stop()
}
