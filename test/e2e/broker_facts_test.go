//go:build e2e

package e2e

import (
	"bytes"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
	"heliograph/internal/recordbatch"
)

// The topics that the facts are tried on. Their names are keys of the table.
const (
	plainTopic     = "plain"
	appendTopic    = "append-time"
	compactedTopic = "compacted"
	smallTopic     = "small" // max.message.bytes=1000
	zstdTopic      = "zstd"  // compression.type=zstd
)

var factTopics = map[string]map[string]string{
	plainTopic:     nil,
	appendTopic:    {"message.timestamp.type": "LogAppendTime"},
	compactedTopic: {"cleanup.policy": "compact"},
	smallTopic:     {"max.message.bytes": "1000"},
	zstdTopic:      {"compression.type": "zstd"},
}

// fact is one hand-made batch and what brokers answer.
type fact struct {
	name  string
	topic string
	// batch makes the bytes; now is the moment of the test in milliseconds.
	batch func(now int64) []byte
	want  kafka.Code
	// old is the answer of 3.9 where it differs.
	old *kafka.Code
	// beyond marks what a look at one batch cannot tell: recordbatch.Validate is not asked.
	beyond bool
}

// good is a batch of four records like any client's.
func good(now int64) *kafkatest.HandBatch {
	var records []kafka.Record
	for i := range byte(4) {
		records = append(records, kafka.Record{Key: []byte{'k', '0' + i}, Value: []byte{'v', '0' + i}, Timestamp: now + int64(i)})
	}
	return kafkatest.NewHandBatch(records...)
}

// but is a good batch with one thing wrong.
func but(change func(b *kafkatest.HandBatch)) func(int64) []byte {
	return func(now int64) []byte {
		b := good(now)
		change(b)
		return b.Bytes()
	}
}

// at is a good batch written at another time.
func at(shift func(now int64) int64) func(int64) []byte {
	return func(now int64) []byte { return good(shift(now)).Bytes() }
}

func facts() []fact {
	none := kafka.CodeNone
	const hour = int64(time.Hour / time.Millisecond)
	return []fact{
		{name: "good", batch: but(func(*kafkatest.HandBatch) {})},
		{name: "leader epoch 9", batch: but(func(b *kafkatest.HandBatch) { b.PartitionLeaderEpoch = 9 })},
		{name: "base offset 77", batch: but(func(b *kafkatest.HandBatch) { b.FirstOffset = 77 }), want: kafka.CodeInvalidRecord},
		{name: "offset span larger than the count", batch: but(func(b *kafkatest.HandBatch) {
			b.LastOffsetDelta, b.Deltas = 9, []int32{0, 3, 6, 9}
		}), want: kafka.CodeInvalidRecord},
		{name: "count 0", batch: but(func(b *kafkatest.HandBatch) { b.NumRecords = 0 }), want: kafka.CodeInvalidRecord},
		{name: "count 3 of 4 records", batch: but(func(b *kafkatest.HandBatch) { b.NumRecords, b.LastOffsetDelta = 3, 2 }), want: kafka.CodeInvalidRecord},
		{name: "control bit", batch: but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitControl }), want: kafka.CodeInvalidRecord},
		{name: "two batches for a partition", batch: func(now int64) []byte {
			return append(good(now).Bytes(), good(now).Bytes()...)
		}, want: kafka.CodeInvalidRecord},
		{name: "magic 1", batch: but(func(b *kafkatest.HandBatch) { b.Magic = 1 }), want: kafka.CodeInvalidRecord},
		{name: "truncated", batch: func(now int64) []byte {
			raw := good(now).Bytes()
			return raw[:len(raw)-5]
		}, want: kafka.CodeInvalidRecord},
		{name: "producer id with sequence -1", batch: but(func(b *kafkatest.HandBatch) { b.ProducerID, b.ProducerEpoch = 5000, 0 }), want: kafka.CodeInvalidRecord},
		{name: "transactional bit without a transactional id", batch: but(func(b *kafkatest.HandBatch) {
			b.Attributes |= kafkatest.BitTransactional
			b.ProducerID, b.ProducerEpoch, b.FirstSequence = 5001, 0, 0
		}), want: kafka.CodeTransactionalIDAuthorizationFailed, beyond: true},
		{name: "bad checksum", batch: func(now int64) []byte {
			raw := good(now).Bytes()
			raw[len(raw)-2] ^= 1
			return raw
		}, want: kafka.CodeCorruptMessage},
		{name: "codec bits that do not fit the bytes", batch: but(func(b *kafkatest.HandBatch) { b.Attributes |= 3 }), want: kafka.CodeUnknownServerError},
		{name: "LogAppendTime bit, topic with CreateTime", batch: but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitLogAppendTime })},
		{name: "LogAppendTime bit, topic with LogAppendTime", topic: appendTopic, batch: but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitLogAppendTime }), want: kafka.CodeInvalidTimestamp},
		{name: "CreateTime, topic with LogAppendTime", topic: appendTopic, batch: but(func(*kafkatest.HandBatch) {})},
		{name: "delete horizon bit", batch: but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitDeleteHorizon })},
		{name: "foreign producer", batch: but(func(b *kafkatest.HandBatch) { b.ProducerID, b.ProducerEpoch, b.FirstSequence = 99, 7, 500 })},
		{name: "time in 2200", batch: at(func(int64) int64 { return 7_258_118_400_000 }), want: kafka.CodeInvalidTimestamp, old: &none},
		{name: "two hours ahead", batch: at(func(now int64) int64 { return now + 2*hour }), want: kafka.CodeInvalidTimestamp, old: &none},
		{name: "fifty minutes ahead", batch: at(func(now int64) int64 { return now + hour*5/6 })},
		{name: "1970", batch: at(func(int64) int64 { return 0 })},
		{name: "no time", batch: func(int64) []byte {
			b := kafkatest.NewHandBatch(kafka.Record{Value: []byte("v"), Timestamp: kafka.TimestampNone})
			b.MaxTimestamp = kafka.TimestampNone
			return b.Bytes()
		}},
		{name: "record without key, compacted topic", topic: compactedTopic, batch: but(func(b *kafkatest.HandBatch) { b.Payload[2].Key = nil }), want: kafka.CodeInvalidRecord},
		{name: "larger than max.message.bytes", topic: smallTopic, batch: but(func(b *kafkatest.HandBatch) { b.Payload[1].Value = make([]byte, 2000) }), want: kafka.CodeMessageTooLarge},
		{name: "lz4 batch, topic with compression.type=zstd", topic: zstdTopic, batch: lz4Batch},
	}
}

