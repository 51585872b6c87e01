package verify

import (
	"context"
	"errors"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// An anchor is an offset sync: a pair of offsets of the same record.
type anchor struct{ mirror.OffsetSync }

// Held reports whether both logs still hold the anchor's record.
func (a anchor) Held(b bounds) bool {
	u, d := int64(a.Upstream), int64(a.Downstream)
	return u >= b.sourceStart && u < b.sourceEnd && d >= b.targetStart && d < b.targetEnd
}

// readAnchors reads the offset syncs topic and keeps each partition's oldest sync
// that the source still holds: from there on the most can be compared.
func readAnchors(ctx context.Context, c Cluster, topic string, starts map[kafka.TopicPartition]int64) (map[kafka.TopicPartition]anchor, error) {
	tp := kafka.TopicPartition{Topic: topic} // syncs have one partition
	all := []kafka.TopicPartition{tp}
	from := c.ListOffsets(ctx, all, kafka.Earliest, kafka.ReadCommitted)[tp]
	to := c.ListOffsets(ctx, all, kafka.Latest, kafka.ReadCommitted)[tp]
	if err := errors.Join(from.Err, to.Err); err != nil {
		if kafka.CodeOf(err) == kafka.CodeUnknownTopicOrPartition {
			return nil, nil
		}
		return nil, err
	}
	found := map[kafka.TopicPartition]anchor{}
	err := c.ReadRecords(ctx, tp, from.Offset, to.Offset, kafka.ReadCommitted, func(r kafka.Record) error {
		s, err := mirror.DecodeOffsetSync(r.Key, r.Value)
		if err != nil {
			return nil //nolint:nilerr // a record of somebody else's is no anchor
		}
		begin, ours := starts[s.TopicPartition]
		if !ours || int64(s.Upstream) < begin {
			return nil
		}
		if old, ok := found[s.TopicPartition]; !ok || s.Upstream < old.Upstream {
			found[s.TopicPartition] = anchor{s}
		}
		return nil
	})
	return found, err
}
