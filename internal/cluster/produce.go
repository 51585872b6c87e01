package cluster

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// maxQueued bounds the requests one connection holds, written or not. Callers
// bound what is in flight far below it.
const maxQueued = 4096

// A ProduceConn writes to one broker over a connection of its own. Requests are
// written back to back, in the order of Send, and answered in that order.
//
// Send may be called by several goroutines. It writes on the caller's goroutine,
// or leaves the writing to one that is at it already, or to a timer while the
// broker wants a pause (KIP-219: that delays this connection alone). A reader
// goroutine, which the Client owns, calls done exactly once for each Send that
// returned nil.
//
// When the login nears its end, a second link is opened beside the first. It
// takes over once the first has no answer outstanding, so that requests never
// overtake each other.
//
// Invariant: queue[:written] are written and not answered, in order.
// Invariant: only the reader calls done, and only the goroutine that set
// writing touches the encoder.
type ProduceConn struct {
	client *Client
	enc    produceEncoder // owned by whoever set writing
	done   chan struct{}

	mu struct {
		sync.Mutex
		queue   []pendingProduce
		written int
		writing bool
		link    *link
		next    *link // waits for link to have no answer outstanding
		quiet   time.Time
		wake    *time.Timer // ends the pause
		wrote   *sync.Cond  // writing became false
		err     error       // why the connection ended
	}
}

// A pendingProduce is a request between Send and its answer.
type pendingProduce struct {
	req     *kafka.ProduceRequest
	done    func(*kafka.Produced, error)
	version int16 // set when written
	byID    bool
	number  int32 // correlation id
}

// DialProduce opens a connection to a broker for producing.
func (c *Client) DialProduce(ctx context.Context, node int32) (*ProduceConn, error) {
	l, err := c.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	if l.produce < 0 {
		l.close()
		return nil, &kafka.Error{
			Op: "produce", Cluster: c.opts.Alias, Subject: l.addr, Code: kafka.CodeUnsupportedVersion,
			Hint: "Kafka 2.4 is the oldest supported",
		}
	}
	p := c.newProduceConn(context.WithoutCancel(ctx), l)
	if p == nil {
		l.close()
		return nil, c.fail("produce", l.addr, errClientClosed)
	}
	return p, nil
}

// newProduceConn starts the reader of a link; nil if the client is closed. The
// values of ctx serve the renewal of logins, its end does not matter.
func (c *Client) newProduceConn(ctx context.Context, l *link) *ProduceConn {
	p := &ProduceConn{client: c, done: make(chan struct{}), enc: produceEncoder{clientID: c.opts.ClientID}}
	p.mu.link = l
	p.mu.wrote = sync.NewCond(&p.mu.Mutex)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil
	}
	c.mu.conns[p] = struct{}{}
	ctx, cancel := context.WithCancel(ctx)
	c.wg.Go(func() {
		defer cancel()
		p.read(ctx)
	})
	return p
}

// Send takes over a request: it and its batches must not change until done is
// called. It returns an error, and never calls done, where the connection has
// ended. done runs on the reader goroutine and must not wait for another answer
// of this connection; the Produced it gets is reused after it returns.
func (p *ProduceConn) Send(req *kafka.ProduceRequest, done func(*kafka.Produced, error)) error {
	if req.Acks == 0 {
		return p.refuse(errors.New("acks=0 has no answer"))
	}
	p.mu.Lock()
	if p.mu.err != nil {
		err := p.mu.err
		p.mu.Unlock()
		return err
	}
	if len(p.mu.queue) >= maxQueued {
		p.mu.Unlock()
		return p.refuse(errors.New("too many requests wait on one connection"))
	}
	if req.Joins && p.mu.link.produce < produceTxn2 {
		// An older version would write outside of any transaction that the coordinator knows.
		addr := p.mu.link.addr
		p.mu.Unlock()
		return &kafka.Error{
			Op: "produce", Cluster: p.client.opts.Alias, Subject: addr, Class: kafka.ClassRefresh, Err: kafka.CodeUnsupportedVersion,
			Hint: "the broker is older than the cluster's feature transaction.version says",
		}
	}
	p.mu.queue = append(p.mu.queue, pendingProduce{req: req, done: done})
	p.drainLocked()
	return nil
}

func (p *ProduceConn) refuse(err error) error {
	return &kafka.Error{Op: "produce", Cluster: p.client.opts.Alias, Class: kafka.ClassBug, Err: err}
}

