package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

const (
	recordSize = 120
	// digits in front of a record's value are its number in the partition.
	digits = 12
	// pace is how often the load writes what is due.
	pace = 20 * time.Millisecond
	// flushing bounds the wait for the last acknowledgements.
	flushing = time.Minute
)

// topicSpec is a topic under load and its share of it.
type topicSpec struct {
	name       string
	partitions int32
	share      int // of shares
	inTxn      bool
}

const shares = 10

var topics = []topicSpec{
	{name: "chaos-orders", partitions: 6, share: 6},
	{name: "chaos-payments", partitions: 3, share: 3},
	{name: "chaos-ledger", partitions: 2, share: 1, inTxn: true},
}

// load writes numbered records to the source and counts what was acknowledged.
type load struct {
	source *kafkatest.Cluster
	setup  Setup
	stop   func() // ends the writing and waits for what is under way

	mu       sync.Mutex
	acked    map[kafka.TopicPartition]int64
	troubles []string // of the load itself, for the person who reads the run

	total atomic.Int64
	began time.Time
	ended time.Time
}

func startLoad(ctx context.Context, source *kafkatest.Cluster, s Schedule, perSecond int) (*load, error) {
	l := &load{source: source, setup: s.Setup, acked: map[kafka.TopicPartition]int64{}, began: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, t := range topics {
		w := &writer{load: l, topic: t, perSecond: perSecond * t.share / shares, next: make([]int64, t.partitions)}
		// Which transactions abort belongs to the seed, too.
		w.rng = rand.New(rand.NewPCG(s.Seed, uint64(t.partitions)))
		if err := w.open(); err != nil {
			cancel()
			wg.Wait()
			return nil, err
		}
		wg.Go(func() { w.run(ctx) })
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		l.ended = time.Now()
	})
	return l, nil
}

// counts is what has been acknowledged so far, and surely.
func (l *load) counts() map[kafka.TopicPartition]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}

// reached is the rate that was reached, records a second.
func (l *load) reached() float64 {
	return float64(l.total.Load()) / max(l.ended.Sub(l.began).Seconds(), 1)
}

func (l *load) ack(tp kafka.TopicPartition, n int64) {
	l.total.Add(n)
	l.mu.Lock()
	l.acked[tp] += n
	l.mu.Unlock()
}

func (l *load) trouble(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.troubles = append(l.troubles, err.Error())
}

// writer writes one topic.
type writer struct {
	load      *load
	topic     topicSpec
	perSecond int
	client    *kgo.Client
	rng       *rand.Rand
	next      []int64 // the next record's number, by partition
	turn      int
}

func (w *writer) open() error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
		"snappy": kgo.SnappyCompression(), "gzip": kgo.GzipCompression(),
	}
	opts := []kgo.Opt{
		kgo.ProducerLinger(10 * time.Millisecond), kgo.MaxBufferedRecords(20_000),
		kgo.ProducerBatchCompression(codecs[w.load.setup.Codec]), kgo.RequestTimeoutOverhead(3 * time.Second),
	}
	if w.topic.inTxn {
		// A transaction that a dead broker leaves open holds up its readers no longer than this.
		opts = append(opts, kgo.TransactionalID("chaos-load"), kgo.TransactionTimeout(10*time.Second))
	}
	client, err := w.load.source.Open(opts...)
	w.client = client
	return err
}

func (w *writer) run(ctx context.Context) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	defer func() { w.client.Close() }()
	last, owed := time.Now(), 0.0
	for {
		select {
		case <-ctx.Done():
			w.flush(context.WithoutCancel(ctx))
			return
		case now := <-tick.C:
			// What the source was down for is not made up in one burst.
			owed += min(now.Sub(last).Seconds(), 0.5) * float64(w.perSecond)
			last = now
			if w.topic.inTxn {
				owed = w.transaction(ctx, owed)
				continue
			}
			for ; owed >= 1; owed-- {
				w.write(ctx, func(error) {})
			}
		}
	}
}

func (w *writer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushing)
	defer cancel()
	if err := w.client.Flush(ctx); err != nil {
		w.load.trouble(fmt.Errorf("load on %s: %w", w.topic.name, err))
	}
}

// write hands one record to the client; done is called once it is acknowledged or given up.
func (w *writer) write(ctx context.Context, done func(error)) kafka.TopicPartition {
	p := int32(w.turn % int(w.topic.partitions))
	w.turn++
	tp := kafka.TopicPartition{Topic: w.topic.name, Partition: p}
	value := make([]byte, recordSize)
	copy(value, fmt.Appendf(nil, "%0*d", digits, w.next[p]))
	w.next[p]++
	r := &kgo.Record{Topic: w.topic.name, Partition: p, Value: value, Timestamp: time.Now().Add(-w.load.setup.Age)}
	// The record outlives the writing: its answer is waited for.
	w.client.Produce(context.WithoutCancel(ctx), r, func(_ *kgo.Record, err error) {
		switch {
		case err != nil:
			w.load.trouble(fmt.Errorf("load on %s: %w", tp, err))
		case !w.topic.inTxn:
			w.load.ack(tp, 1)
		}
		done(err)
	})
	return tp
}

// transaction writes what is owed in one transaction, once it is worth one, and
// ends it: one of four aborts.
func (w *writer) transaction(ctx context.Context, owed float64) float64 {
	if owed < max(float64(w.perSecond)/5, 1) {
		return owed
	}
	if err := w.client.BeginTransaction(); err != nil {
		w.renew(err)
		return 0
	}
	written := map[kafka.TopicPartition]int64{}
	var failed atomic.Bool
	for ; owed >= 1; owed-- {
		tp := w.write(ctx, func(err error) {
			if err != nil {
				failed.Store(true)
			}
		})
		written[tp]++
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushing)
	defer cancel()
	err := w.client.Flush(ending)
	commit := err == nil && !failed.Load() && w.rng.IntN(4) != 0
	if err == nil {
		err = w.client.EndTransaction(ending, kgo.TransactionEndTry(commit))
	}
	if err != nil {
		w.renew(err)
		return owed
	}
	if commit {
		for tp, n := range written {
			w.load.ack(tp, n)
		}
	}
	return owed
}

// renew replaces a client whose transaction failed; the next one's first request ends it.
func (w *writer) renew(err error) {
	w.load.trouble(fmt.Errorf("load on %s, transaction: %w", w.topic.name, err))
	w.client.Close()
	if err := w.open(); err != nil {
		w.load.trouble(err)
	}
}

// number is a record's number, or -1.
func number(value []byte) int64 {
	n, err := strconv.ParseInt(string(value[:min(digits, len(value))]), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
