package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
)

const (
	// silentAfter is how long a broker may owe an answer before it is asked on a
	// fresh connection whether it lives. Many requests may rightly take longer:
	// waiting is no proof.
	silentAfter = 5 * time.Second
	// probeWithin is how long that question may take.
	probeWithin = 2 * time.Second
	// pulseEvery is how often waiting requests are looked at, and a silent broker asked again.
	pulseEvery = time.Second
)

// A pulse tells brokers that hang from brokers that are slow. A frozen process, or
// a path that swallows packets, takes connections and requests and answers none,
// for as long as anybody waits; meanwhile its leaders and coordinators have long
// moved. A broker that owes an answer for long and does not even say which
// versions it speaks is silent: requests that wait for it in franz-go are cut
// off, so that their senders look for another broker, and new connections to it are
// refused until it answers again. Connections for data are left alone: what was
// sent on them may be written yet, and is sent again only where a partition has
// another leader (see [Client.Silent]).
//
// Addresses are judged apart, since a bootstrap address may stand for many brokers.
type pulse struct {
	client *Client
	ask    func(ctx context.Context, addr string) error // whether the broker lives

	mu struct {
		sync.Mutex
		brokers map[string]*broker
	}
}

// broker is what is known of one address; it is forgotten with its last wait
// while it is not silent.
type broker struct {
	waits   map[*wait]struct{}
	asking  bool
	silent  bool
	nextAsk time.Time
}

// A wait is one connection, or one that is being made, as far as answers are
// owed on it. A nil wait is nobody's.
type wait struct {
	pulse *pulse
	addr  string
	cut   func() // ends it where its broker is silent; nil lets it wait
	since atomic.Int64
}

func (p *pulse) init(c *Client) {
	p.client, p.ask = c, c.probe
	p.mu.brokers = make(map[string]*broker)
}

// watch begins to mind a connection.
func (p *pulse) watch(addr string, cut func()) *wait {
	w := &wait{pulse: p, addr: addr, cut: cut}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.mu.brokers[addr]
	if b == nil {
		b = &broker{waits: map[*wait]struct{}{}}
		p.mu.brokers[addr] = b
	}
	b.waits[w] = struct{}{}
	return w
}

// asked notes that an answer is owed from now on.
func (w *wait) asked() {
	if w != nil {
		w.since.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// heard notes that the broker has said something; more says that it owes more.
func (w *wait) heard(more bool) {
	if w == nil {
		return
	}
	w.since.Store(0)
	if more {
		w.asked()
	}
}

// cutBy lets the wait be cut off where its broker is silent.
func (w *wait) cutBy(cut func()) {
	w.pulse.mu.Lock()
	defer w.pulse.mu.Unlock()
	w.cut = cut
}

// end is the connection's end. It may be called more than once.
func (w *wait) end() {
	if w == nil {
		return
	}
	p := w.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.mu.brokers[w.addr]; b != nil {
		delete(b.waits, w)
		p.tidyLocked(w.addr, b)
	}
}

func (p *pulse) tidyLocked(addr string, b *broker) {
	if len(b.waits) == 0 && !b.asking && !b.silent {
		delete(p.mu.brokers, addr)
	}
}

// errSilent looks like a dial that was refused: franz-go then forgets that the
// broker coordinates or controls anything and asks another who does.
var errSilent error = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the broker takes requests and answers none")}

// allow refuses connections to a silent broker.
func (p *pulse) allow(cluster, addr string) error {
	if !p.silentAt(addr) {
		return nil
	}
	return &kafka.Error{
		Op: "connect", Cluster: cluster, Subject: addr, Class: kafka.ClassRetry, Err: errSilent,
		Hint: "it is asked every second whether it lives; look at the broker and at the network before it",
	}
}

func (p *pulse) silentAt(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.mu.brokers[addr]
	return b != nil && b.silent
}

// Silent reports whether a broker hangs: it owes an answer for long and does not
// answer on a fresh connection either. Who waits for it looks whether what it waits
// for has moved to another broker.
func (c *Client) Silent(node int32) bool {
	where, ok := c.topo.node(node)
	return ok && c.pulse.silentAt(where.addr())
}

// loop looks after the brokers until ctx ends.
func (p *pulse) loop(ctx context.Context) {
	ticker := time.NewTicker(pulseEvery)
	defer ticker.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, addr := range p.doubtful(now) {
				wg.Go(func() { p.judge(addr, p.ask(ctx, addr)) })
			}
		}
	}
}

// doubtful are the brokers to be asked now whether they live.
func (p *pulse) doubtful(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for addr, b := range p.mu.brokers {
		if !b.asking && (b.silent || b.owesLong(now) && !now.Before(b.nextAsk)) {
			b.asking, b.nextAsk = true, now.Add(silentAfter)
			out = append(out, addr)
		}
	}
	return out
}

func (b *broker) owesLong(now time.Time) bool {
	for w := range b.waits {
		if since := w.since.Load(); since != 0 && now.UnixNano()-since >= int64(silentAfter) {
			return true
		}
	}
	return false
}

// judge takes over what asking a broker has shown. Any answer is one, also one that
// refuses: those who wait hear of that by themselves.
func (p *pulse) judge(addr string, err error) {
	ne, failed := errors.AsType[net.Error](err)
	silent := failed && ne.Timeout() || errors.Is(err, context.DeadlineExceeded)
	p.mu.Lock()
	b := p.mu.brokers[addr]
	news := b.silent != silent
	b.asking, b.silent = false, silent
	var cut []func()
	for w := range b.waits {
		if silent && w.cut != nil && w.since.Load() != 0 {
			cut = append(cut, w.cut)
		}
	}
	p.tidyLocked(addr, b)
	p.mu.Unlock()
	switch {
	case news && silent:
		p.client.opts.Log.Warn("broker hangs: it takes requests and answers none", "addr", addr)
	case news:
		p.client.opts.Log.Info("broker answers again", "addr", addr)
	}
	for _, c := range cut {
		c()
	}
}

// probe asks a broker on a fresh connection which versions it speaks, which every
// broker tells before any login.
func (c *Client) probe(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	nc, err := c.dial.dialBulk(ctx, addr)
	if err != nil {
		return err
	}
	defer nc.abort()
	l := &link{client: c, nc: nc, addr: addr}
	if err := nc.SetDeadline(time.Now().Add(probeWithin)); err != nil {
		return err
	}
	return l.learnVersions()
}

// heard is a connection of franz-go's under a pulse.
type heard struct {
	net.Conn
	wait *wait
}

func (h heard) Write(p []byte) (int, error) {
	h.wait.asked()
	return h.Conn.Write(p)
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if n > 0 {
		h.wait.heard(false)
	}
	return n, err
}

func (h heard) Close() error {
	h.wait.end()
	return h.Conn.Close()
}