// drainLocked writes what waits, if nobody is at it. It is called with the lock
// and returns without it; the lock is not held during a write.
func (p *ProduceConn) drainLocked() {
	if p.mu.writing {
		p.mu.Unlock()
		return
	}
	for p.mayWrite() {
		item := &p.mu.queue[p.mu.written]
		l := p.mu.link
		item.version, item.byID = p.enc.choose(item.req, l.produce)
		l.correlation++
		item.number = l.correlation
		sent := *item
		if p.mu.written == 0 {
			p.extend(l, item.req)
			l.wait.asked()
		}
		p.mu.written++
		p.mu.writing = true
		p.mu.Unlock()

		n, err := p.enc.write(l, &sent)
		p.client.stats.producedBytes.Add(n)

		p.mu.Lock()
		p.mu.writing = false
		p.mu.wrote.Broadcast()
		if err != nil {
			p.endLocked(err)
		}
	}
	p.mu.Unlock()
}

// mayWrite reports whether the next request can be written now. It switches to
// the fresh link when the old one has nothing outstanding.
func (p *ProduceConn) mayWrite() bool {
	if p.mu.err != nil {
		return false
	}
	if p.mu.next != nil {
		if p.mu.written > 0 {
			return false // the reader drains again when the last answer is in
		}
		old := p.mu.link
		p.mu.link, p.mu.next = p.mu.next, nil
		old.close() // wakes the reader, which goes on with the fresh link
	}
	if p.mu.written >= len(p.mu.queue) {
		return false
	}
	pause := time.Until(p.mu.quiet)
	if p.mu.quiet.IsZero() || pause <= 0 {
		return true
	}
	if p.mu.wake == nil {
		p.mu.wake = time.AfterFunc(pause, func() {
			p.mu.Lock()
			p.mu.wake = nil
			p.drainLocked()
		})
	}
	return false
}

// deadlineStep is how coarse a link's deadline is: moving it costs more than the
// rest of an answer.
const deadlineStep = time.Second

// extend moves the link's deadline behind the time by which the answer to a
// request that is first in line now must be in. It is for writes too: a done
// function may send on the reader's goroutine, and nobody would be left to see
// that the broker takes nothing.
func (p *ProduceConn) extend(l *link, req *kafka.ProduceRequest) {
	from := time.Now()
	if p.mu.quiet.After(from) {
		from = p.mu.quiet
	}
	by := from.Add(p.client.opts.RequestTimeout + time.Duration(req.TimeoutMillis)*time.Millisecond)
	if l.deadline.Before(by) {
		l.deadline = by.Add(deadlineStep)
		_ = l.nc.SetDeadline(l.deadline)
	}
}

// await waits for the next answer. A deadline that passes while none is awaited
// is an old request's, and means nothing.
func (p *ProduceConn) await(l *link, in *bufio.Reader) error {
	for {
		_, err := in.Peek(4)
		if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() || in.Buffered() > 0 {
			return nil // readSize tells what is wrong
		}
		p.mu.Lock()
		idle := p.mu.written == 0 && p.mu.err == nil
		if idle {
			l.deadline = time.Time{}
			_ = l.nc.SetDeadline(l.deadline)
		}
		p.mu.Unlock()
		if !idle {
			return cutOff(err)
		}
	}
}

// endLocked notes why the connection ends and wakes the reader, which fails
// what is left.
func (p *ProduceConn) endLocked(err error) {
	if p.mu.err != nil {
		return
	}
	p.mu.err = p.client.fail("produce", p.mu.link.addr, err)
	if p.mu.wake != nil {
		p.mu.wake.Stop()
		p.mu.wake = nil
	}
	if p.mu.next != nil {
		p.mu.next.close()
		p.mu.next = nil
	}
	p.mu.link.nc.abort()
}

// Close ends the connection. What is not answered fails on the reader
// goroutine; Done says when all of it has. Close does not wait, so that it can be
// called from a done function.
func (p *ProduceConn) Close() {
	p.mu.Lock()
	p.endLocked(errClosed)
	p.mu.Unlock()
}

// Done is closed after the connection has ended and the last done function has
// returned.
func (p *ProduceConn) Done() <-chan struct{} { return p.done }

