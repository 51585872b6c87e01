package offsets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func syncOf(topic string, up, down int64) mirror.OffsetSync {
	return mirror.OffsetSync{
		TopicPartition: kafka.TopicPartition{Topic: topic},
		Upstream:       mirror.UpstreamOffset(up),
		Downstream:     mirror.DownstreamOffset(down),
	}
}

// drain takes everything that may be sent now.
func drain(q *SyncQueue) []mirror.OffsetSync {
	var out []mirror.OffsetSync
	for s, ok := q.Next(); ok; s, ok = q.Next() {
		out = append(out, s)
	}
	return out
}

func TestSyncQueueDelaysWhatIsNotDue(t *testing.T) {
	q, p := NewSyncQueue(MaxSyncsInFlight), NewSyncPacer(2)
	for _, s := range []mirror.OffsetSync{syncOf("t", 0, 1), syncOf("t", 1, 2)} {
		if p.Advance(s.Upstream, s.Downstream) != NotDue {
			q.Due(s)
		} else {
			q.Delay(s)
		}
	}
	if q.Pending() != 1 || q.Delayed() != 1 {
		t.Fatalf("%d pending and %d delayed, want 1 and 1", q.Pending(), q.Delayed())
	}
	if diff := cmp.Diff([]mirror.OffsetSync{syncOf("t", 0, 1)}, drain(q)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestSyncQueuePromotionReplacesPending(t *testing.T) {
	q := NewSyncQueue(MaxSyncsInFlight)
	q.Due(syncOf("t", 0, 100))
	q.Delay(syncOf("t", 1, 101))
	q.Promote()
	if q.Pending() != 1 || q.Delayed() != 0 {
		t.Fatalf("%d pending and %d delayed, want 1 and 0", q.Pending(), q.Delayed())
	}
	if diff := cmp.Diff([]mirror.OffsetSync{syncOf("t", 1, 101)}, drain(q)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestSyncQueueDueDropsTheDelayedOfItsPartition(t *testing.T) {
	q := NewSyncQueue(MaxSyncsInFlight)
	q.Delay(syncOf("t", 1, 1))
	q.Delay(syncOf("u", 7, 7))
	q.Due(syncOf("t", 5, 5))
	q.Promote()
	want := []mirror.OffsetSync{syncOf("t", 5, 5), syncOf("u", 7, 7)}
	if diff := cmp.Diff(want, drain(q)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestSyncQueueBoundsWhatIsInFlight(t *testing.T) {
	q := NewSyncQueue(1)
	q.Due(syncOf("t", 0, 0))
	if len(drain(q)) != 1 {
		t.Fatal("the first sync was not sent")
	}
	q.Due(syncOf("t", 1, 1))
	if got := drain(q); len(got) != 0 {
		t.Fatalf("%v was sent while one is in flight", got)
	}
	q.Done()
	if diff := cmp.Diff([]mirror.OffsetSync{syncOf("t", 1, 1)}, drain(q)); diff != "" {
		t.Errorf("sent after the answer (-want +got):\n%s", diff)
	}
}

func TestSyncQueueKeepsTheOrderOfPartitions(t *testing.T) {
	q := NewSyncQueue(MaxSyncsInFlight)
	q.Due(syncOf("a", 1, 1))
	q.Due(syncOf("b", 1, 1))
	q.Due(syncOf("a", 2, 2)) // newer, in the old place
	want := []mirror.OffsetSync{syncOf("a", 2, 2), syncOf("b", 1, 1)}
	if diff := cmp.Diff(want, drain(q)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestSyncQueueForgetsAPartition(t *testing.T) {
	q := NewSyncQueue(MaxSyncsInFlight)
	q.Due(syncOf("a", 1, 1))
	q.Delay(syncOf("a", 2, 2))
	q.Forget(kafka.TopicPartition{Topic: "a"})
	q.Promote()
	if got := drain(q); len(got) != 0 {
		t.Errorf("%v was sent for a forgotten partition", got)
	}
}

func TestSyncQueueRefusesMoreAnswersThanSyncs(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an answer to nothing was accepted")
		}
	}()
	NewSyncQueue(1).Done()
}

// Whatever happens, the newest pair of each partition is sent in the end.
func TestSyncQueueEndsWithTheNewestOfEachPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewSyncQueue(rapid.IntRange(1, 3).Draw(t, "limit"))
		newest, sent := map[string]int64{}, map[string]int64{}
		take := func() {
			if s, ok := q.Next(); ok {
				sent[s.TopicPartition.Topic] = int64(s.Upstream)
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			topic := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topic")
			switch rapid.SampledFrom([]string{"due", "delay", "promote", "next", "done"}).Draw(t, "step") {
			case "due":
				q.Due(syncOf(topic, int64(i), 0))
				newest[topic] = int64(i)
			case "delay":
				q.Delay(syncOf(topic, int64(i), 0))
				newest[topic] = int64(i)
			case "promote":
				q.Promote()
			case "next":
				take()
			case "done":
				if q.InFlight() > 0 {
					q.Done()
				}
			}
			if q.InFlight() > q.limit {
				t.Fatalf("%d in flight, %d allowed", q.InFlight(), q.limit)
			}
		}
		q.Promote()
		for q.Pending() > 0 {
			for q.InFlight() > 0 {
				q.Done()
			}
			take()
		}
		if diff := cmp.Diff(newest, sent); diff != "" {
			t.Fatalf("last sent per partition (-newest +sent):\n%s", diff)
		}
	})
}
