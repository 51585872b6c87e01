package replicate

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

// hangAndWake freezes a broker now and then. Its partitions go to another one, or
// do not; it wakes up before or after anybody has noticed.
func hangAndWake(m *model, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 2 {
		time.Sleep(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
		node := rng.Int32N(m.nodes)
		m.hang(node)
		time.Sleep(time.Duration(rng.Int64N(int64(9 * time.Second))))
		if rng.IntN(3) > 0 {
			m.moveFrom(node)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(9 * time.Second))))
		m.wake(node)
	}
}

// Partitions of a broker that hangs go on with their new leader as soon as the
// broker is known to be silent, on either side; where nobody else leads, the
// connection is left alone.
func TestHungBrokerIsLeftForTheNewLeader(t *testing.T) {
	for _, row := range []struct {
		name  string
		side  func(*rig) *model
		moved bool
	}{
		{"source, leader moved", func(r *rig) *model { return r.source }, true},
		{"target, leader moved", func(r *rig) *model { return r.target }, true},
		{"source, nobody else leads", func(r *rig) *model { return r.source }, false},
		{"target, nobody else leads", func(r *rig) *model { return r.target }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 1)
				l := r.open(0, kafka.ProducerID{ID: 7, Epoch: 1}, nil)
				l.Start([]TrackSpec{spec(0)})
				at := func(n int) func() bool {
					return func() bool { return int(r.task.Snapshot()[0].Position) == n }
				}
				put := func(first int) { r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, first, 5)) }
				put(0)
				waitUntil(t, "it runs", at(5))
				node, _, _, _ := row.side(r).Leader(kafka.TopicPartition{Topic: "orders"})
				if row.side(r) == r.target {
					node, _, _, _ = r.target.Leader(spec(0).Target)
				}
				row.side(r).hang(node)
				put(5)
				if row.moved {
					row.side(r).moveFrom(node)
				}
				time.Sleep(silentAfter + 2*hungPause)
				if moved := at(10)(); moved != row.moved {
					t.Errorf("the record behind the fault arrived: %v, want %v", moved, row.moved)
				}
				row.side(r).wake(node)
				waitUntil(t, "it has caught up", at(10))
				r.task.Close()
				if got := r.target.values(t, spec(0).Target); len(got) != 10 {
					t.Errorf("%d records on the target, want 10", len(got))
				}
			})
		})
	}
}
