package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/telemetry"
)

const (
	// tailBackoff is how long a tail that broke waits before it begins again.
	tailBackoff = 5 * time.Second
	// freshTries and freshBackoff are for a topic that was made a moment ago.
	freshTries   = 10
	freshBackoff = 300 * time.Millisecond
)

// SyncTail follows the offset syncs topic and translates by what it has read, as
// MirrorMaker's checkpoint task does. Before the topic is read to its end it
// knows nothing.
type SyncTail struct {
	cluster    LogTailer
	topic      kafka.TopicPartition
	now        func() time.Time
	conditions *Conditions
	loaded     chan struct{} // closed when a first pass is complete
	mu         struct {
		sync.Mutex
		store *offsets.SyncStore // nil until then
	}
}

// NewSyncTail makes a tail of the topic on the cluster that holds the syncs; Run
// follows it.
func NewSyncTail(cluster LogTailer, topic string, now func() time.Time, log *slog.Logger) *SyncTail {
	return &SyncTail{
		cluster: cluster, topic: kafka.TopicPartition{Topic: topic}, now: now,
		conditions: NewConditions(log), loaded: make(chan struct{}),
	}
}

// Translate tells the place on the target; unknown before the syncs are read.
func (t *SyncTail) Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.store == nil {
		return offsets.Translation{}
	}
	return t.mu.store.Translate(source, u)
}

// Before is the newest sync in front of a source offset.
func (t *SyncTail) Before(source kafka.TopicPartition, u mirror.UpstreamOffset) (mirror.OffsetSync, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.store == nil {
		return mirror.OffsetSync{}, false
	}
	for _, s := range t.mu.store.Syncs(source) {
		if s.Upstream < u {
			return s, true
		}
	}
	return mirror.OffsetSync{}, false
}

// Loaded is closed when the topic was read to its end for the first time.
func (t *SyncTail) Loaded() <-chan struct{} { return t.loaded }

// Run follows the topic until ctx ends. lastOnly is true where the checkpoints
// written before could not be read: then only the newest sync may be trusted,
// or groups could be moved back. A tail that breaks begins again from the start,
// and the old answers hold until the new pass is complete.
func (t *SyncTail) Run(ctx context.Context, lastOnly bool) {
	for tries := 0; ctx.Err() == nil; tries++ {
		err := t.pass(ctx, lastOnly)
		if ctx.Err() != nil {
			return
		}
		if tries < freshTries && kafka.ClassOf(err) == kafka.ClassRefresh {
			// The topic has just been made, and not every broker knows it yet.
			if pause(ctx, freshBackoff) != nil {
				return
			}
			continue
		}
		if err != nil {
			err = fmt.Errorf("offset syncs not read: %w", err)
		}
		t.conditions.Report(t.now(), t.topic.Topic, err, slog.String(telemetry.KeyTopic, t.topic.Topic))
		if pause(ctx, tailBackoff) != nil {
			return
		}
	}
}

func (t *SyncTail) pass(ctx context.Context, lastOnly bool) error {
	first := t.cluster.ListOffsets(ctx, []kafka.TopicPartition{t.topic}, kafka.Earliest, kafka.ReadCommitted)[t.topic]
	if first.Err != nil {
		return first.Err
	}
	store := offsets.NewSyncStore(lastOnly)
	apply := func(_ kafka.TopicPartition, r kafka.Record) error {
		// What cannot be decoded is somebody else's record, or a tombstone.
		if s, err := mirror.DecodeOffsetSync(r.Key, r.Value); err == nil {
			t.mu.Lock()
			store.Apply(s)
			t.mu.Unlock()
		}
		return nil
	}
	complete := func() {
		t.mu.Lock()
		store.ReadToEnd()
		if t.mu.store == nil {
			close(t.loaded)
		}
		t.mu.store = store
		t.mu.Unlock()
		t.conditions.Report(t.now(), t.topic.Topic, nil, slog.String(telemetry.KeyTopic, t.topic.Topic))
	}
	return t.cluster.Tail(ctx, map[kafka.TopicPartition]int64{t.topic: first.Offset}, kafka.ReadCommitted, apply, complete)
}
