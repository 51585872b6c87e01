package coord

import (
	"context"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/replicate"
)

// Cluster is what taking over needs of both sides.
type Cluster interface {
	replicate.Topology
	DialFetch(ctx context.Context, node int32) (replicate.Fetcher, error)
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
}

// Target is the cluster whose lanes are owned.
type Target interface {
	Cluster
	ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error
	InitProducerID(ctx context.Context, transactionalID string, timeout time.Duration) (kafka.ProducerID, error)
	AddPartitionsToTxn(ctx context.Context, transactionalID string, pid kafka.ProducerID, tps []kafka.TopicPartition) error
	EndTxn(ctx context.Context, transactionalID string, pid kafka.ProducerID, commit bool) error
	CommitTxn(ctx context.Context, transactionalID string, pid kafka.ProducerID) (kafka.ProducerID, error)
}