func lz4Batch(now int64) []byte {
	raw, err := recordbatch.Build(good(now).Payload, recordbatch.BuildOptions{Codec: recordbatch.CodecLz4})
	if err != nil {
		panic(err) // four small records
	}
	return raw
}

// TestBrokerFacts tries every row on both brokers and asks the same of
// recordbatch.Validate, which stands in front of fake targets in other tests.
func TestBrokerFacts(t *testing.T) {
	a, b := kafkatest.Pair(t)
	for _, c := range []*kafkatest.Cluster{a, b} {
		t.Run(c.Version(), func(t *testing.T) {
			topics := map[string]string{}
			for kind, configs := range factTopics {
				topics[kind] = kafkatest.Name(t, kind)
				c.CreateTopic(t, topics[kind], 1, configs)
			}
			for _, f := range facts() {
				if f.topic == "" {
					f.topic = plainTopic
				}
				t.Run(f.name, func(t *testing.T) { tryFact(t, c, topics[f.topic], f) })
			}
		})
	}
}

func tryFact(t *testing.T, c *kafkatest.Cluster, topic string, f fact) {
	now := time.Now().UnixMilli()
	raw := f.batch(now)
	want := f.want
	modern := c.Version() == kafkatest.ReleaseTarget
	if !modern && f.old != nil {
		want = *f.old
	}
	answer, err := c.ProduceRaw(t.Context(), kafkatest.RawProduce{Topic: topic, Batches: raw})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Code != want {
		t.Errorf("the broker answered %v (%s), want %v", answer.Code, answer.Message, want)
	}
	if named := len(answer.RecordMessages); (f.topic == compactedTopic && want != 0) && named != 1 {
		t.Errorf("the broker named %d records, want the one without a key: %v", named, answer.RecordMessages)
	}
	if f.beyond || !modern {
		return
	}
	target := recordbatch.Target{LogAppendTime: f.topic == appendTopic, Compacted: f.topic == compactedTopic}
	if f.topic == smallTopic {
		target.MaxMessageBytes = 1000
	}
	if got := recordbatch.Validate(raw, target, now); got != answer.Code {
		t.Errorf("recordbatch.Validate answers %v, the broker %v", got, answer.Code)
	}
}

