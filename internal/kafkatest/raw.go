package kafkatest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// Attribute bits of a record batch, as the protocol numbers them.
const (
	BitLogAppendTime = 1 << 3
	BitTransactional = 1 << 4
	BitControl       = 1 << 5
	BitDeleteHorizon = 1 << 6
)

// Places of header fields in a record batch.
const (
	atLength  = 8
	atCRC     = 17
	atPayload = 21 // what the checksum covers begins here
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HandBatch lays out a batch of uncompressed records by hand, with the fields
// that a case wants wrong. [NewHandBatch] makes a good one.
type HandBatch struct {
	kmsg.RecordBatch
	Payload []kafka.Record
	// Deltas are the records' offset deltas; nil counts from 0.
	Deltas []int32
}

// NewHandBatch is a batch a broker accepts: base offset 0, no producer.
func NewHandBatch(records ...kafka.Record) *HandBatch {
	b := &HandBatch{Payload: records}
	b.PartitionLeaderEpoch, b.Magic = -1, 2
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = -1, -1, -1
	b.NumRecords = int32(len(records))
	b.LastOffsetDelta = b.NumRecords - 1
	if len(records) > 0 {
		b.FirstTimestamp = records[0].Timestamp
	}
	for _, r := range records {
		b.MaxTimestamp = max(b.MaxTimestamp, r.Timestamp)
	}
	return b
}

// Bytes lays the batch out with its right length and checksum.
func (b *HandBatch) Bytes() []byte {
	body := b.RecordBatch
	body.Records = nil
	for i, r := range b.Payload {
		delta := int32(i)
		if b.Deltas != nil {
			delta = b.Deltas[i]
		}
		body.Records = append(body.Records, encodeRecord(r, r.Timestamp-b.FirstTimestamp, delta)...)
	}
	raw := body.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[atLength:], uint32(len(raw)-12))
	return Checksum(raw)
}

// Checksum writes the right checksum into a batch and returns it.
func Checksum(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[atCRC:], crc32.Checksum(raw[atPayload:], castagnoli))
	return raw
}

func encodeRecord(r kafka.Record, timeDelta int64, offsetDelta int32) []byte {
	record := kmsg.Record{TimestampDelta64: timeDelta, OffsetDelta: offsetDelta, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
	}
	// The length counts what follows it; a length of 0 takes one byte itself.
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	return record.AppendTo(nil)
}

// RawProduce is one hand-made Produce request for one partition.
type RawProduce struct {
	Topic           string
	Partition       int32
	Batches         []byte // as they go on the wire
	TransactionalID string
	Version         int16 // 0 is the newest the broker offers
}

// Answer is the broker's answer to a [RawProduce].
type Answer struct {
	Code       kafka.Code
	BaseOffset int64
	Message    string
	// RecordMessages are what the broker says about single records.
	RecordMessages []string
}

// ProduceRaw sends bytes to the partition's leader as they are and returns the
// broker's verdict. The error is about the connection only.
func (c *Cluster) ProduceRaw(ctx context.Context, in RawProduce) (*Answer, error) {
	cl, err := c.Open(kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	answer, err := produceRaw(ctx, cl, in)
	if err != nil {
		return nil, fmt.Errorf("raw produce to %s on cluster %s: %w", in.Topic, c.opts.Name, err)
	}
	return answer, nil
}

func produceRaw(ctx context.Context, cl *kgo.Client, in RawProduce) (*Answer, error) {
	topics, err := kadm.NewClient(cl).ListTopics(ctx, in.Topic)
	if err != nil {
		return nil, err
	}
	detail := topics[in.Topic]
	if detail.Err != nil {
		return nil, detail.Err
	}
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = in.Partition, in.Batches
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID, t.Partitions = in.Topic, detail.ID, append(t.Partitions, p)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 10_000, append(req.Topics, t)
	if in.TransactionalID != "" {
		req.TransactionID = &in.TransactionalID
	}
	var wire kmsg.Request = req
	if in.Version != 0 {
		wire = &capped{Request: req, max: in.Version}
	}
	raw, err := cl.Broker(int(detail.Partitions[in.Partition].Leader)).Request(ctx, wire)
	if err != nil {
		return nil, err
	}
	resp, ok := raw.(*kmsg.ProduceResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the answer is not about the partition asked for")
	}
	got := resp.Topics[0].Partitions[0]
	answer := &Answer{Code: kafka.Code(got.ErrorCode), BaseOffset: got.BaseOffset}
	if got.ErrorMessage != nil {
		answer.Message = *got.ErrorMessage
	}
	for _, e := range got.ErrorRecords {
		text := ""
		if e.ErrorMessage != nil {
			text = *e.ErrorMessage
		}
		answer.RecordMessages = append(answer.RecordMessages, fmt.Sprintf("%d: %s", e.RelativeOffset, text))
	}
	return answer, nil
}

// capped lowers the newest version of one request that franz-go may choose.
type capped struct {
	kmsg.Request
	max int16
}

// MaxVersion is what franz-go asks for.
func (c *capped) MaxVersion() int16 { return c.max }

// RequestCapped sends a request to any broker, or to the coordinator of
// a transactional id, in at most a version.
func RequestCapped(ctx context.Context, cl *kgo.Client, req kmsg.Request, maxVersion int16) (kmsg.Response, error) {
	return cl.Request(ctx, &capped{Request: req, max: maxVersion})
}

// StoredBatches are the raw bytes of a partition from an offset on, as the broker
// returns them: whole batches, the first one holding the offset.
func (c *Cluster) StoredBatches(ctx context.Context, topic string, partition int32, from int64) ([]byte, error) {
	cl, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("fetch %s on cluster %s: %w", topic, c.opts.Name, err)
	}
	detail := topics[topic]
	s := &scan{client: cl, topic: topic, id: detail.ID, partition: partition, leader: detail.Partitions[partition].Leader}
	answer, err := s.fetch(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("fetch %s on cluster %s: %w", topic, c.opts.Name, err)
	}
	return answer.RecordBatches, nil
}
