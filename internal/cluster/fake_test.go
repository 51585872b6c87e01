package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// fake starts a fake cluster and a client of it.
func fake(tb testing.TB, change func(*Options), opts ...kfake.Opt) (*kfake.Cluster, *Client) {
	tb.Helper()
	k, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(k.Close)
	return k, open(tb, k.ListenAddrs(), change)
}

func open(tb testing.TB, addrs []string, change func(*Options)) *Client {
	tb.Helper()
	o := Options{Alias: "west", BootstrapServers: addrs, RequestTimeout: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// batch makes one uncompressed batch of records with the given values.
func batch(values ...string) []byte {
	now := time.Now().UnixMilli()
	var records []byte
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Key: []byte("k"), Value: []byte(v)}
		body := r.AppendTo(nil)[1:] // without the zero length
		r.Length = int32(len(body))
		records = append(records, r.AppendTo(nil)...)
	}
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(values) - 1),
		FirstTimestamp: now, MaxTimestamp: now, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: int32(len(values)), Records: records,
	}
	return sealed(b)
}

// sealed sets a batch's length and checksum.
func sealed(b kmsg.RecordBatch) []byte {
	out := b.AppendTo(nil)
	b.Length = int32(len(out) - 12)
	out = b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// leaderOf returns a partition's leader and topic id.
func leaderOf(tb testing.TB, c *Client, tp kafka.TopicPartition) (int32, kafka.TopicID) {
	tb.Helper()
	if node, _, id, ok := c.Leader(tp); ok {
		return node, id
	}
	if err := c.RefreshMetadata(deadline(tb), tp.Topic); err != nil {
		tb.Fatal(err)
	}
	node, _, id, ok := c.Leader(tp)
	if !ok {
		tb.Fatalf("no leader of %s", tp)
	}
	return node, id
}

func dialFetch(tb testing.TB, c *Client, node int32) *FetchConn {
	tb.Helper()
	f, err := c.DialFetch(deadline(tb), node)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.Close)
	return f
}

func dialProduce(tb testing.TB, c *Client, node int32) *ProduceConn {
	tb.Helper()
	p, err := c.DialProduce(deadline(tb), node)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// outcome is what done was called with; the answer is copied.
type outcome struct {
	produced kafka.Produced
	err      error
}

// send sends a request of one batch for each partition and waits for the answer.
func send(tb testing.TB, p *ProduceConn, parts ...kafka.ProducePartition) outcome {
	tb.Helper()
	ch := make(chan outcome, 1)
	req := &kafka.ProduceRequest{Acks: -1, TimeoutMillis: 5000, Partitions: parts}
	if err := p.Send(req, func(a *kafka.Produced, err error) { ch <- copyOutcome(a, err) }); err != nil {
		tb.Fatal(err)
	}
	select {
	case o := <-ch:
		return o
	case <-deadline(tb).Done():
		tb.Fatal("no answer")
		return outcome{}
	}
}

func copyOutcome(a *kafka.Produced, err error) outcome {
	o := outcome{err: err}
	if a != nil {
		o.produced = *a
		o.produced.Partitions = append([]kafka.ProducedPartition(nil), a.Partitions...)
	}
	return o
}

// produceTo writes batches to a partition and fails the test on any refusal.
func produceTo(tb testing.TB, c *Client, tp kafka.TopicPartition, batches ...[]byte) {
	tb.Helper()
	node, id := leaderOf(tb, c, tp)
	p := dialProduce(tb, c, node)
	defer func() {
		p.Close()
		<-p.Done()
	}()
	for _, b := range batches {
		o := send(tb, p, kafka.ProducePartition{TopicPartition: tp, TopicID: id, Batch: b})
		if err := o.failed(); err != nil {
			tb.Fatal(err)
		}
	}
}

func (o outcome) failed() error {
	if o.err != nil {
		return o.err
	}
	if len(o.produced.Partitions) == 0 {
		return errors.New("an answer without partitions")
	}
	for _, p := range o.produced.Partitions {
		if p.Code != kafka.CodeNone {
			return fmt.Errorf("%s: %w %s", p.TopicPartition, p.Code, p.Message)
		}
	}
	return nil
}

var limits = kafka.FetchLimits{MaxWaitMillis: 100, MinBytes: 1, MaxBytes: 16 << 20}

func wantFrom(tp kafka.TopicPartition, id kafka.TopicID, offset int64) kafka.FetchPartition {
	return kafka.FetchPartition{
		TopicPartition: tp, TopicID: id, Offset: offset, MaxBytes: 1 << 20,
		CurrentEpoch: kafka.NoLeaderEpoch, LastFetchedEpoch: kafka.NoLeaderEpoch,
	}
}

// fetchUntil fetches until an answer has the partition with records or a code.
func fetchUntil(tb testing.TB, f *FetchConn, tp kafka.TopicPartition) (*kafka.Fetched, kafka.FetchedPartition) {
	tb.Helper()
	ctx := deadline(tb)
	for {
		got, err := f.Fetch(ctx, limits)
		if err != nil {
			tb.Fatal(err)
		}
		for _, p := range got.Partitions {
			if p.TopicPartition == tp && (len(p.Records) > 0 || p.Code != 0) {
				return got, p
			}
		}
		got.Buffer.Release()
	}
}
