package coord

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
	"heliograph/internal/replicate"
)

// model is a cluster of one broker in memory: logs of raw batches, and of the
// transaction coordinator what a fence needs. Package replicate's tests have the
// broker's sequences and its faults.
type model struct {
	mu   sync.Mutex
	logs map[kafka.TopicPartition]*modelLog
	ids  map[string]kafka.TopicID

	away    bool  // nothing can be written
	denied  error // what the coordinator answers a transactional id
	plain   int64 // the next producer id without one
	pid     kafka.ProducerID
	open    []kafka.TopicPartition // of the open transaction
	slow    bool                   // markers are not written when a transaction ends, but by writeMarkers
	pending []kafka.TopicPartition // their markers are to be written
	marked  []kafka.TopicPartition // all that ever got a marker
}

type modelLog struct {
	batches    [][]byte // with their offsets
	start, end int64
	epochs     map[int64]int16 // by producer id
}

func newModel(pid kafka.ProducerID) *model {
	return &model{logs: map[kafka.TopicPartition]*modelLog{}, ids: map[string]kafka.TopicID{}, plain: 5000, pid: pid}
}

func (m *model) create(topic string, id byte, partitions int32) {
	m.ids[topic] = kafka.TopicID{id}
	for p := range partitions {
		m.logs[kafka.TopicPartition{Topic: topic, Partition: p}] = &modelLog{epochs: map[int64]int16{}}
	}
}

// lay puts records into a log at their own offsets, size to a batch.
func (m *model) lay(tp kafka.TopicPartition, records []kafka.Record, size int, o recordbatch.BuildOptions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logs[tp]
	o.KeepOffsets = true
	for some := range slices.Chunk(records, size) {
		b, err := recordbatch.Build(some, o)
		if err != nil {
			panic(err)
		}
		l.batches = append(l.batches, b)
		l.end = some[len(some)-1].Offset + 1
	}
}

// write appends records as one batch of a producer.
func (m *model) write(tp kafka.TopicPartition, pid kafka.ProducerID, records ...kafka.Record) {
	b, err := recordbatch.Build(records, recordbatch.BuildOptions{})
	if err != nil {
		panic(err)
	}
	recordbatch.Seal(b, recordbatch.Stamp{ProducerID: pid.ID, Epoch: pid.Epoch})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logs[tp].append(b)
}

func (l *modelLog) append(batch []byte) int64 {
	base := l.end
	own := slices.Clone(batch)
	binary.BigEndian.PutUint64(own, uint64(base))
	h, err := recordbatch.ParseHeader(own)
	if err != nil {
		panic(err)
	}
	l.batches = append(l.batches, own)
	l.end += int64(h.LastOffsetDelta) + 1
	return base
}

