package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
)

// maxSessionRestarts bounds the tries of one Fetch when sessions are refused.
const maxSessionRestarts = 3

// bodyStep is how much of an answer may take one request timeout to arrive: a
// slow link is not a dead one.
const bodyStep = 1 << 20

// A FetchConn reads partitions of one broker over a connection of its own. It
// keeps a fetch session with the broker and renews its login by itself.
//
// One goroutine uses it; only Close may be called from others, and ends a Fetch
// that is under way. After Fetch returned an error the connection is finished:
// close it and dial another. A partition's own error is not one of those; it is
// in the answer.
type FetchConn struct {
	client  *Client
	pool    *pool
	session *fetchSession

	link  atomic.Pointer[link] // nil once finished
	use   sync.Mutex           // held by a Fetch under way
	ended atomic.Bool          // Close was called

	watched context.Context //nolint:containedctx // identity only: spares a registration per Fetch
	unwatch func() bool

	quiet   time.Time // no request before (KIP-219)
	scratch []byte
	answer  kafka.Fetched
	aborted []kafka.AbortedTxn
}

// DialFetch opens a connection to a broker for fetching.
func (c *Client) DialFetch(ctx context.Context, node int32) (*FetchConn, error) {
	return c.dialFetch(ctx, node, c.fetchPool)
}

func (c *Client) dialFetch(ctx context.Context, node int32, p *pool) (*FetchConn, error) {
	l, err := c.connect(ctx, node)
	if err != nil {
		return nil, err
	}
	if l.fetch < 0 {
		l.close()
		return nil, &kafka.Error{
			Op: "fetch", Cluster: c.opts.Alias, Subject: l.addr, Code: kafka.CodeUnsupportedVersion,
			Hint: "Kafka 2.4 is the oldest supported",
		}
	}
	if p == c.smallPool {
		l.wait.cutBy(l.nc.abort) // bookkeeping is read again, wherever it is
	}
	f := &FetchConn{client: c, pool: p, session: newFetchSession()}
	f.link.Store(l)
	return f, nil
}

// Want asks for a partition from the next Fetch on, or moves it to another
// offset or epoch. Every partition that delivered must be wanted anew, at its
// next offset.
func (f *FetchConn) Want(fp kafka.FetchPartition) { f.session.want(fp) }

// Forget takes a partition out. An answer under way may still have it.
func (f *FetchConn) Forget(tp kafka.TopicPartition) { f.session.forget(tp) }

