package replicate

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
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

// TestBooksOutliveTheirTopic: a topic of the books is deleted and made again while
// clients remember the old one. The positions of all tracks, also of those that
// stand still, are written to the new one, and the whole map; in either mode, and
// whether or not there is anything to copy.
func TestBooksOutliveTheirTopic(t *testing.T) {
	for _, topic := range []string{positionsTopic, runsTopic} {
		for _, mode := range []string{ModeDefault, ModeExactlyOnce} {
			for _, busy := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, busy %v", topic, mode, busy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { outlive(t, topic, mode, busy) })
				})
			}
		}
	}
}

func outlive(t *testing.T, topic, mode string, busy bool) {
	r := newRig(1, 0, 3)
	tp := kafka.TopicPartition{Topic: topic}
	r.target.parts[tp].id = kafka.TopicID{1}
	open := LaneSpec{
		Producer: kafka.ProducerID{ID: 7, Epoch: 1}, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
	}
	if mode == ModeExactlyOnce {
		open.TransactionalID, open.Transactions = "A-mm2-MirrorSourceConnector-0", r.target.transactional(open.Producer, 0)
	}
	l := r.task.OpenLane(open)
	for p := range int32(2) {
		r.source.appendRaw(spec(p).Source, batchOf(t, recordbatch.CodecNone, 0, 3))
	}
	known := spec(2) // copied by the last owner, quiet since
	known.Known, known.Next = true, 7
	r.source.parts[known.Source].end = 7
	l.Start([]TrackSpec{spec(0), spec(1), known})
	waitUntil(t, "copied", func() bool {
		at := map[int32]mirror.UpstreamOffset{}
		for _, s := range r.task.Snapshot() {
			at[s.Source.Partition] = s.Position
		}
		return at[0] == 3 && at[1] == 3
	})
	time.Sleep(10 * time.Second) // their positions are written
	r.target.mu.Lock()
	r.target.parts[tp] = &modelPartition{id: kafka.TopicID{2}, producers: map[int64]*modelProducer{}}
	if busy && topic == positionsTopic { // the map is not written for a run that only grows
		r.target.stale = map[kafka.TopicPartition]kafka.TopicID{tp: {1}}
	}
	r.target.mu.Unlock()
	if busy {
		r.source.appendRaw(spec(0).Source, batchOf(t, recordbatch.CodecNone, 3, 3))
	}
	waitUntil(t, "all of it in the new topic", func() bool {
		if topic == runsTopic {
			return len(chunksIn(t, r.target)) == 2 // known has no map
		}
		found := map[int64]bool{}
		for _, w := range positionsIn(t, r.target, 0) {
			found[int64(w.last)] = true
		}
		return found[2] && found[6] && found[5] == busy
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
	r.task.Close()
}

// chunksIn are the partitions whose map is in the lane's part of the map topic.
func chunksIn(t *testing.T, m *model) map[kafka.TopicPartition]bool {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[kafka.TopicPartition]bool{}
	for _, raw := range m.parts[kafka.TopicPartition{Topic: runsTopic}].batches {
		b, err := recordbatch.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		records, err := recordbatch.Records(&b)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			key, err := offsets.DecodeChunkKey(r.Key)
			if err != nil {
				t.Fatal(err)
			}
			found[kafka.TopicPartition{Topic: key.Topic, Partition: key.Partition}] = true
		}
	}
	return found
}

// What counts as old follows how long the target remembers producers.
func TestOldFollowsTheTargetsExpiration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		tr := newTrack(r.task, r.open(0, kafka.ProducerID{ID: 7}, nil), spec(0))
		now := time.Now()
		old := func(age time.Duration) bool { return tr.oldLocked(now.Add(-age).UnixMilli(), now) }
		if old(11*time.Hour) || !old(13*time.Hour) {
			t.Error("by default it is half a day")
		}
		r.task.NoteExpiration(time.Hour)
		if old(29*time.Minute) || !old(31*time.Minute) {
			t.Error("half an hour, where the target forgets after one")
		}
		r.task.Close()
	})
}

