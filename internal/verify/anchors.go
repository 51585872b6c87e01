package verify

import (
	"context"
	"errors"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// hold reports whether both logs have the record of an offset sync.
func (b bounds) hold(s mirror.OffsetSync) bool {
	u, d := int64(s.Upstream), int64(s.Downstream)
	return u >= b.sourceStart && u < b.sourceEnd && d >= b.targetStart && d < b.targetEnd
}

// readAnchors reads the offset syncs topic and keeps each partition's oldest sync
// that both logs hold: from there on the most can be compared.
func readAnchors(ctx context.Context, c Cluster, topic string, logs map[kafka.TopicPartition]bounds) (map[kafka.TopicPartition]mirror.OffsetSync, error) {
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
	found := map[kafka.TopicPartition]mirror.OffsetSync{}
	err := c.ReadRecords(ctx, tp, from.Offset, to.Offset, kafka.ReadCommitted, func(r kafka.Record) error {
		s, err := mirror.DecodeOffsetSync(r.Key, r.Value)
		if err != nil {
			return nil //nolint:nilerr // a record of somebody else's is no anchor
		}
		b, ours := logs[s.TopicPartition]
		if !ours || !b.hold(s) {
			return nil
		}
		if old, ok := found[s.TopicPartition]; !ok || s.Upstream < old.Upstream {
			found[s.TopicPartition] = s
		}
		return nil
	})
	return found, err
}
