package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
)

// WriteRecords writes a few records of ours to one partition, acknowledged by
// all replicas and without duplicates, and returns the first one's offset.
func (c *Client) WriteRecords(ctx context.Context, tp kafka.TopicPartition, records []kafka.Record) (base int64, err error) {
	const op = "write records to"
	if len(records) == 0 {
		return -1, nil
	}
	out := make([]*kgo.Record, len(records))
	for i := range records {
		r := &records[i]
		out[i] = &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Key: r.Key, Value: r.Value}
		if r.Timestamp > 0 {
			out[i].Timestamp = time.UnixMilli(r.Timestamp)
		}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
	}
	if err := c.kgo.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return -1, c.fail(op, tp.String(), err)
	}
	return out[0].Offset, nil
}

const (
	// usualBatch keeps our batches below the default of message.max.bytes.
	usualBatch = 1_000_012
	largeBatch = 96 << 20
)

// batchBytes bounds the batches of a topic.
func (c *Client) batchBytes(topic string) int32 {
	if _, ok := c.large.Load(topic); ok {
		return largeBatch
	}
	return usualBatch
}

// WriteLarge is WriteRecords for one record of any size that the topic takes.
func (c *Client) WriteLarge(ctx context.Context, tp kafka.TopicPartition, r kafka.Record) error {
	c.large.Store(tp.Topic, true)
	_, err := c.WriteRecords(ctx, tp, []kafka.Record{r})
	return err
}

// bookkeeping bounds the fetches of our own topics, which are small.
var bookkeeping = kafka.FetchLimits{MaxWaitMillis: 500, MinBytes: 1, MaxBytes: 8 << 20}

const (
	bookkeepingPartitionBytes = 1 << 20
	minReadPause              = 50 * time.Millisecond
	maxReadPause              = 5 * time.Second
)

var errReadDone = errors.New("read to the end")

// ReadRecords decodes the records of one partition from offset from up to, not
// including, offset to, and calls fn for each. Under ReadCommitted the records of
// aborted transactions are left out, and to must not lie beyond the last stable
// offset, or the read waits for it. Retriable errors are retried until ctx ends.
func (c *Client) ReadRecords(ctx context.Context, tp kafka.TopicPartition, from, to int64, iso kafka.Isolation, fn func(kafka.Record) error) error {
	if from >= to {
		return nil
	}
	t := &tail{client: c, iso: iso, ends: map[kafka.TopicPartition]int64{tp: to}}
	t.mu.at = map[kafka.TopicPartition]int64{tp: from}
	t.fn = func(_ kafka.TopicPartition, r kafka.Record) error {
		if r.Offset >= to {
			return nil
		}
		return fn(r)
	}
	t.caughtUp = func() error { return errReadDone }
	if err := t.run(ctx); !errors.Is(err, errReadDone) {
		return c.fail("read records of", tp.String(), err)
	}
	return nil
}

// Tail decodes the records of the partitions, each from its start offset, and
// calls fn for each, for ever: it ends with ctx, with an error of fn or with one
// that retrying cannot heal. caughtUp is called once, when everything that was
// there when Tail began has been passed. Neither function is called concurrently.
func (c *Client) Tail(ctx context.Context, starts map[kafka.TopicPartition]int64, iso kafka.Isolation, fn func(kafka.TopicPartition, kafka.Record) error, caughtUp func()) error {
	const op = "follow records"
	if len(starts) == 0 {
		caughtUp()
		<-ctx.Done()
		return c.fail(op, "", context.Cause(ctx))
	}
	t := &tail{client: c, iso: iso, fn: fn, caughtUp: func() error {
		caughtUp()
		return nil
	}}
	t.mu.at = maps.Clone(starts)
	if err := t.findEnds(ctx); err != nil {
		return c.fail(op, "", err)
	}
	return c.fail(op, "", t.run(ctx))
}

// A tail reads partitions with one connection for each of their leaders. When
// anything changes, all connections are dropped and made anew from where they
// were: these topics are small, and changes are rare.
type tail struct {
	client   *Client
	iso      kafka.Isolation
	fn       func(kafka.TopicPartition, kafka.Record) error
	caughtUp func() error

	mu struct {
		sync.Mutex // held while fn runs
		at         map[kafka.TopicPartition]int64
		told       bool
	}
	ends map[kafka.TopicPartition]int64 // what to pass before caughtUp
}

// errStale says that leaders have to be found anew.
var errStale = errors.New("the leader has changed")

