package replicate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// model is a cluster in memory that keeps the broker's rules of
// docs/architecture.md: one batch per partition and request, sequences per
// producer with a memory of five batches, epochs that only rise, answers in
// order per connection. Faults are drawn from a seeded source.
type model struct {
	mu    sync.Mutex
	rng   *rand.Rand
	fault float64 // probability of a fault per request or partition
	nodes int32
	parts map[kafka.TopicPartition]*modelPartition
	calm  bool // no more faults
	// coordinator is that of the only transactional id.
	coordinator modelCoordinator
	// stale are topic ids that clients remember from before their topics were made
	// again, until they ask.
	stale map[kafka.TopicPartition]kafka.TopicID
	// down refuses connections, mute stores what it is sent and loses the answer.
	down, mute bool
	// hung brokers take requests and answer none; late is what they were sent before
	// the connection was cut, which they may work on yet.
	hanging sync.Mutex // for hung alone: a rule of a topic may sleep under mu
	hung    map[int32]time.Time
	late    map[int32][]*kafka.ProduceRequest
}

type modelPartition struct {
	id        kafka.TopicID
	leader    int32
	epoch     kafka.LeaderEpoch
	batches   [][]byte    // base offsets set
	fates     []*modelTxn // of each batch; nil outside transactions
	end       int64
	denied    bool // nobody may read it
	producers map[int64]*modelProducer
	open      *modelTxn                     // whose records no marker follows yet
	refuse    func(batch []byte) kafka.Code // a rule of the topic
}

type modelProducer struct {
	epoch  int16
	last   []modelBatch // the newest five
	marked bool         // nothing but a marker was written in the epoch
}

type modelBatch struct {
	first, last int32
	base        int64
}

func newModel(seed uint64, fault float64, nodes int32) *model {
	return &model{hung: map[int32]time.Time{}, late: map[int32][]*kafka.ProduceRequest{}, rng: rand.New(rand.NewPCG(seed, 2)), fault: fault, nodes: nodes, parts: map[kafka.TopicPartition]*modelPartition{}}
}

func (m *model) create(topic string, partitions int32) {
	for p := range partitions {
		m.parts[kafka.TopicPartition{Topic: topic, Partition: p}] = &modelPartition{
			leader: p % m.nodes, producers: map[int64]*modelProducer{},
		}
	}
}

// fails draws whether something goes wrong now.
func (m *model) fails() bool { return !m.calm && m.rng.Float64() < m.fault }

func (m *model) setCalm() { m.mu.Lock(); m.calm = true; m.mu.Unlock() }

// appendMarker adds a control batch, which a coordinator writes.
func (m *model) appendMarker(tp kafka.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[tp].end++
}

// appendRaw stores a batch at the log's end, as a source's producer would.
func (m *model) appendRaw(tp kafka.TopicPartition, batch []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[tp].store(batch)
}

// start is the first offset the log has.
func (p *modelPartition) start() int64 {
	if len(p.batches) == 0 {
		return p.end
	}
	return int64(binary.BigEndian.Uint64(p.batches[0]))
}

func (p *modelPartition) store(batch []byte) int64 {
	own := append([]byte(nil), batch...)
	binary.BigEndian.PutUint64(own, uint64(p.end))
	binary.BigEndian.PutUint32(own[12:], uint32(p.epoch))
	h, err := recordbatch.ParseHeader(own)
	if err != nil {
		panic(err)
	}
	base := p.end
	p.batches = append(p.batches, own)
	p.fates = append(p.fates, nil)
	p.end += int64(h.LastOffsetDelta) + 1
	return base
}

