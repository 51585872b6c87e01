package syncer

import (
	"context"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// The ports are what the jobs need of a cluster; cluster.Client has them all.
// Methods that answer per topic or group return every outcome; the error beside
// it means that there is no answer at all.

// Describer tells what topics a cluster has and how they are set.
type Describer interface {
	Topics(ctx context.Context) ([]kafka.TopicDetail, error)
	TopicConfigs(ctx context.Context, names ...string) (map[string]kafka.TopicConfigs, error)
}

// Creator makes topics. The outcome of each is in the map, nil where it was made.
type Creator interface {
	CreateTopics(ctx context.Context, topics []kafka.NewTopic, validateOnly bool) map[string]error
	Brokers(ctx context.Context) ([]kafka.BrokerDetail, error)
}

// TopicTarget is the cluster that gets the copies.
type TopicTarget interface {
	Describer
	Creator
	// CreatePartitions grows topics to the given counts.
	CreatePartitions(ctx context.Context, counts map[string]int32) map[string]error
}

// ConfigTarget is the cluster whose settings are changed, one by one.
type ConfigTarget interface {
	Describer
	AlterTopicConfigs(ctx context.Context, changes map[string][]kafka.ConfigChange) map[string]error
}

// InternalAdmin makes the bookkeeping topics on either cluster.
type InternalAdmin interface {
	Creator
	TopicConfigs(ctx context.Context, names ...string) (map[string]kafka.TopicConfigs, error)
}

// ACLSource tells a cluster's topic ACLs.
type ACLSource interface {
	DescribeACLs(ctx context.Context) ([]kafka.ACL, error)
}

// ACLTarget grants topic ACLs.
type ACLTarget interface {
	ACLSource
	// CreateACLs returns one outcome per binding, in order.
	CreateACLs(ctx context.Context, acls []kafka.ACL) []error
}

// GroupSource tells a cluster's groups and where they stand.
type GroupSource interface {
	// ListGroups may return the groups of some brokers with the error of others.
	ListGroups(ctx context.Context) ([]kafka.GroupListing, error)
	FetchGroupOffsets(ctx context.Context, groups ...string) map[string]kafka.GroupOffsets
}

// GroupTarget is where groups are moved.
type GroupTarget interface {
	DescribeGroups(ctx context.Context, groups ...string) map[string]kafka.GroupDescription
	FetchGroupOffsets(ctx context.Context, groups ...string) map[string]kafka.GroupOffsets
	// CommitGroupOffsets writes without being a member; a broker refuses that
	// while the group has some.
	CommitGroupOffsets(ctx context.Context, group string, offsets []kafka.GroupOffset) (map[kafka.TopicPartition]error, error)
}

// LogWriter appends decoded records to one partition.
type LogWriter interface {
	WriteRecords(ctx context.Context, tp kafka.TopicPartition, records []kafka.Record) (base int64, err error)
}

// LogReader reads the decoded records of a bookkeeping partition.
type LogReader interface {
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
	ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error
}

// LogTailer follows partitions from the given offsets on, for ever. caughtUp is
// called once, when what was there at the beginning has been passed.
type LogTailer interface {
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
	Tail(ctx context.Context, starts map[kafka.TopicPartition]int64, iso kafka.Isolation, fn func(kafka.TopicPartition, kafka.Record) error, caughtUp func()) error
}

// Translator says where on the target a group goes on reading that has committed
// u on the source. [SyncTail] answers from offset syncs, as MirrorMaker does.
type Translator interface {
	Translate(source kafka.TopicPartition, u mirror.UpstreamOffset) offsets.Translation
}
