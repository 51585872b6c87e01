package syncer

import (
	"context"
	"fmt"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// checkpoints remembers the last checkpoint of each group and target partition.
type checkpoints map[string]map[kafka.TopicPartition]mirror.Checkpoint

// loadCheckpoints reads the checkpoints topic from its beginning to its end. The
// last record of a key wins; what cannot be decoded, or belongs to groups that
// wanted refuses, is passed over.
func loadCheckpoints(ctx context.Context, log LogReader, tp kafka.TopicPartition, wanted func(group string) bool) (checkpoints, error) {
	bounds := [2]int64{}
	for i, at := range []kafka.OffsetAt{kafka.Earliest, kafka.Latest} {
		got := log.ListOffsets(ctx, []kafka.TopicPartition{tp}, at, kafka.ReadCommitted)[tp]
		if kafka.CodeOf(got.Err) == kafka.CodeUnknownTopicOrPartition {
			return checkpoints{}, nil // nobody has written any
		}
		if got.Err != nil {
			return nil, fmt.Errorf("bounds of %s: %w", tp, got.Err)
		}
		bounds[i] = got.Offset
	}
	loaded := checkpoints{}
	if bounds[0] >= bounds[1] {
		return loaded, nil
	}
	err := log.ReadRecords(ctx, tp, bounds[0], bounds[1], kafka.ReadCommitted, func(r kafka.Record) error {
		c, err := mirror.DecodeCheckpoint(r.Key, r.Value)
		if err == nil && wanted(c.Group) {
			loaded.put(c)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoints in %s: %w", tp, err)
	}
	return loaded, nil
}

func (c checkpoints) put(p mirror.Checkpoint) {
	of := c[p.Group]
	if of == nil {
		of = map[kafka.TopicPartition]mirror.Checkpoint{}
		c[p.Group] = of
	}
	of[p.TopicPartition] = p
}

// due reports whether a checkpoint says something new: the first of its
// partition, a group that was rewound, or a place further on. One that would
// move the group back only because syncs thin out with age is not.
func (c checkpoints) due(p mirror.Checkpoint) bool {
	last, ok := c[p.Group][p.TopicPartition]
	return !ok || p.Upstream < last.Upstream || p.Downstream > last.Downstream
}