// produce is the broker's check of one batch (ProducerAppendInfo, LogValidator).
func (p *modelPartition) produce(batch []byte, txn *modelTxn) (int64, kafka.Code) {
	h, err := recordbatch.ParseHeader(batch)
	if err != nil {
		return 0, kafka.CodeCorruptMessage
	}
	b := recordbatch.Batch{Header: h, Bytes: batch}
	if b.VerifyChecksum() != nil {
		return 0, kafka.CodeCorruptMessage
	}
	if h.BaseOffset != 0 || h.Count != h.LastOffsetDelta+1 || b.Control() {
		return 0, kafka.CodeInvalidRecord
	}
	if p.refuse != nil {
		if code := p.refuse(batch); code != kafka.CodeNone {
			return 0, code
		}
	}
	pr := p.producers[h.ProducerID]
	if pr == nil {
		pr = &modelProducer{epoch: h.ProducerEpoch}
		p.producers[h.ProducerID] = pr
	}
	last := addSequence(h.BaseSequence, h.Count-1)
	if h.ProducerEpoch < pr.epoch {
		return 0, kafka.CodeInvalidProducerEpoch
	}
	if txn == nil && p.open != nil && p.open.producer == h.ProducerID {
		return 0, kafka.CodeInvalidTxnState // a plain batch, and the marker is still to come
	}
	if h.ProducerEpoch > pr.epoch {
		if h.BaseSequence != 0 {
			return 0, kafka.CodeOutOfOrderSequenceNumber
		}
		pr.epoch, pr.last, pr.marked = h.ProducerEpoch, nil, false
	}
	if pr.marked && h.BaseSequence != 0 {
		return 0, kafka.CodeOutOfOrderSequenceNumber // a marker began the epoch
	}
	pr.marked = false
	for _, old := range pr.last {
		if old.first == h.BaseSequence && old.last == last {
			return old.base, kafka.CodeNone // a repeat of one of the last five
		}
	}
	if n := len(pr.last); n > 0 && h.BaseSequence != addSequence(pr.last[n-1].last, 1) {
		return 0, kafka.CodeOutOfOrderSequenceNumber
	}
	base := p.store(batch)
	p.fates[len(p.fates)-1] = txn
	if txn != nil {
		p.open = txn
	}
	pr.last = append(pr.last, modelBatch{h.BaseSequence, last, base})
	if len(pr.last) > maxOpen {
		pr.last = pr.last[1:]
	}
	return base, kafka.CodeNone
}

// Leader answers at once, as a client does from memory.
//
//nolint:revive // the four results are the port's
func (m *model) Leader(tp kafka.TopicPartition) (int32, kafka.LeaderEpoch, kafka.TopicID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parts[tp]
	if p == nil {
		return 0, 0, kafka.TopicID{}, false
	}
	if id, ok := m.stale[tp]; ok {
		return p.leader, p.epoch, id, true
	}
	return p.leader, p.epoch, p.id, true
}

func (m *model) RefreshMetadata(context.Context, ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails() {
		return errors.New("metadata: connection refused")
	}
	clear(m.stale)
	return nil
}

func (m *model) NoteLeader(kafka.TopicPartition, kafka.LeaderHint) {}

func (m *model) ListOffsets(_ context.Context, tps []kafka.TopicPartition, at kafka.OffsetAt, _ kafka.Isolation) map[kafka.TopicPartition]kafka.PartitionOffset {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[kafka.TopicPartition]kafka.PartitionOffset{}
	for _, tp := range tps {
		p := m.parts[tp]
		o := kafka.PartitionOffset{}
		if at == kafka.Latest {
			o.Offset = p.end
		} else {
			o.Offset = p.start()
		}
		out[tp] = o
	}
	return out
}

var errCut = errors.New("connection reset by peer")

func (m *model) DialFetch(_ context.Context, node int32) (Fetcher, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails() {
		return nil, errCut
	}
	return &modelFetcher{m: m, node: node, wants: map[kafka.TopicPartition]kafka.FetchPartition{}}, nil
}

type modelFetcher struct {
	m      *model
	node   int32
	closed atomic.Bool
	wants  map[kafka.TopicPartition]kafka.FetchPartition
}

func (f *modelFetcher) Want(p kafka.FetchPartition)    { f.wants[p.TopicPartition] = p }
func (f *modelFetcher) Forget(tp kafka.TopicPartition) { delete(f.wants, tp) }
func (f *modelFetcher) Close()                         { f.closed.Store(true) }