// Fetch asks for what is wanted and waits for the answer. The caller has one
// reference of the answer's Buffer and releases it when it is done with the
// records. Fetched itself and its slices are reused by the next Fetch.
//
// MaxBytes bounds an answer, except that the first batch comes whole.
func (f *FetchConn) Fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error) {
	f.use.Lock()
	defer f.use.Unlock()
	l := f.link.Load()
	if l == nil {
		return nil, f.client.fail("fetch", "", errClosed)
	}
	if len(f.session.wants) == 0 {
		return nil, &kafka.Error{
			Op: "fetch", Cluster: f.client.opts.Alias, Subject: l.addr, Class: kafka.ClassBug,
			Err: errors.New("no partition is wanted"),
		}
	}
	got, err := f.fetch(ctx, limits)
	if err == nil {
		return got, nil
	}
	f.finish()
	switch {
	case f.ended.Load():
		err = errClosed
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return nil, f.client.fail("fetch", l.addr, err)
}

func (f *FetchConn) fetch(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error) {
	if err := f.pause(ctx); err != nil {
		return nil, err
	}
	f.renew(ctx)
	for range maxSessionRestarts {
		got, err := f.once(ctx, limits)
		if err != nil {
			return nil, err
		}
		if got != nil {
			return got, nil
		}
		f.client.stats.sessionRestarts.Add(1)
	}
	return nil, errors.New("the broker refuses every fetch session")
}

// once makes one round trip. No answer and no error mean that the session must
// start anew.
func (f *FetchConn) once(ctx context.Context, limits kafka.FetchLimits) (*kafka.Fetched, error) {
	l := f.link.Load()
	if l == nil {
		return nil, errClosed
	}
	f.watch(ctx)
	l.correlation++
	o := &f.client.opts
	f.scratch = f.session.appendRequest(f.scratch[:0], l.fetch, l.correlation, o.ClientID, o.Rack, limits)
	binary.BigEndian.PutUint32(f.scratch, uint32(len(f.scratch)-4))
	wait := time.Duration(limits.MaxWaitMillis)*time.Millisecond + o.RequestTimeout
	if err := f.deadline(ctx, l, wait); err != nil {
		return nil, err
	}
	asked := time.Now()
	l.wait.asked()
	if _, err := l.nc.Write(f.scratch); err != nil {
		return nil, cutOff(err)
	}
	n, err := l.readSize(l.nc)
	if err != nil {
		return nil, err
	}
	l.wait.heard(false)
	waited := time.Since(asked)
	buf, err := f.pool.get(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("wait for memory: %w", err)
	}
	if err := f.readBody(ctx, l, buf.Bytes()); err != nil {
		buf.Release()
		return nil, err
	}
	f.client.stats.fetchedBytes.Add(int64(n))
	got, err := f.decode(l.correlation, buf)
	if err != nil || got == nil {
		buf.Release()
		return nil, err
	}
	got.Waited = waited
	return got, nil
}

// deadline sets the time by which the next bytes must have come. A context that
// ended meanwhile wins.
func (f *FetchConn) deadline(ctx context.Context, l *link, d time.Duration) error {
	if err := l.nc.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (f *FetchConn) readBody(ctx context.Context, l *link, body []byte) error {
	defer l.nc.expect(0)
	for granted := 0; len(body) > 0; {
		if granted <= 0 {
			granted = bodyStep
			if err := f.deadline(ctx, l, f.client.opts.RequestTimeout); err != nil {
				return err
			}
		}
		l.nc.expect(len(body))
		n, err := l.nc.Read(body)
		if err != nil {
			return cutOff(err)
		}
		body = body[n:]
		granted -= n
	}
	return nil
}

// decode turns the block into an answer and applies what it says about the
// session, the throttle and the leaders.
func (f *FetchConn) decode(correlation int32, buf *kafka.Buffer) (*kafka.Fetched, error) {
	f.answer = kafka.Fetched{Buffer: buf, Partitions: f.answer.Partitions[:0]}
	f.aborted = f.aborted[:0]
	code, id, err := f.decodeAnswer(buf.Bytes(), correlation)
	if err != nil {
		return nil, err
	}
	f.throttled(f.answer.ThrottleMillis)
	switch code {
	case kafka.CodeNone:
		f.session.accepted(id)
		for i := range f.answer.Partitions {
			p := &f.answer.Partitions[i]
			f.client.NoteLeader(p.TopicPartition, p.Leader)
		}
		return &f.answer, nil
	case kafka.CodeFetchSessionIDNotFound:
		f.session.lost()
		return nil, nil
	case kafka.CodeInvalidFetchSessionEpoch, kafka.CodeFetchSessionTopicIDError:
		f.session.restart()
		return nil, nil
	}
	return nil, code
}

func (f *FetchConn) throttled(millis int32) {
	if millis <= 0 {
		return
	}
	d := time.Duration(millis) * time.Millisecond
	f.client.stats.fetchThrottle.Add(int64(d))
	f.quiet = time.Now().Add(d)
}

// pause waits until the broker wants the next request.
func (f *FetchConn) pause(ctx context.Context) error {
	d := time.Until(f.quiet)
	if f.quiet.IsZero() || d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renew replaces the link before its login ends. If that fails the old link
// goes on: it has some life left, and the next Fetch tries again.
func (f *FetchConn) renew(ctx context.Context) {
	old := f.link.Load()
	if old == nil || old.reauth.IsZero() || time.Now().Before(old.reauth) {
		return
	}
	fresh, err := f.client.connect(ctx, old.node)
	if err != nil {
		old.postpone()
		f.client.opts.Log.Warn("login not renewed", "addr", old.addr, "err", err)
		return
	}
	f.client.stats.reauthentications.Add(1)
	f.stopWatching()
	if !f.link.CompareAndSwap(old, fresh) {
		fresh.close()
		return
	}
	old.close()
}

// postpone puts off the next try to replace the link by a quarter of what is left.
func (l *link) postpone() {
	l.reauth = time.Now().Add(max(time.Until(l.ended)/4, 10*time.Millisecond))
}

// watch makes the end of ctx end what waits on the link. Callers pass the same
// context in a loop; it is registered once.
func (f *FetchConn) watch(ctx context.Context) {
	if f.watched == ctx {
		return
	}
	f.stopWatching()
	l := f.link.Load()
	if l == nil {
		return
	}
	nc := l.nc
	f.watched = ctx
	f.unwatch = context.AfterFunc(ctx, func() { _ = nc.SetDeadline(longAgo()) })
}

func (f *FetchConn) stopWatching() {
	if f.unwatch != nil {
		f.unwatch()
	}
	f.watched, f.unwatch = nil, nil
}

// finish closes the link, once.
func (f *FetchConn) finish() {
	if l := f.link.Swap(nil); l != nil {
		l.close()
	}
	f.stopWatching()
}

// Close ends the connection and gives the broker its session back. It does not
// wait for a Fetch under way, which returns an error soon.
func (f *FetchConn) Close() {
	f.ended.Store(true)
	l := f.link.Swap(nil)
	if l == nil {
		return
	}
	if f.use.TryLock() {
		f.sayGoodbye(l)
		f.use.Unlock()
	}
	l.close()
}

// goodbyeTimeout bounds the courtesy below.
const goodbyeTimeout = 200 * time.Millisecond

// sayGoodbye ends the session at the broker, which holds 1,000 of them by
// default and would keep this one for minutes. Nobody waits for the answer.
func (f *FetchConn) sayGoodbye(l *link) {
	f.stopWatching()
	id := f.session.id
	if id == 0 || l.nc.SetDeadline(time.Now().Add(goodbyeTimeout)) != nil {
		return
	}
	bye := newFetchSession()
	bye.id, bye.epoch = id, -1
	o := &f.client.opts
	req := bye.appendRequest(nil, min(l.fetch, f.session.version), l.correlation+1, o.ClientID, o.Rack, kafka.FetchLimits{})
	binary.BigEndian.PutUint32(req, uint32(len(req)-4))
	_, _ = l.nc.Write(req)
}

// Addr is where the connection goes, for people.
func (f *FetchConn) Addr() net.Addr {
	if l := f.link.Load(); l != nil {
		return l.nc.RemoteAddr()
	}
	return nil
}