// read is the reader goroutine: it answers requests until the connection ends.
func (p *ProduceConn) read(ctx context.Context) {
	p.mu.Lock()
	l := p.mu.link
	p.mu.Unlock()
	dec := produceDecoder{client: p.client}
	for l != nil {
		renewal := p.renewAt(ctx, l)
		err := p.readLink(l, &dec)
		renewal.stop()
		p.mu.Lock()
		if p.mu.link == l { // not replaced: the end
			p.endLocked(err)
			l.close()
			l = nil
		} else {
			l = p.mu.link
		}
		p.mu.Unlock()
	}
	p.failRest()
	p.client.mu.Lock()
	delete(p.client.mu.conns, p)
	p.client.mu.Unlock()
	close(p.done)
}

func (p *ProduceConn) readLink(l *link, dec *produceDecoder) error {
	in := bufio.NewReaderSize(l.nc, 4<<10)
	for {
		if err := p.await(l, in); err != nil {
			return err
		}
		n, err := l.readSize(in)
		if err != nil {
			return err
		}
		body := dec.block(n)
		if _, err := io.ReadFull(in, body); err != nil {
			return cutOff(err)
		}
		p.mu.Lock()
		if p.mu.written == 0 {
			p.mu.Unlock()
			return errors.New("an answer came that nobody awaited")
		}
		item := p.mu.queue[0]
		p.mu.Unlock()
		if err := dec.decode(body, &item); err != nil {
			return err
		}
		for i := range dec.answer.Partitions {
			a := &dec.answer.Partitions[i]
			p.client.NoteLeader(a.TopicPartition, a.Leader)
		}
		p.answered(l, dec.answer.ThrottleMillis)
		item.done(&dec.answer, nil)
	}
}

// answered takes the first request off the queue and lets more be written.
func (p *ProduceConn) answered(l *link, throttleMillis int32) {
	p.mu.Lock()
	p.shift()
	l.wait.heard(p.mu.written > 0)
	if throttleMillis > 0 {
		d := time.Duration(throttleMillis) * time.Millisecond
		p.client.stats.produceThrottle.Add(int64(d))
		p.mu.quiet = time.Now().Add(d)
	}
	if p.mu.written > 0 {
		p.extend(l, p.mu.queue[0].req)
	}
	p.drainLocked()
}

func (p *ProduceConn) shift() {
	n := copy(p.mu.queue, p.mu.queue[1:])
	p.mu.queue[n] = pendingProduce{}
	p.mu.queue = p.mu.queue[:n]
	p.mu.written--
}

// failRest fails what is left, in order.
func (p *ProduceConn) failRest() {
	for {
		p.mu.Lock()
		// A writer may still be at a request's bytes; the closed socket ends that.
		for p.mu.writing {
			p.mu.wrote.Wait()
		}
		if len(p.mu.queue) == 0 {
			p.mu.Unlock()
			return
		}
		item, err := p.mu.queue[0], p.mu.err
		p.mu.written = max(p.mu.written, 1)
		p.shift()
		p.mu.Unlock()
		item.done(nil, err)
	}
}

// A renewal opens the next link when the present one's login nears its end.
type renewal struct{ stop func() }

func (p *ProduceConn) renewAt(ctx context.Context, l *link) renewal {
	if l.reauth.IsZero() {
		return renewal{stop: func() {}}
	}
	ctx, cancel := context.WithCancel(ctx)
	finished := make(chan struct{})
	p.client.wg.Go(func() {
		defer close(finished)
		p.renew(ctx, l)
	})
	return renewal{stop: func() {
		cancel()
		<-finished
	}}
}

func (p *ProduceConn) renew(ctx context.Context, l *link) {
	for at := l.reauth; ; {
		t := time.NewTimer(time.Until(at))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		fresh, err := p.client.connect(ctx, l.node)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			p.client.opts.Log.Warn("login not renewed", "addr", l.addr, "err", err)
			at = time.Now().Add(max(time.Until(l.ended)/4, 10*time.Millisecond))
			continue
		}
		p.replace(l, fresh)
		return
	}
}

// replace hands the fresh link to the writer. An idle connection switches at once.
func (p *ProduceConn) replace(old, fresh *link) {
	p.client.stats.reauthentications.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.err != nil || p.mu.link != old {
		fresh.close()
		return
	}
	if p.mu.written > 0 || p.mu.writing {
		p.mu.next = fresh
		return
	}
	p.mu.link = fresh
	old.close()
}