// A zombie does not know that it was replaced. Where the broker cannot be relied
// on to refuse it, because it forgets the producers of old records or because the
// target gives no fence, it sends nothing without a lease.
func TestNothingUnprotectedIsSentWithoutALease(t *testing.T) {
	for _, row := range []struct {
		name     string
		back     time.Duration
		unfenced bool
		waits    bool
	}{
		{"fresh records behind a fence", 0, false, false},
		{"old records", 10 * 24 * time.Hour, false, true},
		{"no fence", 0, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1, 0, 1)
				var held atomic.Bool
				held.Store(true)
				l := r.task.OpenLane(LaneSpec{
					Producer: kafka.ProducerID{ID: 7}, Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
					Leased: held.Load, Unfenced: row.unfenced,
				})
				copied := func() int { return len(r.target.values(t, spec(0).Target)) }
				append5 := func(first int) {
					records := make([]kafka.Record, 5)
					for i := range records {
						records[i] = kafka.Record{Value: fmt.Appendf(nil, "record %d", first+i), Timestamp: time.Now().Add(-row.back).UnixMilli()}
					}
					batch, err := recordbatch.Build(records, recordbatch.BuildOptions{})
					if err != nil {
						t.Fatal(err)
					}
					r.source.appendRaw(spec(0).Source, batch)
				}
				append5(0)
				l.Start([]TrackSpec{spec(0)})
				waitUntil(t, "copied", func() bool { return copied() == 5 })
				held.Store(false)
				append5(5)
				time.Sleep(time.Minute)
				if got, want := copied(), 10; (got == want) == row.waits {
					t.Errorf("without a lease the target holds %d records", got)
				}
				held.Store(true)
				waitUntil(t, "copied with the lease", func() bool { return copied() == 10 })
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
				r.task.Close()
			})
		})
	}
}

// A copy that is to start over is written nothing more, and says so in the
// ledger; coord places it anew once the new topic is known.
func TestTargetMadeAgainWaitsToStartOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 0, 1)
		r.policy.RestartTarget = true
		r.target.parts[spec(0).Target].id = kafka.TopicID{1}
		s := r.spec(0)
		s.TargetID = kafka.TopicID{1}
		l := r.open(0, kafka.ProducerID{ID: 7}, nil)
		r.source.appendRaw(s.Source, batchOf(t, recordbatch.CodecNone, 0, 3))
		l.Start([]TrackSpec{s})
		waitUntil(t, "copied", func() bool { return r.task.Snapshot()[0].Position == 3 })
		r.target.mu.Lock()
		r.target.parts[s.Target] = &modelPartition{id: kafka.TopicID{2}, leader: 1, producers: map[int64]*modelProducer{}}
		r.target.mu.Unlock()
		r.source.appendRaw(s.Source, batchOf(t, recordbatch.CodecNone, 3, 3))
		waitUntil(t, "in the ledger", func() bool { return r.ledger.len() == 1 })
		time.Sleep(time.Minute)
		if got := r.task.Snapshot()[0]; got.State != TrackWaiting {
			t.Errorf("it is %s: %s", got.State, got.Reason)
		}
		if e := r.ledger.entries[0]; e.Kind != losses.TargetTruncated || e.Action != losses.Continued {
			t.Errorf("entry %v", e)
		}
		if got := r.target.values(t, s.Target); len(got) != 0 {
			t.Errorf("the new topic holds %q", got)
		}
		l.Stop([]kafka.TopicPartition{s.Source}) // as coord does
		again := r.spec(0)
		again.TargetID = kafka.TopicID{2}
		l.Start([]TrackSpec{again})
		waitUntil(t, "all is copied again", func() bool { return len(r.target.values(t, s.Target)) == 6 })
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.task.Close()
	})
}
