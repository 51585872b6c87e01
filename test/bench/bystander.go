//go:build bench

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	bystanderTopic = "bystander"
	// bystanderEvery is the pace of somebody else who writes to the target.
	bystanderEvery = 20 * time.Millisecond
)

// bystander writes a record now and then to the target, as another client does that
// shares it, and keeps how long the broker took: what a catch-up costs others.
type bystander struct {
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}
	took   []time.Duration // the goroutine's until done
	err    error
}

func standBy(ctx context.Context, target *kafkatest.Cluster) (*bystander, error) {
	err := target.MakeTopic(ctx, bystanderTopic, 1, nil)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return nil, err
	}
	cl, err := target.Open(kgo.ProducerLinger(0), kgo.DefaultProduceTopic(bystanderTopic))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &bystander{client: cl, cancel: cancel, done: make(chan struct{})}
	go b.run(ctx)
	return b, nil
}

func (b *bystander) run(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(bystanderEvery)
	defer tick.Stop()
	value := make([]byte, latencyRecord)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begin := time.Now()
		if err := b.client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			if ctx.Err() == nil {
				b.err = err
			}
			return
		}
		b.took = append(b.took, time.Since(begin))
	}
}

// p99 ends it and tells how long nearly all of its records took at most.
func (b *bystander) p99() (time.Duration, error) {
	b.cancel()
	<-b.done
	b.client.Close()
	if b.err != nil {
		return 0, fmt.Errorf("bystander: %w", b.err)
	}
	if len(b.took) == 0 {
		return 0, nil // the copy was over at once
	}
	slices.Sort(b.took)
	return b.took[(len(b.took)-1)*99/100], nil
}
