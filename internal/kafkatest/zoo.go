package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
)

// zooEpoch is when the zoo's records were written: a fixed day in the past, so
// that a run can be repeated byte for byte.
var zooEpoch = time.UnixMilli(1_700_000_000_000)

// An Animal is one topic of the zoo.
type Animal struct {
	Topic      string
	Partitions int32
	// What is special about it, for a failed test's output.
	What string
	// LogAppendTime topics carry the broker's times. A target that copies the
	// topic's settings stamps records itself, so times cannot agree there.
	LogAppendTime bool
	// Compacted topics may lose more records at any time, on both sides.
	Compacted bool
}

// keeper fills topics of one zoo.
type keeper struct {
	cluster *Cluster
	prefix  string
	rng     *rand.Rand
	animals []Animal
}

// Zoo creates and fills topics, all named prefix-something, that hold every kind
// of record a replicator meets: each codec, records from 1 B to 1 MiB, batches of
// one record and of many, keys and values null, empty and full, header names that
// repeat and header values null, tombstones, compacted logs with holes,
// transactions with aborted ones between, the broker's timestamps, and times at
// the edge. On [ReleaseOld] there are message formats 0 and 1 too.
// The same prefix gives the same records.
func Zoo(tb testing.TB, c *Cluster, prefix string) []Animal {
	tb.Helper()
	k := &keeper{cluster: c, prefix: prefix, rng: rand.New(rand.NewPCG(1, 2))}
	ctx, cancel := context.WithTimeout(tb.Context(), 3*time.Minute)
	defer cancel()
	for _, fill := range []func(context.Context) error{
		k.codecs, k.sizes, k.appendTime, k.edges, k.transactions, k.compacted, k.legacy,
	} {
		if err := fill(ctx); err != nil {
			tb.Fatalf("zoo on cluster %s: %v", c.opts.Name, err)
		}
	}
	return k.animals
}

// house creates an animal's topic.
func (k *keeper) house(ctx context.Context, a Animal, configs map[string]string) (string, error) {
	a.Topic = k.prefix + "-" + a.Topic
	k.animals = append(k.animals, a)
	// Some animals are older than a broker keeps records by default, and its
	// cleaner comes by every five minutes.
	all := map[string]string{"retention.ms": "-1"}
	maps.Copy(all, configs)
	return a.Topic, k.cluster.MakeTopic(ctx, a.Topic, a.Partitions, all)
}

