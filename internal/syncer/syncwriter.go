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

// SyncWriter publishes the data plane's offset syncs, at most
// [offsets.MaxSyncsInFlight] at a time. It keeps the newest sync of a partition
// only, so its memory is bounded by the partitions of the flow, and a slow topic
// never holds up records.
//
// Due, Delay and Promote never block. A sync that cannot be written is lost, as
// in MirrorMaker; the next one of its partition makes up for it.
type SyncWriter struct {
	target     LogWriter
	topic      kafka.TopicPartition
	now        func() time.Time
	conditions *Conditions
	wake       chan struct{} // holds one token: there may be something to send
	mu         struct {
		sync.Mutex
		queue   *offsets.SyncQueue
		written int64
		lost    int64
	}
}

// NewSyncWriter makes a writer to the offset syncs topic on the cluster behind
// target; Run drains it.
func NewSyncWriter(target LogWriter, topic string, now func() time.Time, log *slog.Logger) *SyncWriter {
	w := &SyncWriter{
		target: target, topic: kafka.TopicPartition{Topic: topic}, now: now,
		conditions: NewConditions(log), wake: make(chan struct{}, 1),
	}
	w.mu.queue = offsets.NewSyncQueue(offsets.MaxSyncsInFlight)
	return w
}

// Due takes a sync that is worth publishing now.
func (w *SyncWriter) Due(s mirror.OffsetSync) {
	w.mu.Lock()
	w.mu.queue.Due(s)
	w.mu.Unlock()
	w.wakeUp()
}

// Delay takes a sync that waits for the next Promote.
func (w *SyncWriter) Delay(s mirror.OffsetSync) {
	w.mu.Lock()
	w.mu.queue.Delay(s)
	w.mu.Unlock()
}

// Promote publishes what was delayed, so that the end of a quiet partition
// becomes known. It is called at every commit of positions.
func (w *SyncWriter) Promote() {
	w.mu.Lock()
	w.mu.queue.Promote()
	w.mu.Unlock()
	w.wakeUp()
}

// Forget drops what waits for a partition that is no longer ours.
func (w *SyncWriter) Forget(tp kafka.TopicPartition) {
	w.mu.Lock()
	w.mu.queue.Forget(tp)
	w.mu.Unlock()
}

// Counts are the syncs written and lost since the start.
func (w *SyncWriter) Counts() (written, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.written, w.mu.lost
}

// Run publishes until ctx ends, and returns when nothing is in flight any more.
func (w *SyncWriter) Run(ctx context.Context) {
	var flights sync.WaitGroup
	defer flights.Wait()
	for {
		for s, ok := w.next(); ok; s, ok = w.next() {
			flights.Go(func() { _ = w.write(ctx, s) }) // counted and said by write
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
	}
}

// Flush publishes what is due and delayed, one after the other. It is for the
// last moments of a clean stop, after Run has returned.
func (w *SyncWriter) Flush(ctx context.Context) error {
	w.Promote()
	for s, ok := w.next(); ok; s, ok = w.next() {
		if err := w.write(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *SyncWriter) next() (mirror.OffsetSync, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.queue.Next()
}

func (w *SyncWriter) write(ctx context.Context, s mirror.OffsetSync) error {
	_, err := w.target.WriteRecords(ctx, w.topic, []kafka.Record{{
		Key: s.AppendKey(nil), Value: s.AppendValue(nil), Timestamp: w.now().UnixMilli(),
	}})
	w.mu.Lock()
	w.mu.queue.Done()
	if err == nil {
		w.mu.written++
	} else {
		w.mu.lost++
	}
	w.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("offset sync not written: %w", err)
	}
	if ctx.Err() == nil {
		w.conditions.Report(w.now(), w.topic.Topic, err, slog.String(telemetry.KeyTopic, w.topic.Topic))
	}
	w.wakeUp()
	return err
}

func (w *SyncWriter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