func (t *tail) findEnds(ctx context.Context) error {
	tps := slices.SortedFunc(maps.Keys(t.mu.at), kafka.TopicPartition.Compare)
	for pause := minReadPause; ; pause = min(2*pause, maxReadPause) {
		t.ends = make(map[kafka.TopicPartition]int64, len(tps))
		var failed error
		for tp, o := range t.client.ListOffsets(ctx, tps, kafka.Latest, t.iso) {
			t.ends[tp] = o.Offset
			if o.Err != nil {
				failed = o.Err
			}
		}
		if failed == nil {
			return nil
		}
		if !kafka.Heals(failed) {
			return failed
		}
		if err := sleep(ctx, pause); err != nil {
			return errors.Join(err, failed)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *tail) run(ctx context.Context) error {
	if err := t.checkCaughtUp(); err != nil {
		return err
	}
	pause := minReadPause
	for {
		began := time.Now()
		err := t.round(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case kafka.CodeOf(err) == kafka.CodeOffsetOutOfRange:
			if err := t.skipDeleted(ctx, err); err != nil {
				return err
			}
		case !kafka.Heals(err) || errors.Is(err, errReadDone) || isCallbackError(err):
			return err
		}
		if time.Since(began) > maxReadPause {
			pause = minReadPause
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxReadPause)
	}
}

// skipDeleted moves positions that retention has overtaken to where their logs
// begin now. A position that is not below that lies beyond the end, and its log
// was truncated or made anew: that is for the caller to judge.
func (t *tail) skipDeleted(ctx context.Context, cause error) error {
	tps := slices.SortedFunc(maps.Keys(t.mu.at), kafka.TopicPartition.Compare)
	moved := false
	for tp, o := range t.client.ListOffsets(ctx, tps, kafka.Earliest, t.iso) {
		if o.Err == nil && o.Offset > t.mu.at[tp] {
			t.mu.at[tp], moved = o.Offset, true
		}
	}
	if !moved {
		return cause
	}
	return t.checkCaughtUp()
}

// callbackError keeps what fn returned apart from what the cluster did.
type callbackError struct{ err error }

func (e *callbackError) Error() string { return e.err.Error() }
func (e *callbackError) Unwrap() error { return e.err }

func isCallbackError(err error) bool {
	_, ok := errors.AsType[*callbackError](err)
	return ok
}

// round finds the leaders and reads from all of them until one fails.
func (t *tail) round(ctx context.Context) error {
	topics := make(map[string]struct{})
	for tp := range t.mu.at {
		topics[tp.Topic] = struct{}{}
	}
	if err := t.client.RefreshMetadata(ctx, slices.Sorted(maps.Keys(topics))...); err != nil {
		return err
	}
	byNode := make(map[int32][]kafka.TopicPartition)
	for tp := range t.mu.at {
		node, _, _, ok := t.client.Leader(tp)
		if !ok {
			return errStale
		}
		byNode[node] = append(byNode[node], tp)
	}
	g, ctx := errgroup.WithContext(ctx)
	for node, tps := range byNode {
		g.Go(func() error { return t.follow(ctx, node, tps) })
	}
	return g.Wait()
}

// follow reads one broker's partitions until something fails.
func (t *tail) follow(ctx context.Context, node int32, tps []kafka.TopicPartition) error {
	conn, err := t.client.dialFetch(ctx, node, t.client.smallPool)
	if err != nil {
		return err
	}
	defer conn.Close()
	limits := bookkeeping
	limits.Isolation = t.iso
	for _, tp := range tps {
		t.mu.Lock()
		at := t.mu.at[tp]
		t.mu.Unlock()
		t.want(conn, tp, at)
	}
	for {
		got, err := conn.Fetch(ctx, limits)
		if err != nil {
			return err
		}
		err = t.take(conn, got)
		got.Buffer.Release()
		if err != nil {
			return err
		}
	}
}

func (t *tail) want(conn *FetchConn, tp kafka.TopicPartition, at int64) {
	_, epoch, id, _ := t.client.Leader(tp)
	conn.Want(kafka.FetchPartition{
		TopicPartition: tp, TopicID: id, Offset: at, CurrentEpoch: epoch,
		LastFetchedEpoch: kafka.NoLeaderEpoch, MaxBytes: bookkeepingPartitionBytes,
	})
}

func (t *tail) take(conn *FetchConn, got *kafka.Fetched) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range got.Partitions {
		p := &got.Partitions[i]
		if p.Code != kafka.CodeNone {
			return t.client.answered("read records of", p.String(), int16(p.Code), nil)
		}
		at := t.mu.at[p.TopicPartition]
		records, next, err := decodeRecords(p, at, t.iso)
		for _, r := range records {
			if err := t.fn(p.TopicPartition, r); err != nil {
				return &callbackError{err}
			}
		}
		if err != nil {
			return &kafka.Error{Op: "read records of", Cluster: t.client.opts.Alias, Subject: p.String(), Class: kafka.ClassData, Err: err}
		}
		t.mu.at[p.TopicPartition] = next
		if next != at {
			t.want(conn, p.TopicPartition, next)
		}
	}
	return t.checkCaughtUp()
}

// checkCaughtUp is called with the lock, or before any reader runs.
func (t *tail) checkCaughtUp() error {
	if t.mu.told {
		return nil
	}
	for tp, end := range t.ends {
		if t.mu.at[tp] < end {
			return nil
		}
	}
	t.mu.told = true
	return t.caughtUp()
}

// decodeRecords opens the batches of a small answer. Control batches and, under
// ReadCommitted, aborted ones give no records but move next past them.
func decodeRecords(p *kafka.FetchedPartition, from int64, iso kafka.Isolation) (records []kafka.Record, next int64, err error) {
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.Partition, rp.RecordBatches = p.Partition, p.Records
	rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = p.HighWatermark, p.LastStableOffset, p.LogStartOffset
	for _, a := range p.Aborted {
		rp.AbortedTransactions = append(rp.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{
			ProducerID: a.ProducerID, FirstOffset: a.FirstOffset,
		})
	}
	level := kgo.ReadUncommitted()
	if iso == kafka.ReadCommitted {
		level = kgo.ReadCommitted()
	}
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, IsolationLevel: level, Topic: p.Topic, Partition: p.Partition,
	}, &rp, kgo.DefaultDecompressor(), nil)
	records = make([]kafka.Record, 0, len(got.Records))
	for _, r := range got.Records {
		records = append(records, record(r))
	}
	return records, max(next, from), got.Err
}

// record copies: its bytes must outlive the answer they came in.
func record(r *kgo.Record) kafka.Record {
	out := kafka.Record{
		Key: slices.Clone(r.Key), Value: slices.Clone(r.Value),
		Timestamp: r.Timestamp.UnixMilli(), Offset: r.Offset,
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kafka.Header{Key: h.Key, Value: slices.Clone(h.Value)})
	}
	return out
}
