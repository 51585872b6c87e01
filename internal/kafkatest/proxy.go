package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy passes TCP connections on to one address and misbehaves on request.
// Every change holds for open connections and for those to come, until
// [Proxy.Heal]. It is safe for concurrent use.
//
// What it cannot show: effects of socket buffers and of the kernel's own
// timeouts, since both sides talk to a live peer on this machine.
type Proxy struct {
	listener net.Listener
	upstream string
	wg       sync.WaitGroup
	toClient atomic.Int64 // bytes that clients were sent

	mu struct {
		sync.Mutex
		faults faults
		change chan struct{} // closed and replaced at every change
		conns  map[*link]struct{}
		closed bool
	}
}

// faults is what the proxy does wrong at the moment.
type faults struct {
	cut    bool          // refuse and drop connections
	silent bool          // accept and keep connections, pass nothing on
	delay  time.Duration // added to each direction
	perSec int           // bytes per second and direction of each connection; 0 is unlimited
}

// link is one client connection with its connection to the upstream.
type link struct {
	client, server *net.TCPConn
	once           sync.Once
	broken         chan struct{} // closed by reset
}

// chunk is bytes on their way, due at a time.
type chunk struct {
	data []byte
	due  time.Time
}

// NewProxy listens on a free loopback port.
func NewProxy(ctx context.Context, upstream string) (*Proxy, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", upstream, err)
	}
	p := &Proxy{listener: l, upstream: upstream}
	p.mu.conns = map[*link]struct{}{}
	p.mu.change = make(chan struct{})
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut drops all connections and refuses new ones at once, as a closed port does.
func (p *Proxy) Cut() {
	p.set(func(f *faults) { f.cut = true })
	p.Reset()
}

// Reset breaks all open connections with a TCP reset; new ones are not affected.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.mu.conns {
		l.reset()
	}
}

// Silence keeps connections open and passes nothing on, in either direction: the
// half-open connection that a lost network leaves behind. What was sent
// meanwhile goes through after [Proxy.Heal].
func (p *Proxy) Silence() { p.set(func(f *faults) { f.silent = true }) }

// Delay adds a time to each direction. It does not lower the throughput.
func (p *Proxy) Delay(d time.Duration) { p.set(func(f *faults) { f.delay = d }) }

// Throttle limits each direction of each connection to so many bytes per second.
func (p *Proxy) Throttle(bytesPerSecond int) { p.set(func(f *faults) { f.perSec = bytesPerSecond }) }

// Heal ends all misbehaviour.
func (p *Proxy) Heal() { p.set(func(f *faults) { *f = faults{} }) }

// Connections is how many are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.conns)
}

// Sent is how many bytes clients were sent through the proxy.
func (p *Proxy) Sent() int64 { return p.toClient.Load() }

// Close stops listening, breaks all connections and waits for the goroutines.
func (p *Proxy) Close() error {
	p.set(func(f *faults) { *f = faults{cut: true} })
	p.mu.Lock()
	p.mu.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Reset()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) set(change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.mu.faults)
	close(p.mu.change)
	p.mu.change = make(chan struct{})
}

// state is the faults of now and a channel that is closed when they change.
func (p *Proxy) state() (faults, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.faults, p.mu.change
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Add(1)
		go p.serve(conn.(*net.TCPConn))
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	defer p.wg.Done()
	if f, _ := p.state(); f.cut {
		abandon(client)
		return
	}
	conn, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		abandon(client)
		return
	}
	l := &link{client: client, server: conn.(*net.TCPConn), broken: make(chan struct{})}
	if !p.admit(l) {
		l.reset()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, l.server, l.client) })
	both.Go(func() { p.pump(l, l.client, l.server) })
	both.Wait()
	// Not a reset: what was passed on may still be on its way out. Errors mean
	// that it is closed already.
	_ = l.client.Close()
	_ = l.server.Close()
	p.mu.Lock()
	delete(p.mu.conns, l)
	p.mu.Unlock()
}

// admit registers a link unless a cut came while it was dialled.
func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed || p.mu.faults.cut {
		return false
	}
	p.mu.conns[l] = struct{}{}
	return true
}

// pump moves bytes one way. A reader stamps them with the time they are due, a
// writer waits for it, so that a delay does not become a limit of throughput.
func (p *Proxy) pump(l *link, to, from *net.TCPConn) {
	queue := make(chan chunk, 256)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if n > 0 {
				f, _ := p.state()
				select {
				case queue <- chunk{buf[:n], time.Now().Add(f.delay)}:
				case <-stop:
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					l.reset()
				}
				return
			}
		}
	})
	for c := range queue {
		if !p.deliver(l, to, c) {
			l.reset()
			break
		}
	}
	close(stop)
	// An orderly end of one side is passed on, after what it said before and only
	// if the proxy passes anything on; the other side may still speak.
	p.deliver(l, to, chunk{})
	if err := to.CloseWrite(); err != nil {
		l.reset()
	}
	reader.Wait()
}

// deliver writes a chunk when it is due and the proxy lets it pass.
func (p *Proxy) deliver(l *link, to *net.TCPConn, c chunk) bool {
	for {
		f, changed := p.state()
		if f.cut {
			return false
		}
		wait := time.Until(c.due)
		if !f.silent && wait <= 0 {
			if to == l.client {
				p.toClient.Add(int64(len(c.data)))
			}
			return p.write(to, c.data, f.perSec)
		}
		var due <-chan time.Time
		if !f.silent {
			due = time.After(wait)
		}
		select {
		case <-changed:
		case <-due:
		case <-l.broken:
			return false
		}
	}
}

// write sends data in pieces that take a twentieth of a second each under a limit.
func (p *Proxy) write(to *net.TCPConn, data []byte, perSec int) bool {
	const slice = 20
	for len(data) > 0 {
		n := len(data)
		if perSec > 0 {
			n = min(n, max(perSec/slice, 1))
		}
		if _, err := to.Write(data[:n]); err != nil {
			return false
		}
		data = data[n:]
		if perSec > 0 {
			_, changed := p.state()
			select {
			case <-time.After(time.Duration(n) * time.Second / time.Duration(perSec)):
			case <-changed:
				f, _ := p.state()
				if f.cut {
					return false
				}
				perSec = f.perSec
			}
		}
	}
	return true
}

// reset breaks both sides without the usual goodbye.
func (l *link) reset() {
	l.once.Do(func() { close(l.broken) })
	abandon(l.client)
	abandon(l.server)
}

// abandon closes a connection so that the peer sees a reset.
func abandon(c *net.TCPConn) {
	// Errors mean that it is closed already.
	_ = c.SetLinger(0)
	_ = c.Close()
}
