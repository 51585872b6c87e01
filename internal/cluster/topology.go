package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// refreshInterval is the least time between two metadata requests. Partitions
// that lose their leader together ask together, and get one answer.
const refreshInterval = 50 * time.Millisecond

// A topic is asked for again, though nobody missed anything, when its facts are
// between half of MetadataMaxAge and all of it old, each topic at its own time: with
// thousands of partitions a walk over all at once would be a burst of work here and
// on the broker. The cache is looked through agedSteps times in MetadataMaxAge.
const agedSteps = 20

type leader struct {
	node  int32
	epoch kafka.LeaderEpoch
}

type endpoint struct {
	host string
	port int32
}

func (e endpoint) addr() string { return net.JoinHostPort(e.host, strconv.Itoa(int(e.port))) }

// A topology caches who leads what, the topics' ids and the brokers' addresses.
// It learns from metadata and from the hints in fetch and produce answers.
//
// Invariant: a hint never replaces a leader of the same or a newer epoch.
// Invariant: at most one metadata request is under way; what is asked for
// meanwhile goes into the next.
type topology struct {
	client *Client
	kick   chan struct{}

	mu struct {
		sync.RWMutex
		leaders map[kafka.TopicPartition]leader
		parts   map[string]int32     // partitions cached per topic
		due     map[string]time.Time // when a topic's facts are to be asked for anew
		ids     map[string]kafka.TopicID
		nodes   map[int32]endpoint
		next    *refresh
		closed  bool
	}
}

// A refresh is one metadata request that has not been sent yet. done closes
// after err was set.
type refresh struct {
	topics map[string]struct{}
	done   chan struct{}
	err    error
}

func (t *topology) init(c *Client) {
	t.client = c
	t.kick = make(chan struct{}, 1)
	t.mu.leaders = make(map[kafka.TopicPartition]leader)
	t.mu.parts = make(map[string]int32)
	t.mu.due = make(map[string]time.Time)
	t.mu.ids = make(map[string]kafka.TopicID)
	t.mu.nodes = make(map[int32]endpoint)
}

// Leader tells who leads a partition as far as is known, without asking anyone.
// It is false for a partition never refreshed and for a leaderless one.
//
//nolint:revive // four facts of one lookup; a struct would only be taken apart again
func (c *Client) Leader(tp kafka.TopicPartition) (node int32, epoch kafka.LeaderEpoch, id kafka.TopicID, ok bool) {
	t := &c.topo
	t.mu.RLock()
	defer t.mu.RUnlock()
	l, ok := t.mu.leaders[tp]
	if !ok || l.node == kafka.NoNode {
		return kafka.NoNode, kafka.NoLeaderEpoch, t.mu.ids[tp.Topic], false
	}
	return l.node, l.epoch, t.mu.ids[tp.Topic], true
}

// Partitions tells how many partitions a topic has, as far as is known; 0 for a
// topic never refreshed and for one that is gone.
func (c *Client) Partitions(topic string) int32 {
	t := &c.topo
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.parts[topic]
}

// NoteLeader takes over a leader that an answer named, if its epoch is newer
// than what is known.
func (c *Client) NoteLeader(tp kafka.TopicPartition, hint kafka.LeaderHint) {
	if hint.Node == kafka.NoNode || hint.Epoch == kafka.NoLeaderEpoch {
		return
	}
	t := &c.topo
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.mu.leaders[tp]; ok && old.epoch < hint.Epoch {
		t.mu.leaders[tp] = leader{node: hint.Node, epoch: hint.Epoch}
	}
}

// noteNode takes over a broker's address that an answer named (KIP-951).
func (t *topology) noteNode(id int32, e endpoint) {
	t.mu.Lock()
	t.mu.nodes[id] = e
	t.mu.Unlock()
}

func (t *topology) node(id int32) (endpoint, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.mu.nodes[id]
	return e, ok
}

// RefreshMetadata asks the cluster for the named topics, or for its brokers alone
// when none is named, and returns when the cache has the answer. Callers that come
// while a request waits its turn share it. A topic that the cluster does not know
// leaves the cache; that is no error.
func (c *Client) RefreshMetadata(ctx context.Context, topics ...string) error {
	t := &c.topo
	t.mu.Lock()
	if t.mu.closed {
		t.mu.Unlock()
		return c.fail("refresh metadata", "", errClientClosed)
	}
	if t.mu.next == nil {
		t.mu.next = &refresh{topics: make(map[string]struct{}), done: make(chan struct{})}
	}
	r := t.mu.next
	for _, topic := range topics {
		r.topics[topic] = struct{}{}
	}
	t.mu.Unlock()
	select {
	case t.kick <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
		return c.fail("refresh metadata", "", r.err)
	case <-ctx.Done():
		return c.fail("refresh metadata", "", context.Cause(ctx))
	}
}

