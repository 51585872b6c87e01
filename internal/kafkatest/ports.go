package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// handedOut remembers ports given to brokers that may be down at the moment, so
// that the kernel's next choice is not one of them.
var handedOut struct {
	sync.Mutex
	ports map[int]bool
}

// Ports lie below those that Linux gives to outgoing connections (32768 and up by
// default): one of these could take a broker's port before it starts, or while it is down.
const firstPort, lastPort = 12_000, 32_000

// freePort finds a loopback port that nothing listens on and nobody here was given.
func freePort(ctx context.Context) (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	if handedOut.ports == nil {
		handedOut.ports = map[int]bool{}
	}
	var lc net.ListenConfig
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if handedOut.ports[port] {
			continue
		}
		l, err := lc.Listen(ctx, "tcp", loopback(port))
		if err != nil {
			continue // somebody has it
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		handedOut.ports[port] = true
		return port, nil
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
