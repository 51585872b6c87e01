package coord

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
	"heliograph/internal/replicate"
)

const (
	scanFetchBytes = 4 << 20
	scanWait       = 500 // milliseconds a fetch waits at the end of a log
	retryPause     = 200 * time.Millisecond
)

// visitor takes the batches of a log in order. aborted says that a
// read_committed reader does not see the batch. It returns false to stop.
type visitor func(b *recordbatch.Batch, aborted bool) (more bool, err error)

// span is a part of a partition's log, [from, end).
type span struct {
	tp        kafka.TopicPartition
	from, end int64
	iso       kafka.Isolation
}

// readLog hands the batches of a span to visit, until visit has enough or the
// log was read up to the end. A leader that moves or is away is waited for; ctx
// ends the wait.
func readLog(ctx context.Context, c Cluster, s span, visit visitor) error {
	tp := s.tp
	r := logReader{cluster: c, tp: tp, next: s.from, end: s.end, iso: s.iso, visit: visit}
	for {
		done, err := r.session(ctx)
		if done || err != nil && !kafka.Heals(err) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("read %s at offset %d: %w", tp, r.next, context.Cause(ctx))
		}
		pause(ctx, retryPause)
		if err := c.RefreshMetadata(ctx, tp.Topic); err != nil && !kafka.Heals(err) {
			return err
		}
	}
}

type logReader struct {
	cluster Cluster
	tp      kafka.TopicPartition
	next    int64
	end     int64
	iso     kafka.Isolation
	visit   visitor
}

// session reads over one connection until it breaks or the reading is done.
func (r *logReader) session(ctx context.Context) (done bool, err error) {
	if r.next >= r.end {
		return true, nil
	}
	node, epoch, id, ok := r.cluster.Leader(r.tp)
	if !ok {
		return false, kafka.CodeLeaderNotAvailable
	}
	conn, err := r.cluster.DialFetch(ctx, node)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	for r.next < r.end {
		conn.Want(kafka.FetchPartition{
			TopicPartition: r.tp, TopicID: id, Offset: r.next, CurrentEpoch: epoch,
			LastFetchedEpoch: kafka.NoLeaderEpoch, MaxBytes: scanFetchBytes,
		})
		answer, err := conn.Fetch(ctx, kafka.FetchLimits{MaxWaitMillis: scanWait, MinBytes: 1, MaxBytes: scanFetchBytes, Isolation: r.iso})
		if err != nil {
			return false, err
		}
		done, err := r.apply(answer)
		if answer.Buffer != nil {
			answer.Buffer.Release()
		}
		if done || err != nil {
			return done, err
		}
	}
	return true, nil
}

func (r *logReader) apply(answer *kafka.Fetched) (done bool, err error) {
	for i := range answer.Partitions {
		p := &answer.Partitions[i]
		if p.TopicPartition != r.tp {
			continue
		}
		if p.Code != kafka.CodeNone {
			return false, p.Code
		}
		var aborts recordbatch.AbortFilter
		aborts.Reset(p.Aborted)
		sc := recordbatch.NewScanner(p.Records)
		var b recordbatch.Batch
		for sc.Next(&b) {
			aborted := aborts.Aborted(&b)
			if b.NextOffset() <= r.next {
				continue
			}
			more, err := r.visit(&b, aborted)
			r.next = b.NextOffset()
			if err != nil || !more {
				return true, err
			}
		}
		if err := sc.Err(); err != nil {
			return false, &kafka.Error{Op: "scan", Subject: r.tp.String(), Class: kafka.ClassData, Err: err}
		}
	}
	return false, nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

var _ replicate.Topology = Cluster(nil)