var errClientClosed = errors.New("the client is closed")

// addAged plans a request for the topics whose facts have become old.
func (t *topology) addAged(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic, due := range t.mu.due {
		if now.Before(due) {
			continue
		}
		if t.mu.next == nil {
			t.mu.next = &refresh{topics: make(map[string]struct{}), done: make(chan struct{})}
		}
		t.mu.next.topics[topic] = struct{}{}
	}
}

// dueAfter draws how long a topic's facts count, so that topics that were learned
// together drift apart.
func (t *topology) dueAfter() time.Duration {
	half := t.client.opts.MetadataMaxAge / 2
	return half + rand.N(half+1) //nolint:gosec // it spreads load
}

// loop sends the refreshes, one at a time, until ctx ends.
func (t *topology) loop(ctx context.Context) {
	aged := time.NewTicker(max(t.client.opts.MetadataMaxAge/agedSteps, time.Millisecond))
	defer aged.Stop()
	defer t.shut()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-aged.C:
			t.addAged(now)
		case <-t.kick:
		}
		t.mu.Lock()
		r := t.mu.next
		t.mu.next = nil
		t.mu.Unlock()
		if r == nil {
			continue
		}
		r.err = t.request(ctx, r)
		close(r.done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshInterval):
		}
	}
}

// shut answers whoever waits for a refresh that will not come.
func (t *topology) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.closed = true
	if r := t.mu.next; r != nil {
		r.err = errClientClosed
		close(r.done)
		t.mu.next = nil
	}
}

func (t *topology) request(ctx context.Context, r *refresh) error {
	t.client.stats.metadataRefreshes.Add(1)
	names := make([]string, 0, len(r.topics))
	for topic := range r.topics {
		names = append(names, topic)
	}
	resp, err := t.client.metadata(ctx, names)
	if err != nil {
		return err
	}
	t.learn(resp)
	return nil
}

// metadata asks for the named topics; none asks for the brokers alone.
func (c *Client) metadata(ctx context.Context, names []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(names))
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = new(name)
		req.Topics = append(req.Topics, topic)
	}
	return c.askMetadata(ctx, req)
}

func (c *Client) askMetadata(ctx context.Context, req *kmsg.MetadataRequest) (*kmsg.MetadataResponse, error) {
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, err
	}
	for i := range resp.Brokers {
		b := &resp.Brokers[i]
		c.topo.noteNode(b.NodeID, endpoint{host: b.Host, port: b.Port})
	}
	return resp, nil
}

func (t *topology) learn(resp *kmsg.MetadataResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range resp.Topics {
		topic := &resp.Topics[i]
		if topic.Topic == nil {
			continue
		}
		name, id := *topic.Topic, kafka.TopicID(topic.TopicID)
		switch kafka.Code(topic.ErrorCode) {
		case kafka.CodeNone:
			t.learnTopic(name, id, topic.Partitions)
		case kafka.CodeUnknownTopicOrPartition, kafka.CodeUnknownTopicID:
			t.forget(name)
		}
	}
}

func (t *topology) learnTopic(name string, id kafka.TopicID, parts []kmsg.MetadataResponseTopicPartition) {
	same := t.mu.ids[name] == id
	if !same {
		t.forget(name)
	}
	if id.Known() {
		t.mu.ids[name] = id
	}
	t.mu.due[name] = time.Now().Add(t.dueAfter())
	for i := range parts {
		p := &parts[i]
		tp := kafka.TopicPartition{Topic: name, Partition: p.Partition}
		t.mu.parts[name] = max(t.mu.parts[name], p.Partition+1)
		now := leader{node: p.Leader, epoch: kafka.LeaderEpoch(p.LeaderEpoch)}
		old, known := t.mu.leaders[tp]
		// Brokers learn of elections at different times: an answer may be older
		// than a hint. Without epochs (never from 2.4 on) the newest answer counts.
		if known && now.epoch != kafka.NoLeaderEpoch && now.epoch < old.epoch {
			continue
		}
		t.mu.leaders[tp] = now
	}
}

func (t *topology) forget(name string) {
	for p := range t.mu.parts[name] {
		delete(t.mu.leaders, kafka.TopicPartition{Topic: name, Partition: p})
	}
	delete(t.mu.parts, name)
	delete(t.mu.due, name)
	delete(t.mu.ids, name)
}
