//go:build bench

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const (
	latencyTopic  = "latency"
	latencyRecord = 256
	// settle is how long a rate runs before its records count: programs warm up.
	settle = 5 * time.Second
)

// paces are the rates, in records a second, that run one after the other.
var paces = [...]int{1_000, 10_000}

// timed is how long records took at one pace, by contender, one list a turn.
type timed struct {
	pace    int
	results map[string][]quantiles
	failed  map[string]string // what went wrong, by contender
}

type quantiles struct{ p50, p99, p999 time.Duration }

// time measures the way of single records, and beside the contenders the way
// without any: to the source and back.
func (b *bench) time(ctx context.Context, target *kafkatest.Cluster) error {
	for _, pace := range paces {
		b.latency = append(b.latency, timed{pace: pace, results: map[string][]quantiles{}, failed: map[string]string{}})
	}
	lasts := 20 * time.Second
	if b.quick {
		lasts = 8 * time.Second
	}
	field := slices.Clone(b.field)
	if chosen(b.only, direct) {
		field = append(field, contender{short: direct, name: "produce and consume alone"})
	}
	for turn := range b.turns {
		for _, c := range field {
			if c.short == relay || c.short == tuned { // tuned for bulk: it waits on purpose
				continue
			}
			topic := fmt.Sprintf("%s-%s%d", latencyTopic, c.short, turn+1)
			s := stage{
				dir: b.dir, source: b.source, target: target, topic: topic, codec: "none", parts: partitions,
				alias: fmt.Sprintf("%s%dpace", c.short, turn+1),
			}
			all, err := s.paced(ctx, c, lasts)
			for i, q := range all { // the paces that it kept before it failed, too
				fmt.Printf("  %-24s %d records/s: p50 %v, p99 %v, p99.9 %v\n", c.name, paces[i], q.p50, q.p99, q.p999)
				b.latency[i].results[c.short] = append(b.latency[i].results[c.short], q)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil { // as with copies, the others go on
				fmt.Printf("  %-24s failed: %v\n", c.name, err)
				at := &b.latency[min(len(all), len(paces)-1)]
				at.failed[c.short] = fmt.Sprintf("turn %d: %v", turn+1, err)
				b.failures = append(b.failures, fmt.Errorf("latency: %s, turn %d: %w", c.name, turn+1, err))
			}
		}
	}
	return nil
}

// paced sends at each pace and returns how long the records took.
func (s stage) paced(ctx context.Context, c contender, lasts time.Duration) (all []quantiles, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.source.MakeTopic(ctx, s.topic, partitions, nil); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dropTopic(ctx, s.source, s.topic)) }()
	into, topic := s.source, s.topic
	if c.short != direct {
		p, err := s.start(ctx, c)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.Kill(), dropTopic(ctx, s.target, s.remoteTopic())) }()
		into, topic = s.target, s.remoteTopic()
	}
	watch, err := newWatch(ctx, into, topic)
	if err != nil {
		return nil, err
	}
	defer watch.close()
	producer, err := s.source.Open(kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	// A contender is ready when a first record has arrived.
	for ready := false; !ready; {
		s.send(ctx, producer, 0)
		select {
		case <-watch.taken:
			ready = true
		case <-ctx.Done():
			return nil, fmt.Errorf("no record arrived: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
	for _, pace := range paces {
		q, err := s.pace(ctx, producer, watch, pace, lasts)
		if err != nil {
			return all, err
		}
		all = append(all, q)
	}
	return all, nil
}

// send writes one record that says when it was sent.
func (s stage) send(ctx context.Context, producer *kgo.Client, i int) {
	value := make([]byte, latencyRecord)
	binary.BigEndian.PutUint64(value, uint64(time.Now().UnixNano()))
	producer.Produce(ctx, &kgo.Record{Topic: s.topic, Partition: int32(i % partitions), Value: value}, nil)
}

// pace sends so many records a second and waits for all that were sent after settling.
func (s stage) pace(ctx context.Context, producer *kgo.Client, w *watch, perSecond int, lasts time.Duration) (quantiles, error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	counted, sent := 0, 0
	w.from.reset()
	for now := begin; now.Sub(begin) < settle+lasts; now = <-tick.C {
		if counted == 0 && now.Sub(begin) >= settle {
			counted = sent
			w.start()
		}
		for due := int(now.Sub(begin).Seconds() * float64(perSecond)); sent < due; sent++ {
			s.send(ctx, producer, sent)
		}
	}
	if err := producer.Flush(ctx); err != nil {
		return quantiles{}, err
	}
	took := make([]time.Duration, 0, sent-counted)
	for len(took) < sent-counted {
		select {
		case d := <-w.taken:
			took = append(took, d)
		case <-ctx.Done():
			return quantiles{}, fmt.Errorf("%d of %d records arrived: %w", len(took), sent-counted, context.Cause(ctx))
		}
	}
	slices.Sort(took)
	at := func(part float64) time.Duration {
		return took[min(int(part*float64(len(took))), len(took)-1)].Round(10 * time.Microsecond)
	}
	return quantiles{at(0.5), at(0.99), at(0.999)}, nil
}
