package replicate

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/recordbatch"
)

// TestDoubtfulBatchIsNotSentToATargetThatForgot loses an answer and keeps the
// target away until it has forgotten every producer. Sending the batch again
// would store it twice; the lane is taken over anew instead.
func TestDoubtfulBatchIsNotSentToATargetThatForgot(t *testing.T) {
	for _, row := range []struct {
		name string
		long bool
	}{{"a short outage", false}, {"a long outage", true}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 1)
				fault := func(change func(m *model)) {
					r.target.mu.Lock()
					defer r.target.mu.Unlock()
					change(r.target)
				}
				ended := make(chan string, 1)
				l := r.open(0, kafka.ProducerID{ID: 7}, func(reason string, _ bool) { ended <- reason })
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
				l.Start([]TrackSpec{spec(0)})
				waitUntil(t, "the first batch is copied", func() bool { return r.task.Snapshot()[0].Position == 3 })
				fault(func(m *model) { m.mute = true })
				r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 3, 3))
				waitUntil(t, "the second is stored", func() bool { return len(r.target.values(t, spec(0).Target)) == 6 })
				fault(func(m *model) { m.mute, m.down = false, true })
				time.Sleep(time.Minute)
				if row.long { // two days later, without waiting for them
					tr := r.task.tracks()[0]
					tr.mu.Lock()
					tr.since = tr.since.Add(-2 * 24 * time.Hour)
					tr.mu.Unlock()
				}
				fault(func(m *model) {
					m.down = false
					if row.long {
						m.parts[spec(0).Target].producers = map[int64]*modelProducer{}
					}
				})
				if row.long {
					waitUntil(t, "the lane ends", func() bool { return len(ended) > 0 })
				} else {
					waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Position == 6 })
				}
				r.task.Close()
				if got := r.target.values(t, spec(0).Target); len(got) != 6 {
					t.Errorf("the target holds %q", got)
				}
				if (len(ended) > 0) != row.long {
					t.Errorf("the lane ended: %v, want %v", len(ended) > 0, row.long)
				}
			})
		})
	}
}

// TestTargetMadeAgainParks: nothing is written to a topic that took the place
// of the one we wrote to.
func TestTargetMadeAgainParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		old, made := kafka.TopicID{1}, kafka.TopicID{2}
		r.target.parts[spec(0).Target].id = old
		s := spec(0)
		s.TargetID = old
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		r.source.appendRaw(s.Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		l.Start([]TrackSpec{s})
		waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Position == 3 })
		r.target.mu.Lock()
		r.target.parts[s.Target] = &modelPartition{id: made, leader: 1, producers: map[int64]*modelProducer{}}
		r.target.mu.Unlock()
		r.source.appendRaw(s.Source, batchOf(t, recordbatch.CodecNone, 3, 3))
		waitUntil(t, "parked", func() bool { return r.task.Snapshot()[0].State == TrackParked })
		waitUntil(t, "in the ledger", func() bool {
			r.ledger.mu.Lock()
			defer r.ledger.mu.Unlock()
			return slices.ContainsFunc(r.ledger.entries, func(e losses.Entry) bool { return e.Kind == losses.TargetTruncated && e.From == 3 })
		})
		r.task.Close()
		if got := r.target.values(t, s.Target); len(got) != 0 {
			t.Errorf("the new topic holds %q", got)
		}
	})
}

// TestBooksOutliveTheirTopic: the position topic is deleted and made again while
// clients remember the old one. The positions of all tracks, also of those that
// stand still, are written to the new one.
func TestBooksOutliveTheirTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 2)
		tp := kafka.TopicPartition{Topic: positionsTopic}
		r.target.parts[tp].id = kafka.TopicID{1}
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		for p := range int32(2) {
			r.source.appendRaw(spec(p).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		}
		l.Start([]TrackSpec{spec(0), spec(1)})
		waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Position == 3 && r.task.Snapshot()[1].Position == 3 })
		time.Sleep(10 * time.Second) // their positions are written
		r.target.mu.Lock()
		r.target.parts[tp] = &modelPartition{id: kafka.TopicID{2}, producers: map[int64]*modelProducer{}}
		r.target.stale = map[kafka.TopicPartition]kafka.TopicID{tp: {1}}
		r.target.mu.Unlock()
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 3, 3))
		waitUntil(t, "both positions in the new topic", func() bool {
			moved, still := false, false
			for _, w := range positionsIn(t, r.target, 0) {
				moved, still = moved || w.last == 5, still || w.last == 2
			}
			return moved && still
		})
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.task.Close()
	})
}
