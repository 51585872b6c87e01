package kafka

// ProducePartition is one partition's batch in a produce request.
type ProducePartition struct {
	TopicPartition
	TopicID TopicID // zero where the cluster has none
	// Batch is one whole record batch. It is written from where it lies and must
	// not change until the request is answered.
	Batch []byte
}

// ProduceRequest carries at most one batch per partition. TransactionalID is
// empty outside transactions. Joins has the partitions join the transaction by
// being written to (KIP-890's second part); without it they were added before.
type ProduceRequest struct {
	TransactionalID string
	Joins           bool
	Acks            int16
	TimeoutMillis   int32
	Partitions      []ProducePartition
}

// RecordError names a refused record inside a batch (Produce v8 and later).
type RecordError struct {
	Index   int32
	Message string
}

// ProducedPartition is one partition's part of a produce answer.
type ProducedPartition struct {
	TopicPartition
	Code           Code
	BaseOffset     int64
	LogAppendTime  int64 // TimestampNone on CreateTime topics
	LogStartOffset int64
	Message        string
	RecordErrors   []RecordError
	Leader         LeaderHint
}

// Produced is a produce answer.
type Produced struct {
	ThrottleMillis int32
	Partitions     []ProducedPartition
}