// What brokers change in a batch that they accept.
func TestBrokersStoreBatchesAsFound(t *testing.T) {
	a, b := kafkatest.Pair(t)
	for _, c := range []*kafkatest.Cluster{a, b} {
		t.Run(c.Version(), func(t *testing.T) {
			now := time.Now().UnixMilli()
			for _, row := range []struct {
				name, topic string
				batch       []byte
				check       func(t *testing.T, stored *recordbatch.Batch)
			}{
				{"LogAppendTime bit is cleared and the producer's times stay", plainTopic, but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitLogAppendTime })(now), func(t *testing.T, s *recordbatch.Batch) {
					if s.LogAppendTime() || s.MaxTimestamp != now+3 {
						t.Errorf("stored with LogAppendTime %v and time %d, want false and %d", s.LogAppendTime(), s.MaxTimestamp, now+3)
					}
				}},
				{"delete horizon is stored", plainTopic, but(func(b *kafkatest.HandBatch) { b.Attributes |= kafkatest.BitDeleteHorizon })(now), func(t *testing.T, s *recordbatch.Batch) {
					if !s.DeleteHorizon() {
						t.Error("stored without the delete horizon bit")
					}
				}},
				{"a LogAppendTime topic stamps the batch", appendTopic, good(now - 1_000_000).Bytes(), func(t *testing.T, s *recordbatch.Batch) {
					if !s.LogAppendTime() || s.MaxTimestamp < now {
						t.Errorf("stored with LogAppendTime %v and time %d, want true and now", s.LogAppendTime(), s.MaxTimestamp)
					}
				}},
				{"compression.type recompresses", zstdTopic, lz4Batch(now), func(t *testing.T, s *recordbatch.Batch) {
					if s.Codec() != recordbatch.CodecZstd {
						t.Errorf("stored as %v, want zstd", s.Codec())
					}
				}},
			} {
				t.Run(row.name, func(t *testing.T) {
					topic := kafkatest.Name(t, "")
					c.CreateTopic(t, topic, 1, factTopics[row.topic])
					answer, err := c.ProduceRaw(t.Context(), kafkatest.RawProduce{Topic: topic, Batches: row.batch})
					if err != nil || answer.Code != kafka.CodeNone {
						t.Fatalf("%v, %+v", err, answer)
					}
					raw, err := c.StoredBatches(t.Context(), topic, 0, 0)
					if err != nil {
						t.Fatal(err)
					}
					scanner := recordbatch.NewScanner(raw)
					var stored recordbatch.Batch
					if !scanner.Next(&stored) {
						t.Fatalf("nothing stored: %v", scanner.Err())
					}
					row.check(t, &stored)
				})
			}
		})
	}
}

// A producer that a partition does not know may begin with any sequence; from
// then on its sequences must follow.
func TestBrokersTakeAnyFirstSequence(t *testing.T) {
	a, b := kafkatest.Pair(t)
	for _, c := range []*kafkatest.Cluster{a, b} {
		t.Run(c.Version(), func(t *testing.T) {
			topic := kafkatest.Name(t, "")
			c.CreateTopic(t, topic, 1, nil)
			for _, step := range []struct {
				sequence int32
				want     kafka.Code
			}{{40, kafka.CodeNone}, {36, kafka.CodeOutOfOrderSequenceNumber}, {44, kafka.CodeNone}, {44, kafka.CodeNone}} {
				batch := good(time.Now().UnixMilli())
				batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = 70_000, 0, step.sequence
				answer, err := c.ProduceRaw(t.Context(), kafkatest.RawProduce{Topic: topic, Batches: batch.Bytes()})
				if err != nil {
					t.Fatal(err)
				}
				if answer.Code != step.want {
					t.Errorf("sequence %d: %v, want %v", step.sequence, answer.Code, step.want)
				}
			}
			// The repeat of 44 was known and not stored again.
			if got := len(c.ReadTopic(t, topic)[0]); got != 8 {
				t.Errorf("%d records stored, want 8", got)
			}
		})
	}
}

// The batches that cases build by hand are what they claim to be: a good one is
// byte for byte what the product's own builder makes.
func TestHandMadeBatchEqualsBuilt(t *testing.T) {
	batch := good(1_700_000_000_000)
	built, err := recordbatch.Build(batch.Payload, recordbatch.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hand := batch.Bytes()
	// The leader epoch is the sender's to choose and outside the checksum.
	copy(built[12:16], hand[12:16])
	if !bytes.Equal(hand, built) {
		t.Errorf("by hand\n%x\nbuilt\n%x", hand, built)
	}
}
