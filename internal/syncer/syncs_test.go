package syncer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

var syncsTopic = tp("mm2-offset-syncs.B.internal", 0)

func offsetSync(topic string, up, down int64) mirror.OffsetSync {
	return mirror.OffsetSync{TopicPartition: tp(topic, 0), Upstream: mirror.UpstreamOffset(up), Downstream: mirror.DownstreamOffset(down)}
}

// written are the syncs in the topic, as Kafka's tool prints them.
func written(t *testing.T, c *fakeCluster) []string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, r := range c.logs[syncsTopic] {
		s, err := mirror.DecodeOffsetSync(r.Key, r.Value)
		must(t, err)
		list = append(list, s.String())
	}
	return list
}

// slowLog answers writes only when it is told to.
type slowLog struct {
	*fakeCluster
	answers chan struct{}
	sizes   []int // of the writes
}

func (s *slowLog) WriteRecords(ctx context.Context, tp kafka.TopicPartition, records []kafka.Record) (int64, error) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(records))
	s.mu.Unlock()
	select {
	case <-s.answers:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.fakeCluster.WriteRecords(ctx, tp, records)
}

// withWriter runs a SyncWriter in a bubble until do returns.
func withWriter(t *testing.T, target LogWriter, log *captured, do func(*SyncWriter)) {
	w := NewSyncWriter(target, syncsTopic.Topic, time.Now, log.logger())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	do(w)
	cancel()
	<-done
}

func TestDueSyncsAreWrittenAndDelayedOnesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newFakeCluster("A"), &captured{}
		withWriter(t, c, log, func(w *SyncWriter) {
			w.Due(offsetSync("foo", 100, 201))
			w.Delay(offsetSync("foo", 101, 202))
			synctest.Wait()
			if got := written(t, c); !slices.Equal(got, []string{offsetSync("foo", 100, 201).String()}) {
				t.Errorf("written %v", got)
			}
			w.Promote()
			after(2 * syncRest)
			if got := written(t, c); len(got) != 2 || got[1] != offsetSync("foo", 101, 202).String() {
				t.Errorf("after promotion %v", got)
			}
		})
	})
}

func TestSyncsThatComeDueMeanwhileAreWrittenTogetherAndTheNewestOfAPartitionWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := &slowLog{fakeCluster: newFakeCluster("A"), answers: make(chan struct{})}, &captured{}
		withWriter(t, c, log, func(w *SyncWriter) {
			w.Due(offsetSync("first", 1, 1))
			synctest.Wait()
			for i := range 12 {
				w.Due(offsetSync(string(rune('a'+i)), 1, 1))
			}
			w.Due(offsetSync("l", 2, 2))
			close(c.answers)
			after(2 * syncRest)
			if !slices.Equal(c.sizes, []int{1, 12}) {
				t.Errorf("writes of %v syncs, want the first alone and the others together", c.sizes)
			}
			if n, lost := w.Counts(); n != 13 || lost != 0 {
				t.Errorf("%d written and %d lost, want 13 and 0", n, lost)
			}
			if got := written(t, c.fakeCluster); slices.Contains(got, offsetSync("l", 1, 1).String()) || !slices.Contains(got, offsetSync("l", 2, 2).String()) {
				t.Errorf("written %v", got)
			}
		})
	})
}

func TestLostSyncIsSaidOnceAndTheNextIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newFakeCluster("A"), &captured{}
		c.failing("write", syncsTopic.String(), kafka.CodeTopicAuthorizationFailed)
		withWriter(t, c, log, func(w *SyncWriter) {
			for i := range int64(3) {
				w.Due(offsetSync("foo", i, i))
				after(2 * syncRest)
			}
			if n := log.matching("not done", "offset sync not written: TOPIC_AUTHORIZATION_FAILED"); n != 1 {
				t.Errorf("said %d times, want once:\n%s", n, log.text())
			}
			c.failing("write", syncsTopic.String(), nil)
			w.Due(offsetSync("foo", 9, 9))
			after(2 * syncRest)
			if n, lost := w.Counts(); n != 1 || lost != 3 {
				t.Errorf("%d written and %d lost, want 1 and 3", n, lost)
			}
			if n := log.matching("recovered"); n != 1 {
				t.Errorf("recovery said %d times:\n%s", n, log.text())
			}
		})
	})
}

func TestFlushWritesTheEndAtACleanStop(t *testing.T) {
	c, log := newFakeCluster("A"), &captured{}
	w := NewSyncWriter(c, syncsTopic.Topic, func() time.Time { return start }, log.logger())
	w.Delay(offsetSync("foo", 1, 1))
	w.Due(offsetSync("bar", 2, 2))
	w.Due(offsetSync("gone", 3, 3))
	w.Forget(tp("gone", 0))
	must(t, w.Flush(t.Context()))
	if got := written(t, c); len(got) != 2 {
		t.Errorf("written %v", got)
	}
	w.Due(offsetSync("foo", 4, 4))
	c.failing("write", "", kafka.CodeNotEnoughReplicas)
	if err := w.Flush(t.Context()); kafka.CodeOf(err) != kafka.CodeNotEnoughReplicas {
		t.Errorf("error %v", err)
	}
}

