//go:build linux

package cluster

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket is a TCP connection for data. It reads and writes like any other,
// but tells the scheduler nothing of its system calls: they never block, since
// Go's sockets are non-blocking, and the scheduler's watchdog, which would be
// woken by each of them after a pause, costs a program that waits for the
// network most of the time up to a third of its processor time.
//
// One goroutine may read and one write at a time.
type socket struct {
	*net.TCPConn
	raw   syscall.RawConn
	read  transfer
	write transfer
	low   int      // SO_RCVLOWAT as it was set last
	bound struct { // made once: a closure per call would be garbage
		read, write func(fd uintptr) bool
		setLow      func(fd uintptr)
	}
}

// A transfer is one read or write that is under way.
type transfer struct {
	bytes  []byte          // to read into
	vector []syscall.Iovec // to write; what is written is cut off in front
	all    []syscall.Iovec // vector's memory
	n      int
	errno  syscall.Errno
}

func newSocket(tcp *net.TCPConn) (*socket, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{TCPConn: tcp, raw: raw, low: 1}
	s.bound.read, s.bound.write, s.bound.setLow = s.tryRead, s.tryWrite, s.setLow
	return s, nil
}

// Read reads what there is, and waits only where there is nothing.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.read.bytes = p
	err := s.raw.Read(s.bound.read)
	n, errno := s.read.n, s.read.errno
	s.read.bytes = nil
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, s.fail("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// tryRead reports false where it must be called again once there is something.
func (s *socket) tryRead(fd uintptr) bool {
	for {
		//nolint:gosec // the address of the bytes is what the kernel wants
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&s.read.bytes[0])), uintptr(len(s.read.bytes)))
		if errno == syscall.EAGAIN {
			return false
		}
		if errno != syscall.EINTR {
			s.read.n, s.read.errno = int(n), errno
			return true
		}
	}
}

// Write writes all of p.
func (s *socket) Write(p []byte) (int, error) {
	n, err := s.writeVector([][]byte{p})
	return int(n), err
}

// writeVector writes all pieces in as few system calls as it takes.
func (s *socket) writeVector(pieces [][]byte) (int64, error) {
	w := &s.write
	w.all, w.n = w.all[:0], 0
	for _, p := range pieces {
		if len(p) > 0 {
			v := syscall.Iovec{Base: &p[0]}
			v.SetLen(len(p))
			w.all = append(w.all, v)
		}
	}
	w.vector = w.all
	err := s.raw.Write(s.bound.write)
	clear(w.all) // hold on to no batch
	if err == nil && w.errno != 0 {
		err = s.fail("write", w.errno)
	}
	return int64(w.n), err
}

// maxVector is how many pieces one system call takes (IOV_MAX).
const maxVector = 1024

// tryWrite reports false where it must be called again once there is room.
func (s *socket) tryWrite(fd uintptr) bool {
	w := &s.write
	w.errno = 0
	for len(w.vector) > 0 {
		//nolint:gosec // the address of the vector is what the kernel wants
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&w.vector[0])), uintptr(min(len(w.vector), maxVector)))
		switch errno {
		case 0:
			w.advance(int(n))
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			w.errno = errno
			return true
		}
	}
	return true
}

// advance cuts off n written bytes.
func (w *transfer) advance(n int) {
	w.n += n
	for n > 0 {
		v := &w.vector[0]
		have := int(v.Len)
		if n < have {
			//nolint:gosec // n is inside the piece
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
			v.SetLen(have - n)
			return
		}
		n -= have
		w.vector = w.vector[1:]
	}
}

// expect says that n more bytes are sure to come, before whatever comes then.
// Where that is much, the kernel gathers some of it before it wakes the reader.
// The reader must take it back with a smaller n before it waits for less: it
// would not be woken.
func (s *socket) expect(n int) {
	low := 1
	if n >= gatherFrom {
		low = gather
	}
	if low == s.low {
		return
	}
	s.low = low
	_ = s.raw.Control(s.bound.setLow)
}

// setLow tells the kernel. A refusal does no harm: it is a wish.
func (s *socket) setLow(fd uintptr) {
	value := int32(s.low)
	//nolint:gosec // the address of the value is what the kernel wants
	_, _, _ = syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_RCVLOWAT,
		uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
}

func (s *socket) fail(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}
