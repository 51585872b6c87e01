package replicate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
)

const (
	// sinkRequests is how many requests one connection has in flight. A broker
	// works on one at a time; more only hide the round trip.
	sinkRequests = 5
	// sinkBytes bounds the unanswered bytes of a connection, and with it the
	// bytes whose fate is unknown when it breaks.
	sinkBytes = 8 << 20
)

// sink writes to one target broker over one connection. Outlets queue up in it
// and each request carries at most one batch of each.
type sink struct {
	task *Task
	node int32
	slot int // which of the node's connections

	mu       sync.Mutex
	queue    ring[*outlet]
	queuedIn map[*outlet]struct{}
	conn     Producer // nil while there is none
	// unanswered are the requests in flight, bytes their batches.
	unanswered map[*request]struct{}
	bytes      int
	// pumping is set while somebody builds and sends requests; again asks that
	// one to look once more. finishing counts those who hand out answers and
	// will pump when they are through.
	pumping, again bool
	finishing      int

	wake chan struct{}
}

func newSink(t *Task, node int32, slot int) *sink {
	return &sink{task: t, node: node, slot: slot, queuedIn: map[*outlet]struct{}{}, unanswered: map[*request]struct{}{}, wake: make(chan struct{}, 1)}
}

// enqueue puts an outlet in line; an outlet stands in line once. It may be
// called with an outlet's lock held.
func (s *sink) enqueue(o *outlet) {
	s.mu.Lock()
	if _, in := s.queuedIn[o]; !in {
		s.queuedIn[o] = struct{}{}
		s.queue.push(o)
	}
	s.again = s.again || s.pumping
	later := s.pumping || s.finishing > 0 || s.blockedLocked()
	s.mu.Unlock()
	if !later { // else whoever is at it sends, or who brings the answer that makes room
		s.signal()
	}
}

// blockedLocked reports whether enough is in flight.
func (s *sink) blockedLocked() bool {
	return len(s.unanswered) >= sinkRequests || (len(s.unanswered) > 0 && s.bytes >= sinkBytes)
}

func (s *sink) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run serves the queue until ctx ends.
func (s *sink) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !s.waitQueued(ctx) {
			return
		}
		conn, err := s.task.target.DialProduce(ctx, s.node)
		if err != nil {
			s.failQueued(err)
			sleep(ctx, dialPause)
			continue
		}
		s.connected(conn)
		s.serve(ctx, conn)
		s.connected(nil)
		conn.Close()
	}
}

func (s *sink) connected(conn Producer) {
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
}

// dialPause keeps a sink whose broker is away from spinning; its outlets have
// their own, growing pauses.
const dialPause = 100 * time.Millisecond

func (s *sink) waitQueued(ctx context.Context) bool {
	for {
		s.mu.Lock()
		n := s.queue.len()
		s.mu.Unlock()
		if n > 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.wake:
		}
	}
}

// failQueued tells every outlet in line that its broker cannot be reached. An
// outlet whose entries were never sent is told the same way: it looks for its
// leader again.
func (s *sink) failQueued(err error) {
	s.mu.Lock()
	var queued []*outlet
	for s.queue.len() > 0 {
		o := s.queue.pop()
		delete(s.queuedIn, o)
		queued = append(queued, o)
	}
	s.mu.Unlock()
	for _, o := range queued {
		o.mu.Lock()
		if o.sink == s && o.app.phase == flowing && o.app.waiting == 0 {
			o.app.phase = halted
			o.owner.onHalted(failure{class: kafka.ClassRefresh, message: err.Error()})
		}
		o.mu.Unlock()
	}
}

// serve sends requests until the connection fails or ctx ends. While answers
// come in, whoever brings one sends the next request at once: that goroutine
// runs already. This one is for what is enqueued when nothing is under way.
func (s *sink) serve(ctx context.Context, conn Producer) {
	l := &line{sink: s, conn: conn}
	for ctx.Err() == nil && !l.broken.Load() {
		l.pump()
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
	}
}

// line is one connection of a sink, from its start to its first failure.
type line struct {
	sink   *sink
	conn   Producer
	broken atomic.Bool // a request failed
}

