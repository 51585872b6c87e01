package verify

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/recordbatch"
)

const (
	fetchBytes = 4 << 20
	fetchWait  = 500 // milliseconds a fetch waits at the end of a log
	retryPause = 200 * time.Millisecond
	// stallAfter is how long a log may give nothing new before reading it is given up.
	stallAfter = time.Minute
)

// A side is one partition of one of the two clusters, and how it is read.
type side struct {
	cluster Cluster
	tp      kafka.TopicPartition
	iso     kafka.Isolation
	target  bool
	pace    *pace
	// spent is told of every answer's bytes.
	spent func(bytes int)
}

// start is the first offset that the log still has.
func (s *side) start(ctx context.Context) (int64, error) { return s.list(ctx, kafka.Earliest) }

// end is the log's end now, as far as its readers see it.
func (s *side) end(ctx context.Context) (int64, error) { return s.list(ctx, kafka.Latest) }

func (s *side) list(ctx context.Context, at kafka.OffsetAt) (int64, error) {
	patience := time.Now().Add(stallAfter)
	for {
		answer := s.cluster.ListOffsets(ctx, []kafka.TopicPartition{s.tp}, at, s.iso)[s.tp]
		if answer.Err == nil || !kafka.Heals(answer.Err) || time.Now().After(patience) {
			return answer.Offset, answer.Err
		}
		if err := pause(ctx, retryPause); err != nil {
			return 0, err
		}
	}
}

// read hands the visible data batches that have offsets in [from, to) to visit,
// in order. A leader that moves or is away is waited for.
func (s *side) read(ctx context.Context, from, to int64, visit func(*recordbatch.Batch) error) error {
	r := reading{side: s, next: from, to: to, visit: visit}
	for moved := time.Now(); ; {
		before := r.next
		err := r.session(ctx)
		if err == nil || ctx.Err() != nil || !kafka.Heals(err) {
			return err
		}
		if r.next > before {
			moved = time.Now()
		}
		if time.Since(moved) > stallAfter {
			return fmt.Errorf("read %s at offset %d: nothing came for %s: %w", s.tp, r.next, stallAfter, err)
		}
		if err := pause(ctx, retryPause); err != nil {
			return err
		}
		if err := s.cluster.RefreshMetadata(ctx, s.tp.Topic); err != nil && !kafka.Heals(err) {
			return err
		}
	}
}

type reading struct {
	side  *side
	next  int64
	to    int64
	visit func(*recordbatch.Batch) error
}

// session reads over one connection until it breaks or everything was read.
func (r *reading) session(ctx context.Context) error {
	if r.next >= r.to {
		return nil
	}
	s := r.side
	node, epoch, id, ok := s.cluster.Leader(s.tp)
	if !ok {
		return kafka.CodeLeaderNotAvailable
	}
	conn, err := s.cluster.DialFetch(ctx, node)
	if err != nil {
		return err
	}
	defer conn.Close()
	moved := time.Now()
	for r.next < r.to {
		if err := s.pace.wait(ctx); err != nil {
			return err
		}
		limit := s.pace.limit(fetchBytes)
		conn.Want(kafka.FetchPartition{
			TopicPartition: s.tp, TopicID: id, Offset: r.next, CurrentEpoch: epoch,
			LastFetchedEpoch: kafka.NoLeaderEpoch, MaxBytes: limit,
		})
		answer, err := conn.Fetch(ctx, kafka.FetchLimits{MaxWaitMillis: fetchWait, MinBytes: 1, MaxBytes: limit, Isolation: s.iso})
		if err != nil {
			return err
		}
		before := r.next
		err = r.apply(answer)
		if answer.Buffer != nil {
			answer.Buffer.Release()
		}
		switch {
		case err != nil:
			return err
		case r.next > before:
			moved = time.Now()
		case time.Since(moved) > stallAfter:
			return kafka.CodeOffsetNotAvailable
		}
	}
	return nil
}

func (r *reading) apply(answer *kafka.Fetched) error {
	for i := range answer.Partitions {
		p := &answer.Partitions[i]
		if p.TopicPartition != r.side.tp {
			continue
		}
		if p.Code != kafka.CodeNone {
			return &kafka.Error{Op: "read", Subject: fmt.Sprintf("%s at offset %d", p.TopicPartition, r.next), Code: p.Code}
		}
		r.side.pace.spend(len(p.Records))
		r.side.spent(len(p.Records))
		if err := r.batches(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) batches(p *kafka.FetchedPartition) error {
	var aborts recordbatch.AbortFilter
	aborts.Reset(p.Aborted)
	sc := recordbatch.NewScanner(p.Records)
	var b recordbatch.Batch
	for sc.Next(&b) {
		aborted := aborts.Aborted(&b)
		if b.NextOffset() <= r.next {
			continue
		}
		if b.BaseOffset >= r.to && b.Magic == 2 {
			r.next = r.to
			return nil
		}
		if !aborted && !b.Control() {
			if err := r.visit(&b); err != nil {
				return err
			}
		}
		r.next = b.NextOffset()
	}
	if err := sc.Err(); err != nil {
		return &kafka.Error{Op: "read", Subject: r.side.tp.String(), Class: kafka.ClassData, Err: err}
	}
	return nil
}

// records decodes a batch and hands those with offsets in [from, to) to visit.
func (s *side) records(b *recordbatch.Batch, from, to int64, visit func(*kafka.Record)) error {
	decoded, err := recordbatch.Records(b)
	if err != nil {
		return &kafka.Error{Op: "read", Subject: fmt.Sprintf("%s at offset %d", s.tp, b.BaseOffset), Class: kafka.ClassData, Err: err}
	}
	for i := range decoded {
		if o := decoded[i].Offset; o >= from && o < to {
			visit(&decoded[i])
		}
	}
	return nil
}
