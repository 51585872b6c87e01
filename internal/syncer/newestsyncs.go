package syncer

import (
	"context"
	"fmt"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// newestKept is how many offset syncs of a partition NewestSyncs tells.
const newestKept = 5

// NewestSyncs reads an offset syncs topic and tells the last ones of a
// partition, the newest first. A topic that is not there has none; what cannot
// be decoded is somebody else's record, or a tombstone.
func NewestSyncs(ctx context.Context, log LogReader, topic string) (func(kafka.TopicPartition) []mirror.OffsetSync, error) {
	tp := kafka.TopicPartition{Topic: topic}
	tps := []kafka.TopicPartition{tp}
	of := map[kafka.TopicPartition][]mirror.OffsetSync{}
	bounds := [2]int64{}
	for i, at := range []kafka.OffsetAt{kafka.Earliest, kafka.Latest} {
		got := log.ListOffsets(ctx, tps, at, kafka.ReadCommitted)[tp]
		switch {
		case kafka.CodeOf(got.Err) == kafka.CodeUnknownTopicOrPartition:
		case got.Err != nil:
			return nil, fmt.Errorf("bounds of %s: %w", tp, got.Err)
		}
		bounds[i] = got.Offset
	}
	if bounds[0] < bounds[1] {
		err := log.ReadRecords(ctx, tp, bounds[0], bounds[1], kafka.ReadCommitted, func(r kafka.Record) error {
			if s, err := mirror.DecodeOffsetSync(r.Key, r.Value); err == nil {
				kept := of[s.TopicPartition]
				of[s.TopicPartition] = append([]mirror.OffsetSync{s}, kept[:min(len(kept), newestKept-1)]...)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("offset syncs in %s: %w", tp, err)
		}
	}
	return func(tp kafka.TopicPartition) []mirror.OffsetSync { return of[tp] }, nil
}
