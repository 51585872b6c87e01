//go:build bench

package main

import (
	"context"
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

// watch reads a topic and tells of every record sent since a moment how long it took.
type watch struct {
	from   since
	taken  chan time.Duration
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}
}

// since is the moment from which records count.
type since struct{ nanos atomic.Int64 }

func (s *since) set(t time.Time) { s.nanos.Store(t.UnixNano()) }

// reset lets no record count.
func (s *since) reset() { s.nanos.Store(math.MaxInt64) }

func newWatch(ctx context.Context, c *kafkatest.Cluster, topic string) (*watch, error) {
	starts := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		starts[p] = kgo.NewOffset().AtStart()
	}
	cl, err := c.Open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.UnknownTopicRetries(-1), kgo.MetadataMaxAge(time.Second))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	// Room for all records of a pace, so that reading never waits.
	w := &watch{taken: make(chan time.Duration, 1<<20), client: cl, cancel: cancel, done: make(chan struct{})}
	go w.read(ctx)
	return w, nil
}

// start counts from now on, and forgets what was counted before.
func (w *watch) start() {
	for len(w.taken) > 0 {
		<-w.taken
	}
	w.from.set(time.Now())
}

func (w *watch) read(ctx context.Context) {
	defer close(w.done)
	for ctx.Err() == nil {
		fetches := w.client.PollFetches(ctx)
		now := time.Now().UnixNano()
		fetches.EachRecord(func(r *kgo.Record) {
			if sent := int64(binary.BigEndian.Uint64(r.Value)); sent >= w.from.nanos.Load() {
				w.taken <- time.Duration(now - sent)
			}
		})
	}
}

func (w *watch) close() {
	w.cancel()
	<-w.done
	w.client.Close()
}
