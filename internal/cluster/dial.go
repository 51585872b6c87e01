package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
)

// A dialer opens TCP and TLS connections for both halves of the client.
type dialer struct {
	alias   string
	tls     *tls.Config
	timeout time.Duration
	gate    *gate
	pulse   *pulse
}

// dialSmall is franz-go's way in.
func (d *dialer) dialSmall(ctx context.Context, _, addr string) (net.Conn, error) {
	if err := d.pulse.allow(d.alias, addr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	dialing := d.pulse.watch(addr, cancel)
	defer dialing.end()
	dialing.asked()
	var conn net.Conn
	tcp, err := d.tcp(ctx, addr)
	switch {
	case err != nil:
		return nil, err
	case d.tls == nil:
		conn = &sniffer{Conn: tcp, dialer: d, addr: addr}
	default:
		if conn, err = d.secure(ctx, tcp, addr); err != nil {
			return nil, err
		}
	}
	cut := func() { _ = conn.SetDeadline(longAgo()) }
	return heard{conn, d.pulse.watch(addr, cut)}, nil
}

// A sniffer recognises a TLS listener behind a plain connection by the alert it
// answers with, for franz-go, whose own error names no address.
type sniffer struct {
	net.Conn
	dialer *dialer
	addr   string
	seen   atomic.Bool
}

func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 1 && !s.seen.Swap(true) && p[0] == 0x15 && p[1] == 0x03 {
		return 0, &kafka.Error{
			Op: "connect", Cluster: s.dialer.alias, Subject: s.addr, Class: kafka.ClassOperator, Err: errSpeaksTLS,
		}
	}
	return n, err
}

// dialBulk is the way in for data. With TLS, the ciphertext of one write or
// read passes the kernel in large pieces instead of a record at a time.
func (d *dialer) dialBulk(ctx context.Context, addr string) (bulkConn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	tcp, err := d.tcp(ctx, addr)
	if err != nil {
		return bulkConn{}, err
	}
	s, err := newSocket(tcp.(*net.TCPConn))
	if err != nil {
		return bulkConn{}, err
	}
	if d.tls == nil {
		return bulkConn{Conn: s, plain: s}, nil
	}
	f := &flusher{Conn: s, in: bufio.NewReaderSize(s, bulkBuffer)}
	f.mu.out = bufio.NewWriterSize(s, bulkBuffer)
	secured, err := d.secure(ctx, f, addr)
	return bulkConn{Conn: secured, tls: f}, err
}

// A bulkConn is a connection for data.
type bulkConn struct {
	net.Conn
	plain *socket  // what Conn is without TLS
	tls   *flusher // what Conn writes to with TLS
}

// writeAll writes pieces back to back without joining them.
func (c *bulkConn) writeAll(pieces [][]byte) error {
	if c.plain != nil {
		_, err := c.plain.writeVector(pieces)
		return err
	}
	if c.tls != nil {
		c.tls.hold()
	}
	for _, piece := range pieces {
		if _, err := c.Write(piece); err != nil {
			return err
		}
	}
	if c.tls != nil {
		return c.tls.flush()
	}
	return nil
}

// expect says that n more bytes of an answer are on their way.
func (c *bulkConn) expect(n int) {
	if c.plain != nil {
		c.plain.expect(n)
	}
}

// abort ends whatever waits on the connection and waits for nothing itself:
// closing a TLS connection properly means one more write.
func (c *bulkConn) abort() {
	if c.tls != nil {
		_ = c.tls.Close()
		return
	}
	_ = c.Close()
}

func (d *dialer) tcp(ctx context.Context, addr string) (net.Conn, error) {
	if err := d.gate.allow(d.alias, addr); err != nil {
		return nil, err
	}
	var nd net.Dialer
	tcp, err := nd.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, &kafka.Error{
			Op: "connect", Cluster: d.alias, Subject: addr, Class: kafka.ClassRetry, Err: err,
			Hint: "check that the broker is up and reachable from here",
		}
	}
	return tcp, nil
}

func (d *dialer) secure(ctx context.Context, tcp net.Conn, addr string) (net.Conn, error) {
	cfg := d.tls.Clone()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	cfg.ServerName = host
	conn := tls.Client(tcp, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		reason, hint := explainTLS(err, time.Now())
		return nil, &kafka.Error{
			Op: "connect", Cluster: d.alias, Subject: addr, Class: kafka.ClassOperator,
			Err: &tlsError{reason: reason, err: err}, Hint: hint,
		}
	}
	return conn, nil
}

// tlsError says why a handshake failed in our words and keeps the cause.
type tlsError struct {
	reason string
	err    error
}

func (e *tlsError) Error() string { return "TLS handshake: " + e.reason }

// Unwrap hides an end of stream: franz-go would put a guess of its own in the
// place of our reason.
func (e *tlsError) Unwrap() error {
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}

const (
	// bulkBuffer is a few TLS records: enough to make system calls rare.
	bulkBuffer = 64 << 10
	// gather is how much of a large answer should be there before its reader is
	// woken, and gatherFrom how much must be missing for that.
	gather     = 1 << 20
	gatherFrom = 2 * gather
)

// A flusher sits between TLS and the socket. crypto/tls makes one system call
// per 16 KiB record; a held flusher gathers them until release.
type flusher struct {
	net.Conn
	in *bufio.Reader

	// The reader side writes too (key updates, alerts), hence the lock. It is
	// held during a write, as the socket itself would serialise the two.
	mu struct {
		sync.Mutex
		out  *bufio.Writer
		held bool
	}
}

func (f *flusher) Read(p []byte) (int, error) { return f.in.Read(p) }

func (f *flusher) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.mu.out.Write(p)
	if err == nil && !f.mu.held {
		err = f.mu.out.Flush()
	}
	return n, err
}

func (f *flusher) hold() {
	f.mu.Lock()
	f.mu.held = true
	f.mu.Unlock()
}

func (f *flusher) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.held = false
	return f.mu.out.Flush()
}

var errClosed = errors.New("the connection was closed by us")