// withTail runs a SyncTail in a bubble until do returns.
func withTail(t *testing.T, c *fakeCluster, log *captured, lastOnly bool, do func(*SyncTail)) {
	tail := NewSyncTail(c, syncsTopic.Topic, time.Now, log.logger())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { tail.Run(ctx, lastOnly); close(done) }()
	synctest.Wait()
	do(tail)
	cancel()
	<-done
}

// publish appends syncs to the topic.
func publish(t *testing.T, c *fakeCluster, syncs ...mirror.OffsetSync) {
	t.Helper()
	for _, s := range syncs {
		_, err := c.WriteRecords(t.Context(), syncsTopic, []kafka.Record{{Key: s.AppendKey(nil), Value: s.AppendValue(nil)}})
		must(t, err)
	}
}

func TestTailTranslatesByWhatItHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newFakeCluster("A"), &captured{}
		publish(t, c, offsetSync("foo", 100, 200))
		_, err := c.WriteRecords(t.Context(), syncsTopic, []kafka.Record{{Key: []byte("x")}, {}})
		must(t, err)
		if tr := NewSyncTail(c, syncsTopic.Topic, time.Now, log.logger()).Translate(tp("foo", 0), 100); tr.Known() {
			t.Errorf("known before reading: %v", tr)
		}
		withTail(t, c, log, false, func(tail *SyncTail) {
			<-tail.Loaded()
			if tr := tail.Translate(tp("foo", 0), 150); tr.Offset != 201 {
				t.Errorf("translated to %v", tr)
			}
			publish(t, c, offsetSync("foo", 150, 251))
			synctest.Wait()
			if tr := tail.Translate(tp("foo", 0), 150); tr.Offset != 251 || tr.Quality != offsets.Exact {
				t.Errorf("translated to %v", tr)
			}
		})
	})
}

func TestTailTrustsOnlyTheNewestWithoutOldCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newFakeCluster("A"), &captured{}
		publish(t, c, offsetSync("foo", 100, 100), offsetSync("foo", 200, 200))
		withTail(t, c, log, true, func(tail *SyncTail) {
			if tr := tail.Translate(tp("foo", 0), 150); tr.Known() {
				t.Errorf("translated to %v, want too old", tr)
			}
		})
	})
}

func TestBrokenTailBeginsAgainAndKeepsItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newFakeCluster("A"), &captured{}
		publish(t, c, offsetSync("foo", 100, 100))
		withTail(t, c, log, false, func(tail *SyncTail) {
			c.failing("tail", "", errors.New("broken"))
			publish(t, c, offsetSync("foo", 200, 200))
			synctest.Wait()
			if tr := tail.Translate(tp("foo", 0), 200); tr.Offset != 101 {
				t.Errorf("while broken %v, want the old answer", tr)
			}
			if n := log.matching("not done", "broken"); n != 1 {
				t.Errorf("said %d times, want once:\n%s", n, log.text())
			}
			c.failing("tail", "", nil)
			after(2 * tailBackoff)
			if tr := tail.Translate(tp("foo", 0), 200); tr.Offset != 200 {
				t.Errorf("after the repair %v", tr)
			}
			if n := log.matching("recovered"); n != 1 {
				t.Errorf("recovery said %d times:\n%s", n, log.text())
			}
		})
	})
}

func TestHeartbeatIsWrittenAsMirrorMakerDoes(t *testing.T) {
	c := newFakeCluster("B")
	h := NewHeartbeats(flowAB, policyOf(false), c)
	now := time.UnixMilli(1700000000000)
	must(t, h.RunOnce(t.Context(), now))
	r := c.logs[tp("heartbeats", 0)][0]
	if string(r.Key) != "\x00\x01A\x00\x01B" || string(r.Value) != "\x00\x00\x00\x00\x01\x8b\xcf\xe5\x68\x00" || r.Timestamp != 1700000000000 {
		t.Errorf("key %x value %x timestamp %d", r.Key, r.Value, r.Timestamp)
	}
	if !h.Last().Equal(now) {
		t.Errorf("last at %s", h.Last())
	}
	c.failing("write", "", kafka.CodeTopicAuthorizationFailed)
	if err := h.RunOnce(t.Context(), now.Add(time.Second)); err == nil || !strings.Contains(err.Error(), "heartbeat A->B: write on cluster B") {
		t.Errorf("error %v", err)
	}
	if !h.Last().Equal(now) {
		t.Errorf("last at %s after a failure", h.Last())
	}
}