// feed writes records in batches of random lengths: what one flush holds becomes
// one batch per partition.
func (k *keeper) feed(ctx context.Context, records []*kgo.Record, opts ...kgo.Opt) error {
	cl, err := k.cluster.Open(append([]kgo.Opt{kgo.ManualFlushing(), kgo.MaxBufferedRecords(1 << 20)}, opts...)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(records) > 0 {
		n := min(len(records), 1+k.rng.IntN(60))
		if err := produceBatch(ctx, cl, records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func produceBatch(ctx context.Context, cl *kgo.Client, records []*kgo.Record) error {
	var first error
	for _, r := range records {
		cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if first == nil {
				first = err
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	return first
}

// codecs fills a topic per codec with the whole variety of records.
func (k *keeper) codecs(ctx context.Context) error {
	for _, row := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{
		{"none", kgo.NoCompression()},
		{"gzip", kgo.GzipCompression()},
		{"snappy", kgo.SnappyCompression()},
		{"lz4", kgo.Lz4Compression()},
		{"zstd", kgo.ZstdCompression()},
	} {
		topic, err := k.house(ctx, Animal{Topic: row.name, Partitions: 3, What: "codec " + row.name}, nil)
		if err != nil {
			return err
		}
		if err := k.feed(ctx, k.variety(topic, 3, 600), kgo.ProducerBatchCompression(row.codec)); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	return nil
}

// variety makes records with all combinations of null, empty and full parts.
func (k *keeper) variety(topic string, partitions int32, count int) []*kgo.Record {
	keys := []func(int) []byte{
		func(i int) []byte { return fmt.Appendf(nil, "key-%d", i) },
		func(int) []byte { return nil },
		func(int) []byte { return []byte{} },
	}
	values := []func(int) []byte{
		func(i int) []byte { return fmt.Appendf(nil, `{"order":%d,"text":%q}`, i, k.text(k.rng.IntN(300))) },
		func(int) []byte { return k.noise(1 + k.rng.IntN(400)) },
		func(int) []byte { return nil },
		func(int) []byte { return []byte{} },
	}
	headers := [][]kgo.RecordHeader{
		nil,
		{{Key: "trace", Value: []byte("a")}},
		{{Key: "twice", Value: []byte("first")}, {Key: "other", Value: []byte{}}, {Key: "twice", Value: nil}},
		{{Key: "", Value: []byte("name is empty")}, {Key: "ünïcode", Value: []byte{0, 255}}},
	}
	out := make([]*kgo.Record, count)
	for i := range out {
		out[i] = &kgo.Record{
			Topic: topic, Partition: int32(i) % partitions,
			Key: keys[k.rng.IntN(len(keys))](i), Value: values[k.rng.IntN(len(values))](i),
			Headers: headers[k.rng.IntN(len(headers))],
			// Times do not always rise.
			Timestamp: zooEpoch.Add(time.Duration(i*10-k.rng.IntN(50)) * time.Millisecond),
		}
	}
	return out
}

// sizes fills a topic with single-record batches from 1 B to the largest that a
// topic takes by default, and one with batches as large as they get.
func (k *keeper) sizes(ctx context.Context) error {
	topic, err := k.house(ctx, Animal{Topic: "sizes", Partitions: 1, What: "values of 1 B to 1 MiB"}, map[string]string{"max.message.bytes": "1200000"})
	if err != nil {
		return err
	}
	var records []*kgo.Record
	for size := 1; size <= 1<<20; size *= 4 {
		for _, n := range []int{size, size + 1} {
			if n > 1<<20 {
				continue
			}
			records = append(records, &kgo.Record{Topic: topic, Key: []byte("k"), Value: k.noise(n), Timestamp: zooEpoch})
		}
	}
	if err := k.feed(ctx, records, kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(1_200_000)); err != nil {
		return fmt.Errorf("%s: %w", topic, err)
	}
	topic, err = k.house(ctx, Animal{Topic: "full-batches", Partitions: 1, What: "compressed batches near the limit"}, nil)
	if err != nil {
		return err
	}
	records = nil
	for range 3000 {
		records = append(records, &kgo.Record{Topic: topic, Value: k.noise(1000), Timestamp: zooEpoch})
	}
	cl, err := k.cluster.Open(kgo.ManualFlushing(), kgo.ProducerBatchMaxBytes(1_000_000), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := produceBatch(ctx, cl, records); err != nil {
		return fmt.Errorf("%s: %w", topic, err)
	}
	return nil
}

func (k *keeper) appendTime(ctx context.Context) error {
	topic, err := k.house(ctx, Animal{Topic: "append-time", Partitions: 2, What: "LogAppendTime", LogAppendTime: true},
		map[string]string{"message.timestamp.type": "LogAppendTime"})
	if err != nil {
		return err
	}
	return k.feed(ctx, k.variety(topic, 2, 200), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
}

// edges writes hand-made batches: no time at all, 1970, and a batch whose records lie a month apart.
func (k *keeper) edges(ctx context.Context) error {
	topic, err := k.house(ctx, Animal{Topic: "edges", Partitions: 1, What: "timestamps at the edge"}, nil)
	if err != nil {
		return err
	}
	month := (30 * 24 * time.Hour).Milliseconds()
	for _, times := range [][]int64{{kafka.TimestampNone}, {0}, {1, 0}, {zooEpoch.UnixMilli(), zooEpoch.UnixMilli() - month, zooEpoch.UnixMilli() + month}} {
		var records []kafka.Record
		for i, at := range times {
			records = append(records, kafka.Record{Key: fmt.Appendf(nil, "%d", i), Value: []byte("v"), Timestamp: at})
		}
		batch := NewHandBatch(records...)
		if times[0] == kafka.TimestampNone {
			batch.MaxTimestamp = kafka.TimestampNone
		}
		answer, err := k.cluster.ProduceRaw(ctx, RawProduce{Topic: topic, Batches: batch.Bytes()})
		if err == nil {
			err = answer.Code.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: times %v: %w", topic, times, err)
		}
	}
	return nil
}

// transactions interleaves three transactional producers, of which some abort,
// with a plain one.
func (k *keeper) transactions(ctx context.Context) error {
	topic, err := k.house(ctx, Animal{Topic: "transactions", Partitions: 2, What: "committed, aborted and plain records interleaved"}, nil)
	if err != nil {
		return err
	}
	plain, err := k.cluster.Open(kgo.ManualFlushing())
	if err != nil {
		return err
	}
	defer plain.Close()
	var open []*kgo.Client
	for i := range 3 {
		cl, err := k.cluster.Open(kgo.ManualFlushing(), kgo.TransactionalID(fmt.Sprintf("%s-%d", topic, i)))
		if err != nil {
			return err
		}
		defer cl.Close()
		open = append(open, cl)
	}
	n := 0
	some := func() []*kgo.Record {
		records := k.variety(topic, 2, 1+k.rng.IntN(8))
		for _, r := range records {
			n++
			r.Key = fmt.Appendf(nil, "txn-%d", n)
		}
		return records
	}
	for range 8 {
		if err := interleave(ctx, open, plain, some, k.rng); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	return nil
}

// interleave runs one transaction of each producer at the same time.
func interleave(ctx context.Context, open []*kgo.Client, plain *kgo.Client, some func() []*kgo.Record, rng *rand.Rand) error {
	for _, cl := range open {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
	}
	for range 3 {
		for _, cl := range append([]*kgo.Client{plain}, open...) {
			if err := produceBatch(ctx, cl, some()); err != nil {
				return err
			}
		}
	}
	for _, cl := range open {
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(rng.IntN(2) == 0)); err != nil {
			return err
		}
	}
	return nil
}

// compacted overwrites keys until the cleaner has made holes. Record times run
// ahead by a minute a round, which is what rolls segments: only closed ones are cleaned.
func (k *keeper) compacted(ctx context.Context) error {
	topic, err := k.house(ctx, Animal{Topic: "compacted", Partitions: 1, What: "compacted with holes", Compacted: true}, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "86400000",
	})
	if err != nil {
		return err
	}
	written := 0
	for round := range 6 {
		var records []*kgo.Record
		for range 120 {
			r := &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, "key-%d", k.rng.IntN(90)), Value: k.noise(50), Timestamp: zooEpoch.Add(time.Duration(round) * time.Minute)}
			if k.rng.IntN(10) == 0 {
				r.Value = nil
			}
			records = append(records, r)
		}
		if err := k.feed(ctx, records, kgo.ProducerBatchCompression(kgo.SnappyCompression())); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
		written += len(records)
	}
	return k.awaitHoles(ctx, topic, written)
}

// awaitHoles waits until half of the records were cleaned away, so that the rest
// does not change between two readings of a test.
func (k *keeper) awaitHoles(ctx context.Context, topic string, written int) error {
	poll := time.NewTicker(4 * pollEvery)
	defer poll.Stop()
	for {
		records, err := k.cluster.Read(ctx, topic, kafka.ReadCommitted)
		if err != nil {
			return err
		}
		if len(records[0]) < written/2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: the cleaner left %d of %d records", topic, len(records[0]), written), context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// legacy writes the message formats from before record batches. Only releases
// before 3.0 still convert what they are sent.
func (k *keeper) legacy(ctx context.Context) error {
	if k.cluster.release.atLeast(3, 0) {
		return nil
	}
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression()}
	for _, row := range []struct {
		name, format string
		codecs       []kgo.CompressionCodec
	}{
		// Kafka wrote lz4 frames with a wrong header checksum in format 0, which the
		// checker's decoder refuses.
		{"magic-0", "0.9.0", codecs[:3]},
		{"magic-1", "0.10.2", codecs},
	} {
		topic, err := k.house(ctx, Animal{Topic: row.name, Partitions: 2, What: "message format " + row.format}, map[string]string{"message.format.version": row.format})
		if err != nil {
			return err
		}
		records := k.variety(topic, 2, 300)
		for _, r := range records {
			r.Headers = nil
		}
		for _, codec := range row.codecs {
			half := records[:len(records)/2]
			records = records[len(half):]
			if err := k.feed(ctx, half, kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(codec)); err != nil {
				return fmt.Errorf("%s: %w", topic, err)
			}
		}
	}
	return nil
}

// noise is bytes that no codec makes smaller.
func (k *keeper) noise(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(k.rng.Uint32())
	}
	return out
}

// text is bytes that every codec makes smaller.
func (k *keeper) text(n int) string {
	return string(bytes.Repeat([]byte("lorem ipsum "), n/12+1)[:n])
}
