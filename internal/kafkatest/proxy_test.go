package kafkatest

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echo is an upstream that repeats every line.
func echo(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", loopback(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// talker is a client that sends a line and waits for it to come back.
type talker struct {
	net.Conn
	lines *bufio.Reader
}

func dialProxy(t *testing.T, p *Proxy) *talker {
	t.Helper()
	c, err := tryProxy(t, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryProxy(t *testing.T, p *Proxy) (*talker, error) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", p.Addr())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return &talker{conn, bufio.NewReader(conn)}, nil
}

func (c *talker) say(line string) error {
	_, err := c.Write([]byte(line + "\n"))
	return err
}

func (c *talker) hear(patience time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	return c.lines.ReadString('\n')
}

func startProxy(t *testing.T) *Proxy {
	t.Helper()
	p, err := NewProxy(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := p.Connections(); n != 0 {
			t.Errorf("%d connections outlived the proxy", n)
		}
	})
	return p
}

func mustEcho(t *testing.T, c *talker, line string) {
	t.Helper()
	if err := c.say(line); err != nil {
		t.Fatal(err)
	}
	if got, err := c.hear(10 * time.Second); err != nil || got != line+"\n" {
		t.Fatalf("heard %q, %v, want %q", got, err, line)
	}
}

func TestProxySilenceHoldsBytesBack(t *testing.T) {
	p := startProxy(t)
	c := dialProxy(t, p)
	mustEcho(t, c, "before")
	p.Silence()
	if err := c.say("meanwhile"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.hear(100 * time.Millisecond); err == nil {
		t.Errorf("heard %q through a silent proxy", got)
	}
	p.Heal()
	if got, err := c.hear(10 * time.Second); err != nil || got != "meanwhile\n" {
		t.Errorf("heard %q, %v after healing, want what was said meanwhile", got, err)
	}
}

func TestProxyCutBreaksOldAndNewConnections(t *testing.T) {
	p := startProxy(t)
	old := dialProxy(t, p)
	mustEcho(t, old, "before")
	p.Cut()
	if _, err := old.hear(10 * time.Second); err == nil {
		t.Error("an open connection survived the cut")
	}
	// The reset may arrive while the connection is still being made.
	if c, err := tryProxy(t, p); err == nil {
		if _, err := c.hear(10 * time.Second); err == nil {
			t.Error("a new connection was served during the cut")
		}
	}
	p.Heal()
	mustEcho(t, dialProxy(t, p), "after")
}

func TestProxyResetSparesNewConnections(t *testing.T) {
	p := startProxy(t)
	old := dialProxy(t, p)
	mustEcho(t, old, "before")
	p.Reset()
	if _, err := old.hear(10 * time.Second); err == nil {
		t.Error("an open connection survived the reset")
	}
	mustEcho(t, dialProxy(t, p), "after")
}

func TestProxyDelayIsNotLessThanAsked(t *testing.T) {
	p := startProxy(t)
	c := dialProxy(t, p)
	const each = 30 * time.Millisecond
	p.Delay(each)
	begin := time.Now()
	mustEcho(t, c, "slow")
	if took := time.Since(begin); took < 2*each {
		t.Errorf("there and back took %v, want at least %v", took, 2*each)
	}
}

func TestProxyThrottleIsNotFasterThanAsked(t *testing.T) {
	p := startProxy(t)
	c := dialProxy(t, p)
	p.Throttle(100_000)
	begin := time.Now()
	mustEcho(t, c, string(make([]byte, 10_000)))
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("10 kB took %v at 100 kB/s, want at least 100 ms", took)
	}
}
