package kafkatest

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// handedOut remembers ports given to brokers that may be down at the moment, so
// that the kernel's next choice is not one of them.
var handedOut struct {
	sync.Mutex
	ports map[int]bool
}

// freePort finds a loopback port that nothing listens on and nobody here was given.
func freePort(ctx context.Context) (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	if handedOut.ports == nil {
		handedOut.ports = map[int]bool{}
	}
	var lc net.ListenConfig
	for range 100 {
		l, err := lc.Listen(ctx, "tcp", loopback(0))
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if !handedOut.ports[port] {
			handedOut.ports[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: a hundred were taken")
}

// loopback is the address of a port of this machine.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// dialable reports whether something accepts connections at an address.
func dialable(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
