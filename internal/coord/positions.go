package coord

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
)

// stored is the newest position of a partition and when it was written.
type stored struct {
	plan.Stored
	at int64 // record timestamp, milliseconds
}

// positions are the newest positions by partition.
type positions map[kafka.TopicPartition]stored

// readConcurrency bounds the lanes read at once.
const readConcurrency = 8

// readPositions reads lanes from their start to their end. A key found in
// several lanes (a topic that was grown, another partitioner) counts by its
// newest record.
func (b Books) readPositions(ctx context.Context, lanes []int32) (positions, error) {
	tps := make([]kafka.TopicPartition, len(lanes))
	for i, n := range lanes {
		tps[i] = kafka.TopicPartition{Topic: b.PositionsTopic, Partition: n}
	}
	starts := b.Reader.ListOffsets(ctx, tps, kafka.Earliest, kafka.ReadCommitted)
	ends := b.Reader.ListOffsets(ctx, tps, kafka.Latest, kafka.ReadCommitted)
	found := make([]positions, len(tps))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readConcurrency)
	for i, tp := range tps {
		from, to := starts[tp], ends[tp]
		if err := errors.Join(from.Err, to.Err); err != nil {
			return nil, fmt.Errorf("bounds of %s: %w", tp, err)
		}
		found[i] = positions{}
		if from.Offset >= to.Offset {
			continue
		}
		g.Go(func() error {
			err := b.Reader.ReadRecords(ctx, tp, from.Offset, to.Offset, kafka.ReadCommitted, func(r kafka.Record) error {
				return b.readPosition(found[i], tp, r)
			})
			if err != nil {
				return fmt.Errorf("positions in %s: %w", tp, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := positions{}
	for _, some := range found {
		for tp, s := range some {
			if old, ok := all[tp]; !ok || s.at >= old.at {
				all[tp] = s
			}
		}
	}
	return all, nil
}

// readPosition applies one record. Keys of other connectors and clusters are
// passed over; a record that cannot be read is named and passed over too, since
// the partition will then be found without a position and ask.
func (b Books) readPosition(into positions, lane kafka.TopicPartition, r kafka.Record) error {
	key, err := mirror.DecodePositionKey(r.Key)
	if errors.Is(err, mirror.ErrNotPosition) || (err == nil && (key.Connector != mirror.SourceConnector || key.Cluster != b.Source)) {
		return nil
	}
	var s stored
	if err == nil {
		s, err = decodeStored(r)
	}
	if err != nil {
		b.Log.Warn("a position cannot be read", "topic", lane.Topic, "partition", lane.Partition, "offset", r.Offset, "err", err)
		return nil
	}
	tp := kafka.TopicPartition{Topic: key.Topic, Partition: key.Partition}
	if r.Value == nil {
		delete(into, tp)
		return nil
	}
	into[tp] = s
	return nil
}

func decodeStored(r kafka.Record) (stored, error) {
	last, ok, err := mirror.DecodePositionValue(r.Value)
	if err != nil {
		return stored{}, err
	}
	s := stored{Stored: plan.Stored{Last: last, Committed: ok}, at: r.Timestamp}
	facts, has, err := mirror.DecodePositionFacts(r.Headers)
	if err != nil {
		return stored{}, err
	}
	if has {
		s.Facts = &facts
	}
	return s, nil
}
