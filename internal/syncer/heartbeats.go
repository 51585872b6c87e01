package syncer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Heartbeats writes one heartbeat a round to the target. Its copies further
// downstream tell which clusters are connected, and how fresh the connection is.
type Heartbeats struct {
	flow   mirror.FlowID
	target LogWriter
	topic  kafka.TopicPartition
	mu     struct {
		sync.Mutex
		last time.Time
	}
}

// NewHeartbeats makes the job.
func NewHeartbeats(flow mirror.FlowID, policy mirror.ReplicationPolicy, target LogWriter) *Heartbeats {
	return &Heartbeats{flow: flow, target: target, topic: kafka.TopicPartition{Topic: policy.HeartbeatsTopic()}}
}

// RunOnce writes the heartbeat of now.
func (h *Heartbeats) RunOnce(ctx context.Context, now time.Time) error {
	beat := mirror.Heartbeat{Source: h.flow.Source, Target: h.flow.Target, Timestamp: now.UnixMilli()}
	_, err := h.target.WriteRecords(ctx, h.topic, []kafka.Record{{
		Key: beat.AppendKey(nil), Value: beat.AppendValue(nil), Timestamp: beat.Timestamp,
	}})
	if err != nil {
		return fmt.Errorf("heartbeat %s: %w", h.flow, located("write", h.flow.Target, err))
	}
	h.mu.Lock()
	h.mu.last = now
	h.mu.Unlock()
	return nil
}

// Last is when the last heartbeat was written; zero before the first.
func (h *Heartbeats) Last() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.last
}