// abortMarker is the control batch that ends an aborted transaction.
func abortMarker(pid kafka.ProducerID) []byte {
	b, err := recordbatch.Build([]kafka.Record{{Key: []byte{0, 0, 0, 0}, Value: []byte{0, 0, 0, 0, 0, 0}}}, recordbatch.BuildOptions{})
	if err != nil {
		panic(err)
	}
	recordbatch.Seal(b, recordbatch.Stamp{ProducerID: pid.ID, Epoch: pid.Epoch, Sequence: -1, Transactional: true})
	const attributes, checksum, control = 21, 17, 1 << 5
	b[attributes+1] |= control
	binary.BigEndian.PutUint32(b[checksum:], crc32.Checksum(b[attributes:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// data reads the records of a log, control batches left out.
func (m *model) data(tp kafka.TopicPartition) []kafka.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []kafka.Record
	for _, raw := range m.logs[tp].batches {
		h, err := recordbatch.ParseHeader(raw)
		if err != nil {
			panic(err)
		}
		b := recordbatch.Batch{Header: h, Bytes: raw}
		if b.Control() {
			continue
		}
		records, err := recordbatch.Records(&b)
		if err != nil {
			panic(err)
		}
		out = append(out, records...)
	}
	return out
}

// Leader answers from memory.
//
//nolint:revive // the four results are the port's
func (m *model) Leader(tp kafka.TopicPartition) (int32, kafka.LeaderEpoch, kafka.TopicID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return 0, 0, m.ids[tp.Topic], m.logs[tp] != nil
}

func (m *model) RefreshMetadata(context.Context, ...string) error { return nil }

func (m *model) NoteLeader(kafka.TopicPartition, kafka.LeaderHint) {}
func (m *model) Silent(int32) bool                                 { return false }

func (m *model) ListOffsets(_ context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, _ kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[kafka.TopicPartition]kafka.PartitionOffset{}
	for _, tp := range tps {
		l := m.logs[tp]
		switch {
		case l == nil:
			out[tp] = kafka.PartitionOffset{Err: kafka.CodeUnknownTopicOrPartition}
		case at == kafka.Latest:
			out[tp] = kafka.PartitionOffset{Offset: l.end}
		default:
			out[tp] = kafka.PartitionOffset{Offset: l.start}
		}
	}
	return out
}

func (m *model) ReadRecords(_ context.Context, tp kafka.TopicPartition, from, to int64, _ kafka.Isolation, fn func(kafka.Record) error) error {
	for _, r := range m.data(tp) {
		if r.Offset < from || r.Offset >= to {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) InitProducerID(_ context.Context, txnID string, _ time.Duration) (kafka.ProducerID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if txnID == "" {
		m.plain++
		return kafka.ProducerID{ID: m.plain}, nil
	}
	if m.denied != nil {
		return kafka.NoProducer, m.denied
	}
	m.pid.Epoch++
	return m.pid, nil
}

func (m *model) AddPartitionsToTxn(_ context.Context, _ string, pid kafka.ProducerID, tps []kafka.TopicPartition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pid != m.pid {
		return kafka.CodeProducerFenced
	}
	m.open = append(m.open, tps...)
	return nil
}

func (m *model) EndTxn(_ context.Context, _ string, pid kafka.ProducerID, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pid != m.pid {
		return kafka.CodeProducerFenced
	}
	m.pending, m.open = append(m.pending, m.open...), nil
	if !m.slow {
		m.writeMarkersLocked()
	}
	return nil
}

// CommitTxn commits by protocol 2: the epoch rises.
func (m *model) CommitTxn(ctx context.Context, txnID string, pid kafka.ProducerID) (kafka.ProducerID, error) {
	if err := m.EndTxn(ctx, txnID, pid, true); err != nil {
		return kafka.NoProducer, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pid.Epoch++
	return m.pid, nil
}

// writeMarkers does what a slow coordinator does in the end.
func (m *model) writeMarkers() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeMarkersLocked()
}

func (m *model) writeMarkersLocked() {
	for _, tp := range m.pending {
		l := m.logs[tp]
		l.append(abortMarker(m.pid))
		l.epochs[m.pid.ID] = m.pid.Epoch
	}
	m.marked, m.pending = append(m.marked, m.pending...), nil
}

func (m *model) DialFetch(context.Context, int32) (replicate.Fetcher, error) {
	return &modelFetcher{m: m, wants: map[kafka.TopicPartition]kafka.FetchPartition{}}, nil
}

type modelFetcher struct {
	m     *model
	wants map[kafka.TopicPartition]kafka.FetchPartition
}

func (f *modelFetcher) Want(p kafka.FetchPartition)    { f.wants[p.TopicPartition] = p }
func (f *modelFetcher) Forget(tp kafka.TopicPartition) { delete(f.wants, tp) }
func (f *modelFetcher) Close()                         {}

// Fetch answers with one batch per partition, or empty after the wait.
func (f *modelFetcher) Fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error) {
	answer := f.once()
	if len(answer.Partitions) == 0 {
		pause(ctx, time.Duration(limits.MaxWaitMillis)*time.Millisecond)
		answer = f.once()
	}
	return answer, ctx.Err()
}

func (f *modelFetcher) once() *kafka.Fetched {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	answer := &kafka.Fetched{Buffer: kafka.NewBuffer(nil, nil)}
	for tp, want := range f.wants {
		l := f.m.logs[tp]
		part := kafka.FetchedPartition{
			TopicPartition: tp, HighWatermark: l.end, LastStableOffset: l.end, LogStartOffset: l.start,
			PreferredReplica: kafka.NoNode, Leader: kafka.LeaderHint{Node: kafka.NoNode}, DivergingEpoch: kafka.NoLeaderEpoch,
		}
		if want.Offset < l.start || want.Offset > l.end {
			part.Code = kafka.CodeOffsetOutOfRange
		}
		for _, b := range l.batches {
			if h, _ := recordbatch.ParseHeader(b); part.Code == kafka.CodeNone && h.BaseOffset+int64(h.LastOffsetDelta) >= want.Offset {
				part.Records = slices.Clone(b)
				break
			}
		}
		if part.Code != kafka.CodeNone || part.Records != nil {
			answer.Partitions = append(answer.Partitions, part)
		}
	}
	return answer
}

func (m *model) DialProduce(context.Context, int32) (replicate.Producer, error) {
	p := &modelProducer{m: m, requests: make(chan modelRequest, 64), done: make(chan struct{})}
	go p.run()
	return p, nil
}

type modelRequest struct {
	req  *kafka.ProduceRequest
	done func(*kafka.Produced, error)
}

type modelProducer struct {
	m        *model
	requests chan modelRequest
	done     chan struct{}
}

func (p *modelProducer) Send(req *kafka.ProduceRequest, done func(*kafka.Produced, error)) error {
	p.requests <- modelRequest{req, done}
	return nil
}

func (p *modelProducer) Close() {
	close(p.requests)
	<-p.done
}

func (p *modelProducer) run() {
	defer close(p.done)
	for r := range p.requests {
		answer := &kafka.Produced{}
		for _, part := range r.req.Partitions {
			answer.Partitions = append(answer.Partitions, p.m.produce(part))
		}
		r.done(answer, nil)
	}
}

// produce appends a batch unless its producer was fenced.
func (m *model) produce(part kafka.ProducePartition) kafka.ProducedPartition {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := kafka.ProducedPartition{TopicPartition: part.TopicPartition, Leader: kafka.LeaderHint{Node: kafka.NoNode}}
	l := m.logs[part.TopicPartition]
	h, err := recordbatch.ParseHeader(part.Batch)
	switch {
	case m.away:
		out.Code = kafka.CodeNotLeaderOrFollower
	case err != nil:
		out.Code = kafka.CodeCorruptMessage
	case h.ProducerEpoch < l.epochs[h.ProducerID]:
		out.Code = kafka.CodeInvalidProducerEpoch
	default:
		l.epochs[h.ProducerID] = h.ProducerEpoch
		out.BaseOffset = l.append(part.Batch)
	}
	return out
}

// memoryLedger keeps losses in memory.
type memoryLedger struct {
	mu      sync.Mutex
	entries []losses.Entry
	err     error // why nothing can be written
}

func (l *memoryLedger) Write(_ context.Context, e losses.Entry, _ *losses.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.entries = append(l.entries, e)
	return nil
}

var errDenied = &kafka.Error{Op: "init producer id", Class: kafka.ClassOperator, Err: kafka.CodeTransactionalIDAuthorizationFailed}

var errLedger = errors.New("the ledger's topic has no leader")

// positionAt is a position's record. facts are nil for one of Java MirrorMaker.
func positionAt(tp kafka.TopicPartition, next int64, facts *mirror.PositionFacts) kafka.Record {
	key := mirror.PositionKey{Connector: mirror.SourceConnector, Cluster: "A", Topic: tp.Topic, Partition: tp.Partition}
	r := kafka.Record{Key: key.AppendTo(nil), Value: mirror.AppendPositionValue(nil, mirror.UpstreamOffset(next-1)), Timestamp: 1}
	if facts != nil {
		r.Headers = facts.AppendHeader(nil)
	}
	return r
}

func keysOf(tps []kafka.TopicPartition) []string {
	set := map[string]bool{}
	for _, tp := range tps {
		set[tp.String()] = true
	}
	return slices.Sorted(maps.Keys(set))
}
