//go:build !linux

package cluster

import "net"

// A socket is a TCP connection for data; see the one for Linux.
type socket struct{ *net.TCPConn }

func newSocket(tcp *net.TCPConn) (*socket, error) { return &socket{tcp}, nil }

// writeVector writes all pieces in as few system calls as it takes.
func (s *socket) writeVector(pieces [][]byte) (int64, error) {
	v := net.Buffers(pieces)
	return v.WriteTo(s.TCPConn)
}

func (s *socket) expect(int) {}
