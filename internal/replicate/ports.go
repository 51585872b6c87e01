package replicate

import (
	"context"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// Fetcher is one connection to a source broker with its fetch session. One
// goroutine uses it.
type Fetcher interface {
	// Want adds a partition to the session, or moves its offset.
	Want(p kafka.FetchPartition)
	Forget(tp kafka.TopicPartition)
	// Fetch waits for data. The caller owns one reference of the answer's Buffer.
	Fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error)
	// Close ends a Fetch under way and may be called by anyone, more than once.
	Close()
}

// Producer is one connection to a target broker.
type Producer interface {
	// Send writes the request; done is called once, in order of sending, unless
	// Send returns an error. The batches must not change until then.
	Send(req *kafka.ProduceRequest, done func(*kafka.Produced, error)) error
	// Close fails what is unanswered. It may be called by anyone, more than once.
	Close()
}

// Topology is what a cluster's client knows of its partitions' leaders.
type Topology interface {
	// Leader answers from memory; ok is false while no leader is known.
	Leader(tp kafka.TopicPartition) (node int32, epoch kafka.LeaderEpoch, id kafka.TopicID, ok bool)
	RefreshMetadata(ctx context.Context, topics ...string) error
	NoteLeader(tp kafka.TopicPartition, hint kafka.LeaderHint)
}

// Source is the cluster that is read.
type Source interface {
	Topology
	// Silent reports whether a broker takes requests and has answered none for long.
	Silent(node int32) bool
	DialFetch(ctx context.Context, node int32) (Fetcher, error)
	ListOffsets(ctx context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, iso kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset
}

// Target is the cluster that is written.
type Target interface {
	Topology
	// Silent reports whether a broker takes requests and has answered none for long.
	Silent(node int32) bool
	DialProduce(ctx context.Context, node int32) (Producer, error)
}

// Syncs takes the offset pairs of acknowledged records: those that are due at
// once, and the newest of those that can wait. Neither call blocks.
type Syncs interface {
	Due(s mirror.OffsetSync)
	Delay(s mirror.OffsetSync)
}

// Ledger writes losses down. Write returns when the entry, and before it the dead
// letter where there is one, is durable; only then may a position pass the range.
type Ledger interface {
	Write(ctx context.Context, e losses.Entry, letter *losses.Letter) error
}
