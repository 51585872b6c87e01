package replicate

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// treadmill is a source that never runs dry and a target that takes everything,
// both without I/O: what remains is the data plane's own work.
type treadmill struct {
	batch   []byte // served again and again, at the offset asked for
	count   int64  // records in it
	batches int    // of a partition in one answer

	mu     sync.Mutex
	left   int // batches to serve
	stored map[kafka.TopicPartition]int64
	taken  int // data batches the target took
	done   chan struct{}
}

func newTreadmill(tb testing.TB, records int) *treadmill {
	tb.Helper()
	list := make([]kafka.Record, records)
	for i := range list {
		list[i] = kafka.Record{Value: make([]byte, 1024), Timestamp: time.Now().UnixMilli()}
	}
	b, err := recordbatch.Build(list, recordbatch.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return &treadmill{batch: b, count: int64(records), batches: max(1, (1<<20)/len(b)), stored: map[kafka.TopicPartition]int64{}}
}

// serve lets the source give out so many batches and returns when the target has
// their records.
func (m *treadmill) serve(n int) {
	done := make(chan struct{})
	m.mu.Lock()
	m.left, m.taken, m.done = n, -n*int(m.count), done
	m.mu.Unlock()
	<-done
}

// Leader answers from memory.
//
//nolint:revive // the four results are the port's
func (m *treadmill) Leader(kafka.TopicPartition) (node int32, epoch kafka.LeaderEpoch, id kafka.TopicID, ok bool) {
	return 1, 0, kafka.TopicID{}, true
}
func (m *treadmill) Silent(int32) bool                                    { return false }
func (m *treadmill) RefreshMetadata(context.Context, ...string) error     { return nil }
func (m *treadmill) NoteLeader(kafka.TopicPartition, kafka.LeaderHint)    {}
func (m *treadmill) DialFetch(context.Context, int32) (Fetcher, error)    { return &belt{mill: m}, nil }
func (m *treadmill) DialProduce(context.Context, int32) (Producer, error) { return newBin(m), nil }
func (m *treadmill) ListOffsets(context.Context, []kafka.TopicPartition, kafka.OffsetAt, kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	return nil
}

// belt is a connection of the source.
type belt struct {
	mill   *treadmill
	wants  []kafka.FetchPartition
	answer kafka.Fetched
	blocks sync.Pool
}

func (b *belt) Want(p kafka.FetchPartition) {
	b.Forget(p.TopicPartition)
	b.wants = append(b.wants, p)
}

func (b *belt) Forget(tp kafka.TopicPartition) {
	b.wants = slices.DeleteFunc(b.wants, func(p kafka.FetchPartition) bool { return p.TopicPartition == tp })
}

func (b *belt) Close() {}

func (b *belt) Fetch(ctx context.Context, _ kafka.FetchLimits) (*kafka.Fetched, error) {
	m := b.mill
	m.mu.Lock()
	n := min(m.batches*len(b.wants), m.left)
	m.left -= n
	m.mu.Unlock()
	if n == 0 {
		sleep(ctx, time.Millisecond)
	}
	buf := b.block(n * len(m.batch))
	rest := buf.Bytes()
	b.answer = kafka.Fetched{Buffer: buf, Partitions: b.answer.Partitions[:0]}
	for _, w := range b.wants {
		size := min(m.batches, n) * len(m.batch)
		n -= min(m.batches, n)
		records := rest[:size:size]
		rest = rest[size:]
		for at := 0; at < size; at += len(m.batch) {
			copy(records[at:], m.batch)
			binary.BigEndian.PutUint64(records[at:], uint64(w.Offset))
			w.Offset += m.count
		}
		b.answer.Partitions = append(b.answer.Partitions, kafka.FetchedPartition{
			TopicPartition: w.TopicPartition, HighWatermark: w.Offset, PreferredReplica: kafka.NoNode,
			DivergingEpoch: kafka.NoLeaderEpoch, Records: records,
		})
	}
	return &b.answer, ctx.Err()
}

func (b *belt) block(n int) *kafka.Buffer {
	if buf, ok := b.blocks.Get().(*kafka.Buffer); ok && cap(buf.Bytes()) >= n {
		buf.Reset(buf.Bytes()[:n])
		return buf
	}
	return kafka.NewBuffer(make([]byte, n, 8<<20), func(buf *kafka.Buffer) { b.blocks.Put(buf) })
}

// bin is a connection of the target. It answers on a goroutine of its own.
type bin struct {
	mill   *treadmill
	sent   chan sending
	closed sync.Once
}

type sending struct {
	req  *kafka.ProduceRequest
	done func(*kafka.Produced, error)
}

func newBin(m *treadmill) *bin {
	b := &bin{mill: m, sent: make(chan sending, 64)}
	go b.run()
	return b
}

func (b *bin) Send(req *kafka.ProduceRequest, done func(*kafka.Produced, error)) error {
	b.sent <- sending{req, done}
	return nil
}

func (b *bin) Close() { b.closed.Do(func() { close(b.sent) }) }

func (b *bin) run() {
	var answer kafka.Produced
	for s := range b.sent {
		answer.Partitions = answer.Partitions[:0]
		finished := b.mill.take(s.req, &answer)
		s.done(&answer, nil)
		if finished != nil {
			close(finished)
		}
	}
}

// take stores a request's batches. It returns what to close once all are stored.
func (m *treadmill) take(req *kafka.ProduceRequest, answer *kafka.Produced) (finished chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range req.Partitions {
		p := &req.Partitions[i]
		h, _ := recordbatch.ParseHeader(p.Batch)
		answer.Partitions = append(answer.Partitions, kafka.ProducedPartition{
			TopicPartition: p.TopicPartition, BaseOffset: m.stored[p.TopicPartition], Leader: kafka.LeaderHint{Node: kafka.NoNode},
		})
		m.stored[p.TopicPartition] += int64(h.Count)
		if p.Topic == "A.orders" {
			m.taken += int(h.Count)
		}
	}
	if m.taken >= 0 && m.done != nil {
		finished, m.done = m.done, nil
	}
	return finished
}

// spin runs eight tracks on a treadmill.
func spin(tb testing.TB, records int) *treadmill {
	tb.Helper()
	m := newTreadmill(tb, records)
	task := New(Deps{Source: m, Target: m, Budget: NewBudget(256 << 20), Log: slog.New(slog.DiscardHandler), Ledger: &memoryLedger{}}, Options{
		Flow: mirror.FlowID{Source: "A", Target: "B"}, FetchMaxBytes: 50 << 20, PartitionMaxBytes: 1 << 20,
		FetchMaxWait: time.Second, MaxRequestBytes: 1 << 20, RequestTimeout: time.Second,
		Connections: 1, CommitEvery: time.Hour, OffsetLagMax: 100,
	})
	tb.Cleanup(task.Close)
	lane := task.OpenLane(LaneSpec{
		Producer:  kafka.ProducerID{ID: 1},
		Positions: kafka.TopicPartition{Topic: positionsTopic}, Runs: kafka.TopicPartition{Topic: runsTopic},
	})
	for p := range int32(8) {
		lane.Start([]TrackSpec{spec(p)})
	}
	return m
}

// BenchmarkForward is the data plane without its connections: one batch each.
func BenchmarkForward(b *testing.B) {
	for name, records := range map[string]int{"one record": 1, "16 KiB": 16, "64 KiB": 64} {
		b.Run(name, func(b *testing.B) {
			m := spin(b, records)
			m.serve(5_000)
			b.SetBytes(int64(len(m.batch)))
			b.ReportAllocs()
			b.ResetTimer()
			m.serve(b.N)
		})
	}
}