// pump sends what there is. One goroutine at a time does, so that requests are
// sent in the order in which their batches were bound to sequences; another one
// that comes meanwhile leaves its work to the first.
func (l *line) pump() {
	s := l.sink
	s.mu.Lock()
	if s.pumping {
		s.again = true
		s.mu.Unlock()
		return // a broken connection's pump signals in the end
	}
	s.pumping = true
	for more := true; more; more = s.again {
		s.again = false
		s.mu.Unlock()
		for !l.broken.Load() {
			req := s.build()
			if req == nil {
				break
			}
			req.line = l
			if err := l.conn.Send(&req.ProduceRequest, req.done); err != nil {
				req.answered(nil, err)
			}
		}
		s.mu.Lock()
	}
	s.pumping = false
	s.mu.Unlock()
	if l.broken.Load() {
		s.signal() // what was left to this pump is for the next connection's
	}
}

// request is a produce request with the outlets its batches came from.
type request struct {
	kafka.ProduceRequest
	outlets []*outlet
	bytes   int

	line *line
	done func(*kafka.Produced, error) // answered, bound once
}

func newRequest() *request {
	r := &request{}
	r.done = r.answered
	return r
}

func (r *request) answered(p *kafka.Produced, err error) {
	l := r.line
	if err != nil {
		l.broken.Store(true)
	}
	l.sink.finish(r, p, err)
	l.pump()
}

// build gathers the next request, or returns nil while there is nothing to
// send or enough is in flight.
func (s *sink) build() *request {
	s.mu.Lock()
	blocked := s.blockedLocked()
	n := s.queue.len()
	s.mu.Unlock()
	if blocked || n == 0 {
		return nil
	}
	req := s.task.requests.Get().(*request)
	req.Acks, req.TimeoutMillis = -1, int32(s.task.opts.RequestTimeout.Milliseconds())
	limit := int(s.task.opts.MaxRequestBytes)
	for range n {
		o := s.next()
		if o == nil {
			break
		}
		if len(req.outlets) == 0 {
			req.TransactionalID = o.txnID
		} else if o.txnID != req.TransactionalID {
			s.enqueue(o) // a request belongs to one transactional id, or to none
			continue
		}
		room := limit - req.bytes
		if len(req.outlets) == 0 {
			room = -1 // one batch always fits, whatever its size
		}
		p, ok, more := o.collect(s, room)
		if ok {
			req.Partitions = append(req.Partitions, p)
			req.outlets = append(req.outlets, o)
			req.bytes += len(p.Batch)
			req.Joins = o.joins.Load() // its transaction cannot end before the answer
		}
		if more {
			s.enqueue(o)
		}
		if !ok && more {
			break // the request is full
		}
	}
	if len(req.outlets) == 0 {
		s.task.recycle(req)
		return nil
	}
	s.mu.Lock()
	s.unanswered[req] = struct{}{}
	s.bytes += req.bytes
	s.mu.Unlock()
	return req
}

func (s *sink) next() *outlet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.len() == 0 {
		return nil
	}
	o := s.queue.pop()
	delete(s.queuedIn, o)
	return o
}

// finish hands a request's answers to its outlets.
func (s *sink) finish(req *request, p *kafka.Produced, err error) {
	s.mu.Lock()
	s.finishing++
	s.mu.Unlock()
	for i, o := range req.outlets {
		if err != nil {
			o.answer(nil, err)
			continue
		}
		if part := answerFor(p, i, o.tp); part != nil {
			o.answer(part, nil)
		} else {
			o.answer(nil, errors.New("the answer does not mention the partition"))
		}
	}
	s.mu.Lock()
	s.finishing--
	delete(s.unanswered, req)
	s.bytes -= req.bytes
	s.mu.Unlock()
	s.task.recycle(req)
}

// answerFor finds a partition's answer; brokers keep the request's order, so
// that the first look nearly always hits.
func answerFor(p *kafka.Produced, i int, tp kafka.TopicPartition) *kafka.ProducedPartition {
	if i < len(p.Partitions) && p.Partitions[i].TopicPartition == tp {
		return &p.Partitions[i]
	}
	for j := range p.Partitions {
		if p.Partitions[j].TopicPartition == tp {
			return &p.Partitions[j]
		}
	}
	return nil
}

// sleep waits, but not past the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
