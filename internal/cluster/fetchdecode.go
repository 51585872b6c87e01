package cluster

import (
	"heliograph/internal/kafka"
)

// The least a topic, a partition, an aborted transaction and an address take in
// an answer; see [reader.count].
const (
	leastTopic     = 3
	leastPartition = 20
	leastAborted   = 16
	leastNode      = 9
)

// decodeAnswer reads a fetch answer in place into f.answer. Records and nothing
// else of it point into b.
func (f *FetchConn) decodeAnswer(b []byte, correlation int32) (kafka.Code, int32, error) {
	v := f.session.version
	r := reader{b: b, flexible: v >= fetchFlexible}
	if got := r.int32(); got != correlation {
		return 0, 0, errOrder(got, correlation)
	}
	r.skipTags()
	f.answer.ThrottleMillis = r.int32()
	var code kafka.Code
	var id int32
	if v >= 7 {
		code, id = kafka.Code(r.int16()), r.int32()
	}
	for range r.count(leastTopic) {
		topic := f.session.names.topic(&r, f.session.byID)
		for range r.count(leastPartition) {
			f.decodePartition(&r, topic, v)
		}
		r.skipTags()
	}
	for range r.tags() {
		number, tr := r.tag()
		if number == 0 {
			f.client.decodeNodes(&tr)
		}
	}
	return code, id, r.end()
}

func (f *FetchConn) decodePartition(r *reader, topic string, v int16) {
	p := kafka.FetchedPartition{
		LogStartOffset:   -1,
		PreferredReplica: kafka.NoNode,
		Leader:           kafka.LeaderHint{Node: kafka.NoNode, Epoch: kafka.NoLeaderEpoch},
		DivergingEpoch:   kafka.NoLeaderEpoch,
		DivergingEnd:     -1,
	}
	p.TopicPartition = kafka.TopicPartition{Topic: topic, Partition: r.int32()}
	p.Code = kafka.Code(r.int16())
	p.HighWatermark = r.int64()
	p.LastStableOffset = r.int64()
	if v >= 5 {
		p.LogStartOffset = r.int64()
	}
	p.Aborted = f.decodeAborted(r)
	if v >= 11 {
		p.PreferredReplica = r.int32()
	}
	p.Records = r.bytes()
	for range r.tags() {
		number, tr := r.tag()
		switch number {
		case 0:
			p.DivergingEpoch, p.DivergingEnd = kafka.LeaderEpoch(tr.int32()), tr.int64()
		case 1:
			p.Leader = decodeLeader(&tr)
		}
		r.bad = r.bad || tr.bad
	}
	// A topic id that nobody asked for belongs to no partition of ours.
	if topic != "" {
		f.answer.Partitions = append(f.answer.Partitions, p)
	}
}

// decodeAborted keeps all lists of an answer in one slice.
func (f *FetchConn) decodeAborted(r *reader) []kafka.AbortedTxn {
	start := len(f.aborted)
	for range r.count(leastAborted) {
		f.aborted = append(f.aborted, kafka.AbortedTxn{ProducerID: r.int64(), FirstOffset: r.int64()})
		r.skipTags()
	}
	if len(f.aborted) == start {
		return nil
	}
	return f.aborted[start:len(f.aborted):len(f.aborted)]
}

func decodeLeader(r *reader) kafka.LeaderHint {
	h := kafka.LeaderHint{Node: r.int32(), Epoch: kafka.LeaderEpoch(r.int32())}
	if r.bad {
		return kafka.LeaderHint{Node: kafka.NoNode, Epoch: kafka.NoLeaderEpoch}
	}
	return h
}

// decodeNodes learns the addresses of new leaders (KIP-951).
func (c *Client) decodeNodes(r *reader) {
	for range r.count(leastNode) {
		id, host, port := r.int32(), string(r.text()), r.int32()
		r.text() // rack
		r.skipTags()
		if !r.bad && host != "" && port > 0 {
			c.topo.noteNode(id, endpoint{host: host, port: port})
		}
	}
}
