package kafka

import "time"

// FetchPartition asks for one partition from an offset on.
type FetchPartition struct {
	TopicPartition
	TopicID          TopicID     // zero where the cluster has none
	Offset           int64       // first wanted
	CurrentEpoch     LeaderEpoch // the leader we believe in; NoLeaderEpoch skips the check
	LastFetchedEpoch LeaderEpoch // epoch of the last batch read, to find truncation
	MaxBytes         int32
}

// FetchLimits bound one fetch.
type FetchLimits struct {
	MaxWaitMillis int32
	MinBytes      int32
	MaxBytes      int32
	Isolation     Isolation
}

// AbortedTxn says that the producer's records from FirstOffset up to its next
// abort marker are aborted.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// LeaderHint is the new leader that an answer named (KIP-951). Node is NoNode where none was.
type LeaderHint struct {
	Node  int32
	Epoch LeaderEpoch
}

// FetchedPartition is one partition's part of a fetch answer.
type FetchedPartition struct {
	TopicPartition
	Code             Code
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	Aborted          []AbortedTxn // only under ReadCommitted
	PreferredReplica int32        // NoNode unless a follower should be read (KIP-392)
	Leader           LeaderHint
	// DivergingEpoch and DivergingEnd are set when the log was truncated below
	// what was read (KIP-595); DivergingEpoch is NoLeaderEpoch otherwise.
	DivergingEpoch LeaderEpoch
	DivergingEnd   int64
	// Records are whole batches and perhaps a cut-off last one. They point into
	// the answer's Buffer.
	Records []byte
}

// Fetched is a fetch answer. Whoever keeps any of its Records past the call
// that delivered it takes a reference of Buffer.
type Fetched struct {
	Buffer         *Buffer
	ThrottleMillis int32
	Partitions     []FetchedPartition
	// Waited is the time from the request to the answer's first byte: the round
	// trip, where data waits at the broker.
	Waited time.Duration
}
