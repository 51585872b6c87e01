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
	// syncsAtOnce is how many syncs go into one write.
	syncsAtOnce = 1000
	// syncRest is the pause after a write. A busy flow has syncs due all the time,
	// and a write of one costs as much as a write of a hundred.
	syncRest = 50 * time.Millisecond
)

// SyncWriter publishes the data plane's offset syncs, one write at a time: the
// first that is due goes at once, and what comes due while it is written and for
// a short rest afterwards goes together. It keeps the newest sync of a partition
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
	w.mu.queue = offsets.NewSyncQueue(syncsAtOnce)
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

// Run publishes until ctx ends.
func (w *SyncWriter) Run(ctx context.Context) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		_ = w.write(ctx) // counted and said by write
		rest.Reset(syncRest)
	}
}

// Flush publishes what is due and delayed. It is for the last moments of a clean
// stop, after Run has returned.
func (w *SyncWriter) Flush(ctx context.Context) error {
	w.Promote()
	for {
		if err := w.write(ctx); err != nil {
			return err
		}
		w.mu.Lock()
		left := w.mu.queue.Pending()
		w.mu.Unlock()
		if left == 0 {
			return nil
		}
	}
}

// take encodes the next syncs to write.
func (w *SyncWriter) take() []kafka.Record {
	now := w.now().UnixMilli()
	w.mu.Lock()
	defer w.mu.Unlock()
	var records []kafka.Record
	for s, ok := w.mu.queue.Next(); ok; s, ok = w.mu.queue.Next() {
		records = append(records, kafka.Record{Key: s.AppendKey(nil), Value: s.AppendValue(nil), Timestamp: now})
	}
	return records
}

// write publishes what is due, in one go.
func (w *SyncWriter) write(ctx context.Context) error {
	records := w.take()
	if len(records) == 0 {
		return nil
	}
	_, err := w.target.WriteRecords(ctx, w.topic, records)
	w.mu.Lock()
	for range records {
		w.mu.queue.Done()
	}
	left := w.mu.queue.Pending()
	if err == nil {
		w.mu.written += int64(len(records))
	} else {
		w.mu.lost += int64(len(records))
	}
	w.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("offset sync not written: %w", err)
	}
	if ctx.Err() == nil {
		w.conditions.Report(w.now(), w.topic.Topic, err, slog.String(telemetry.KeyTopic, w.topic.Topic))
	}
	if left > 0 {
		w.wakeUp()
	}
	return err
}

func (w *SyncWriter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
