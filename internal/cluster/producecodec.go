package cluster

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"heliograph/internal/kafka"
)

// A produceEncoder writes requests around batches that stay where they are.
type produceEncoder struct {
	clientID string
	scratch  []byte // all of a request but its batches
	cuts     []int  // where in scratch each batch goes
	order    []int  // the request's partitions, grouped by topic
	pieces   [][]byte
}

// choose picks the version and how topics are named. A transactional id keeps
// to the versions in which the coordinator must know the partition beforehand,
// unless partitions are to join by the request.
func (e *produceEncoder) choose(req *kafka.ProduceRequest, newest int16) (version int16, byID bool) {
	version = newest
	if req.TransactionalID != "" && !req.Joins {
		version = min(version, produceTxn1)
	}
	if version < produceTopicIDs {
		return version, false
	}
	for i := range req.Partitions {
		if !req.Partitions[i].TopicID.Known() {
			return produceTopicIDs - 1, false
		}
	}
	return version, true
}

// write sends a request and returns how many bytes it has.
func (e *produceEncoder) write(l *link, p *pendingProduce) (int64, error) {
	size := e.encode(p)
	e.pieces = e.pieces[:0]
	from := 0
	for i, cut := range e.cuts {
		e.pieces = append(e.pieces, e.scratch[from:cut], p.req.Partitions[e.order[i]].Batch)
		from = cut
	}
	e.pieces = append(e.pieces, e.scratch[from:])
	err := l.nc.writeAll(e.pieces)
	clear(e.pieces) // hold on to no batch
	return size, err
}

func (e *produceEncoder) encode(p *pendingProduce) int64 {
	e.group(p.req)
	flexible := p.version >= produceFlexible
	dst := appendHeader(e.scratch[:0], keyProduce, p.version, p.number, e.clientID, flexible)
	dst = appendNullable(dst, p.req.TransactionalID, flexible)
	dst = appendInt16(dst, p.req.Acks)
	dst = appendInt32(dst, p.req.TimeoutMillis)
	dst = appendLen(dst, e.topics(p.req), flexible)
	e.cuts = e.cuts[:0]
	total := int64(0)
	for i := 0; i < len(e.order); {
		n := e.sameTopic(p.req, i)
		first := &p.req.Partitions[e.order[i]]
		if p.byID {
			dst = append(dst, first.TopicID[:]...)
		} else {
			dst = appendString(dst, first.Topic, flexible)
		}
		dst = appendLen(dst, n, flexible)
		for _, at := range e.order[i : i+n] {
			part := &p.req.Partitions[at]
			dst = appendInt32(dst, part.Partition)
			dst = appendLen(dst, len(part.Batch), flexible)
			e.cuts = append(e.cuts, len(dst))
			total += int64(len(part.Batch))
			if flexible {
				dst = append(dst, 0)
			}
		}
		if flexible {
			dst = append(dst, 0)
		}
		i += n
	}
	if flexible {
		dst = append(dst, 0)
	}
	e.scratch = dst
	total += int64(len(dst))
	binary.BigEndian.PutUint32(dst, uint32(total-4))
	return total
}

// group orders the partitions so that a topic's stand together: a broker drops
// a topic that is named twice in one request.
func (e *produceEncoder) group(req *kafka.ProduceRequest) {
	e.order = e.order[:0]
	sorted := true
	for i := range req.Partitions {
		e.order = append(e.order, i)
		sorted = sorted && (i == 0 || compareTopics(req, i-1, i) <= 0)
	}
	if !sorted {
		slices.SortStableFunc(e.order, func(a, b int) int { return compareTopics(req, a, b) })
	}
}

func compareTopics(req *kafka.ProduceRequest, a, b int) int {
	x, y := &req.Partitions[a], &req.Partitions[b]
	return cmp.Or(cmp.Compare(x.Topic, y.Topic), bytes.Compare(x.TopicID[:], y.TopicID[:]))
}

// sameTopic counts the partitions from the i-th on that share its topic.
func (e *produceEncoder) sameTopic(req *kafka.ProduceRequest, i int) int {
	n := 1
	for i+n < len(e.order) && compareTopics(req, e.order[i], e.order[i+n]) == 0 {
		n++
	}
	return n
}

func (e *produceEncoder) topics(req *kafka.ProduceRequest) int {
	n := 0
	for i := 0; i < len(e.order); i += e.sameTopic(req, i) {
		n++
	}
	return n
}

// A produceDecoder reads answers into memory that it uses again.
type produceDecoder struct {
	client *Client
	buf    []byte
	answer kafka.Produced
	at     int // where in the request the last topic was found
}

// maxKeptAnswer is how large an answer's memory may grow and be kept.
const maxKeptAnswer = 256 << 10

// block is memory for an answer of n bytes.
func (d *produceDecoder) block(n int) []byte {
	if n <= cap(d.buf) {
		return d.buf[:n]
	}
	b := make([]byte, n)
	if n <= maxKeptAnswer {
		d.buf = b
	}
	return b
}

func (d *produceDecoder) decode(b []byte, p *pendingProduce) error {
	r := reader{b: b, flexible: p.version >= produceFlexible}
	if got := r.int32(); got != p.number {
		return errOrder(got, p.number)
	}
	r.skipTags()
	d.answer = kafka.Produced{Partitions: d.answer.Partitions[:0]}
	d.at = 0
	for range r.count(leastTopic) {
		topic := d.topic(&r, p)
		for range r.count(leastProduced) {
			d.decodePartition(&r, topic, p.version)
		}
		r.skipTags()
	}
	d.answer.ThrottleMillis = r.int32()
	for range r.tags() {
		number, tr := r.tag()
		if number == 0 {
			d.client.decodeNodes(&tr)
		}
	}
	return r.end()
}

// leastProduced is the least a partition takes in an answer.
const leastProduced = 22

// topic finds the answer's topic in the request, which spares a string. The
// search begins where the last one ended: brokers keep most of the order.
func (d *produceDecoder) topic(r *reader, p *pendingProduce) string {
	var id, name []byte
	if p.byID {
		id = r.span(16)
	} else {
		name = r.text()
	}
	parts := p.req.Partitions
	for range parts {
		part := &parts[d.at]
		if p.byID && bytes.Equal(part.TopicID[:], id) || !p.byID && part.Topic == string(name) {
			return part.Topic
		}
		if d.at++; d.at == len(parts) {
			d.at = 0
		}
	}
	return string(name)
}

func (d *produceDecoder) decodePartition(r *reader, topic string, v int16) {
	p := kafka.ProducedPartition{
		LogStartOffset: -1,
		Leader:         kafka.LeaderHint{Node: kafka.NoNode, Epoch: kafka.NoLeaderEpoch},
	}
	p.TopicPartition = kafka.TopicPartition{Topic: topic, Partition: r.int32()}
	p.Code = kafka.Code(r.int16())
	p.BaseOffset = r.int64()
	p.LogAppendTime = r.int64()
	if v >= 5 {
		p.LogStartOffset = r.int64()
	}
	if v >= 8 {
		for range r.count(6) {
			e := kafka.RecordError{Index: r.int32(), Message: string(r.text())}
			r.skipTags()
			p.RecordErrors = append(p.RecordErrors, e)
		}
		p.Message = string(r.text())
	}
	for range r.tags() {
		number, tr := r.tag()
		if number == 0 {
			p.Leader = decodeLeader(&tr)
		}
		r.bad = r.bad || tr.bad
	}
	d.answer.Partitions = append(d.answer.Partitions, p)
}
