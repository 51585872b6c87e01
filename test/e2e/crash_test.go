//go:build e2e

package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"heliograph/internal/kafkatest"
)

// perSecond is the load of the crash tests: at this rate Java MirrorMaker 2
// doubled 99,937 records after one kill.
const perSecond = 10_000

// Killed at random points, over and over, also within the first second of its
// life: nothing is lost and nothing is doubled.
func TestKilledAtRandomPoints(t *testing.T) {
	kills := 6
	if long() {
		kills = 60
	}
	for _, row := range []struct {
		name string
		back time.Duration // age of the records
		more []string
	}{
		{name: "default"},
		{name: "identity", more: []string{identityPolicy}},
		// Brokers forget a producer by its newest record's time: after a day, by default.
		{name: "days-back", back: 10 * 24 * time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := kafkatest.Pair(t)
			tr := newTrial(t, a, b, row.more...)
			rng := seeded(t)
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 4, nil)
			l := startLoad(t, a, topic, 4, perSecond, row.back)
			p := tr.start()
			tr.arrived(l, 1)
			for range kills {
				pauseBeforeKill(rng)
				if err := p.Kill(); err != nil {
					t.Fatal(err)
				}
				p = tr.start()
			}
			// After a clean stop the next start goes on without a scan.
			tr.moves(l)
			p.stop()
			p = tr.start()
			tr.equal(l)
			p.stop()
		})
	}
}

// pauseBeforeKill lets the program live for a moment: half of the time less than
// a second, so that it dies while it takes its lanes over.
func pauseBeforeKill(rng *rand.Rand) {
	most := 3 * time.Second
	if rng.IntN(2) == 0 {
		most = time.Second
	}
	time.Sleep(time.Duration(rng.Int64N(int64(most))))
}

// Two processes started for the same flow by mistake share its lanes. When one
// is killed the other takes all over.
func TestTwoProcessesOfOneFlow(t *testing.T) {
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b)
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 8, nil)
	l := startLoad(t, a, topic, 8, perSecond/2, 0)
	first := tr.start()
	tr.arrived(l, 1)
	second := tr.start()
	await(t, "both own lanes", func() string {
		if first.metric("heliograph_flow_lanes") > 0 && second.metric("heliograph_flow_lanes") > 0 {
			return ""
		}
		return "one owns all"
	})
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	tr.equal(l)
	second.stop()
}

// A process that was frozen past its session and wakes up again finds its lanes
// taken: it must neither write nor keep the new owner from writing.
func TestZombie(t *testing.T) {
	rounds := 1
	if long() {
		rounds = 6
	}
	for _, naming := range []string{"default", "identity"} {
		t.Run(naming, func(t *testing.T) {
			a, b := kafkatest.Pair(t)
			var more []string
			if naming == "identity" {
				more = append(more, identityPolicy)
			}
			tr := newTrial(t, a, b, more...)
			topic := tr.topic("orders")
			a.CreateTopic(t, topic, 4, nil)
			l := startLoad(t, a, topic, 4, perSecond/2, 0)
			zombie, heir := tr.start(), tr.start()
			tr.arrived(l, 1)
			for range rounds {
				if err := zombie.Pause(); err != nil {
					t.Fatal(err)
				}
				await(t, "the other process owns all lanes", func() string {
					if n := heir.metric("heliograph_flow_lanes"); n < 25 {
						return "not yet"
					}
					return ""
				})
				tr.moves(l)
				if err := zombie.Resume(); err != nil {
					t.Fatal(err)
				}
				tr.moves(l)
				zombie, heir = heir, zombie
			}
			tr.equal(l)
			zombie.stop()
			heir.stop()
		})
	}
}

// moves waits until every partition of the target has grown since the call.
func (tr *trial) moves(l *load) {
	tr.tb.Helper()
	var most int64
	for p := range l.sent {
		most = max(most, l.sent[p].Load())
	}
	tr.arrived(l, most)
}
