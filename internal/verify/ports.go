package verify

import (
	"context"

	"heliograph/internal/kafka"
)

// Fetcher is one connection to a broker. One goroutine uses it.
type Fetcher interface {
	Want(p kafka.FetchPartition)
	// Fetch waits for data. The caller owns one reference of the answer's Buffer.
	Fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error)
	Close()
}

// Cluster is what verifying needs of a side. It only reads.
type Cluster interface {
	Leader(tp kafka.TopicPartition) (node int32, epoch kafka.LeaderEpoch, id kafka.TopicID, ok bool)
	RefreshMetadata(ctx context.Context, topics ...string) error
	DialFetch(ctx context.Context, node int32) (Fetcher, error)
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
	ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error
	// PartitionSizes is how many bytes each partition takes on its brokers' disks;
	// partitions of which that cannot be learnt are left out.
	PartitionSizes(ctx context.Context, topics ...string) map[kafka.TopicPartition]int64
}