func (f *modelFetcher) Fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error) {
	deadline := time.Now().Add(time.Duration(limits.MaxWaitMillis) * time.Millisecond)
	for {
		if f.m.hangs(f.node) {
			if f.closed.Load() {
				return nil, errCut
			}
			sleep(ctx, time.Millisecond)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		answer, err := f.once(int(limits.MaxBytes))
		if err != nil || len(answer.Partitions) > 0 || !time.Now().Before(deadline) || ctx.Err() != nil {
			return answer, err
		}
		sleep(ctx, time.Millisecond)
	}
}

func (f *modelFetcher) once(room int) (*kafka.Fetched, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.fails() {
		return nil, errCut
	}
	answer := &kafka.Fetched{Buffer: kafka.NewBuffer(nil, nil)}
	for tp, want := range f.wants {
		p := f.m.parts[tp]
		if start := p.start(); want.Offset < start || want.Offset > p.end {
			answer.Partitions = append(answer.Partitions, kafka.FetchedPartition{
				TopicPartition: tp, Code: kafka.CodeOffsetOutOfRange, PreferredReplica: kafka.NoNode,
				Leader: kafka.LeaderHint{Node: kafka.NoNode}, DivergingEpoch: kafka.NoLeaderEpoch,
			})
			continue
		}
		part := kafka.FetchedPartition{
			TopicPartition: tp, HighWatermark: p.end, LastStableOffset: p.end, PreferredReplica: kafka.NoNode,
			Leader: kafka.LeaderHint{Node: kafka.NoNode}, DivergingEpoch: kafka.NoLeaderEpoch,
		}
		if p.leader != f.node || f.m.fails() {
			part.Code = kafka.CodeNotLeaderOrFollower
			answer.Partitions = append(answer.Partitions, part)
			continue
		}
		if p.denied {
			part.Code = kafka.CodeTopicAuthorizationFailed
			answer.Partitions = append(answer.Partitions, part)
			continue
		}
		for _, b := range p.batches {
			h, _ := recordbatch.ParseHeader(b)
			if h.BaseOffset+int64(h.LastOffsetDelta) < want.Offset {
				continue
			}
			if left := min(int(want.MaxBytes)-len(part.Records), room); len(part.Records) > 0 && len(b) > left {
				// As brokers do: the answer ends in the middle of a batch.
				part.Records = append(part.Records, b[:max(left, 0)]...)
				room -= max(left, 0)
				break
			}
			part.Records = append(part.Records, b...)
			room -= len(b)
		}
		if len(part.Records) > 0 {
			answer.Partitions = append(answer.Partitions, part)
		}
	}
	return answer, nil
}

func (m *model) DialProduce(_ context.Context, node int32) (Producer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails() {
		return nil, errCut
	}
	p := &modelProduce{m: m, node: node, requests: make(chan modelRequest, 64), closed: make(chan struct{})}
	go p.run()
	return p, nil
}

// modelProduce is one connection: requests are worked on in order, and its end
// fails all that are unanswered, whether or not they were applied.
type modelProduce struct {
	m        *model
	node     int32
	mu       sync.Mutex
	broken   bool
	requests chan modelRequest
	closed   chan struct{}
}

type modelRequest struct {
	req  *kafka.ProduceRequest
	done func(*kafka.Produced, error)
}

func (p *modelProduce) Send(req *kafka.ProduceRequest, done func(*kafka.Produced, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return errCut
	}
	p.requests <- modelRequest{req, done}
	return nil
}

func (p *modelProduce) Close() {
	p.mu.Lock()
	if !p.broken {
		p.broken = true
		close(p.requests)
	}
	p.mu.Unlock()
	<-p.closed
}

func (p *modelProduce) run() {
	defer close(p.closed)
	dead := false
	for r := range p.requests {
		time.Sleep(time.Duration(1+p.draw(3)) * time.Millisecond)
		taken := p.hangs(r.req)
		p.mu.Lock()
		dead = dead || p.broken || taken
		p.mu.Unlock()
		if dead {
			r.done(nil, errCut)
			continue
		}
		answer, err := p.apply(r.req)
		if err != nil {
			dead = true
		}
		r.done(answer, err)
	}
}

// hangs waits while the broker hangs. Cut off meanwhile, the request is the broker's
// already, and it reports true.
func (p *modelProduce) hangs(req *kafka.ProduceRequest) bool {
	for p.m.hangs(p.node) {
		p.mu.Lock()
		broken := p.broken
		p.mu.Unlock()
		if broken {
			p.m.keep(p.node, req)
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (p *modelProduce) draw(n int) int {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.m.rng.IntN(n)
}

// apply works on one request. A fault may cut the connection before or after
// the batches were stored, or refuse single partitions.
func (p *modelProduce) apply(req *kafka.ProduceRequest) (*kafka.Produced, error) {
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down || m.fails() {
		return nil, errCut
	}
	answer := &kafka.Produced{}
	seen := map[kafka.TopicPartition]bool{}
	for _, part := range req.Partitions {
		if seen[part.TopicPartition] {
			panic("two batches for one partition in a request")
		}
		seen[part.TopicPartition] = true
		log := m.parts[part.TopicPartition]
		out := kafka.ProducedPartition{TopicPartition: part.TopicPartition, Leader: kafka.LeaderHint{Node: kafka.NoNode}}
		switch {
		case log.id.Known() && log.id != part.TopicID:
			out.Code = kafka.CodeUnknownTopicID
		case log.leader != p.node:
			out.Code = kafka.CodeNotLeaderOrFollower
		case m.fails():
			out.Code = []kafka.Code{kafka.CodeNotEnoughReplicas, kafka.CodeNotLeaderOrFollower, kafka.CodeKafkaStorageError}[m.rng.IntN(3)]
			if m.rng.IntN(2) == 0 {
				log.leader, log.epoch = (log.leader+1)%m.nodes, log.epoch+1
			}
		default:
			out.BaseOffset, out.Code = m.produceLocked(part, req)
			if out.Code == kafka.CodeNone && m.fails() {
				out.Code = kafka.CodeNotEnoughReplicasAfterAppend // stored, but not acknowledged
			}
		}
		answer.Partitions = append(answer.Partitions, out)
	}
	if m.mute || m.fails() {
		return nil, errCut // the answer is lost
	}
	return answer, nil
}

// silentAfter is how long a model's broker hangs before clients notice.
const silentAfter = 7 * time.Second

// Silent is what a client finds out about a broker that hangs.
func (m *model) Silent(node int32) bool {
	m.hanging.Lock()
	defer m.hanging.Unlock()
	since, hangs := m.hung[node]
	return hangs && time.Since(since) >= silentAfter
}

func (m *model) hangs(node int32) bool {
	m.hanging.Lock()
	defer m.hanging.Unlock()
	_, hangs := m.hung[node]
	return hangs
}

func (m *model) hang(node int32) {
	m.hanging.Lock()
	defer m.hanging.Unlock()
	m.hung[node] = time.Now()
}

// moveFrom has the controller give a broker's partitions to others.
func (m *model) moveFrom(node int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		if p.leader == node {
			p.leader, p.epoch = (node+1)%m.nodes, p.epoch+1
		}
	}
}

// keep is a request that a broker took before it hung: it outlives its buffers.
func (m *model) keep(node int32, req *kafka.ProduceRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := *req
	own.Partitions = slices.Clone(req.Partitions)
	for i := range own.Partitions {
		own.Partitions[i].Batch = slices.Clone(own.Partitions[i].Batch)
	}
	m.late[node] = append(m.late[node], &own)
}

// wake lets a broker go on. What it was sent before is worked on first, for the
// partitions that it leads, or leads again.
func (m *model) wake(node int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, req := range m.late[node] {
		for _, part := range req.Partitions {
			if m.parts[part.TopicPartition].leader == node {
				_, _ = m.produceLocked(part, req) // nobody hears the answer
			}
		}
	}
	delete(m.late, node)
	m.hanging.Lock()
	delete(m.hung, node)
	m.hanging.Unlock()
}

// values reads a partition's record values in order.
func (m *model) values(t *testing.T, tp kafka.TopicPartition) []string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for i, raw := range m.parts[tp].batches {
		if txn := m.parts[tp].fates[i]; txn != nil && !txn.committed {
			continue // a read_committed reader does not see it
		}
		h, err := recordbatch.ParseHeader(raw)
		if err != nil {
			t.Fatal(err)
		}
		records, err := recordbatch.Records(&recordbatch.Batch{Header: h, Bytes: raw})
		if err != nil {
			t.Fatalf("%s at %d: %v", tp, h.BaseOffset, err)
		}
		for _, r := range records {
			out = append(out, string(r.Value))
		}
	}
	return out
}

// batchOf builds a batch of n numbered records.
func batchOf(t *testing.T, codec recordbatch.Codec, first, n int) []byte {
	t.Helper()
	records := make([]kafka.Record, n)
	for i := range records {
		records[i] = kafka.Record{Value: fmt.Appendf(nil, "record %d", first+i), Timestamp: int64(1_700_000_000_000 + first + i)}
	}
	b, err := recordbatch.Build(records, recordbatch.BuildOptions{Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// countRecords counts the records that lie in a part of a log.
func (m *model) countRecords(_ context.Context, tp kafka.TopicPartition, from, to mirror.DownstreamOffset) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var n int64
	for _, raw := range m.parts[tp].batches {
		h, err := recordbatch.ParseHeader(raw)
		if err != nil {
			return 0, err
		}
		if h.BaseOffset+int64(h.Count) > int64(from) && h.BaseOffset < int64(to) {
			n += int64(h.Count)
		}
	}
	return n, nil
}
