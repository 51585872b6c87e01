package cluster

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// socketPair is one connection by both of its ends.
func socketPair(t *testing.T) (ours *socket, theirs net.Conn) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var d net.Dialer
	tcp, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	if ours, err = newSocket(tcp.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// TestSocketWritesAllPiecesInOrder with more pieces than one system call takes,
// and more bytes than fit into the socket at once.
func TestSocketWritesAllPiecesInOrder(t *testing.T) {
	ours, theirs := socketPair(t)
	var pieces [][]byte
	var want []byte
	for i := range 3000 {
		piece := bytes.Repeat([]byte{byte(i)}, i%7*1000)
		pieces = append(pieces, piece)
		want = append(want, piece...)
	}
	got := make(chan []byte, 1)
	go func() {
		b := make([]byte, len(want))
		_, _ = io.ReadFull(theirs, b)
		got <- b
	}()
	n, err := ours.writeVector(pieces)
	if err != nil || n != int64(len(want)) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(want), err)
	}
	if !bytes.Equal(<-got, want) {
		t.Error("the bytes that came are not those that were written")
	}
}

// TestSocketReadsWhatItExpectedAndThenLess goes through the gathering of a large
// answer into the waiting for a small one.
func TestSocketReadsWhatItExpectedAndThenLess(t *testing.T) {
	ours, theirs := socketPair(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), gatherFrom/8)
	for range 20 {
		go func() {
			_, _ = theirs.Write(large)
			_, _ = theirs.Write([]byte("tail"))
		}()
		body := make([]byte, len(large))
		for rest := body; len(rest) > 0; {
			ours.expect(len(rest))
			n, err := ours.Read(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		ours.expect(0)
		if !bytes.Equal(body, large) {
			t.Fatal("other bytes came")
		}
		tail := make([]byte, 4)
		if _, err := io.ReadFull(ours, tail); err != nil || string(tail) != "tail" {
			t.Fatalf("%q, %v", tail, err)
		}
	}
}

func TestSocketEndsAsConnectionsDo(t *testing.T) {
	ours, theirs := socketPair(t)
	one := make([]byte, 1)
	_ = ours.SetDeadline(longAgo())
	if _, err := ours.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	if _, err := ours.Write(one); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write after the deadline: %v", err)
	}
	_ = ours.SetDeadline(time.Time{})
	_ = theirs.(*net.TCPConn).SetLinger(-1)
	_ = theirs.Close()
	if _, err := ours.Read(one); !errors.Is(err, io.EOF) {
		t.Errorf("read after their close: %v", err)
	}
	_ = ours.Close()
	if _, err := ours.Read(one); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after our close: %v", err)
	}
	if _, err := ours.Write(one); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after our close: %v", err)
	}
}

// TestSocketAllocatesNothing for reads and writes.
func TestSocketAllocatesNothing(t *testing.T) {
	ours, theirs := socketPair(t)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	pieces := [][]byte{[]byte("head"), []byte("batch")}
	back := make([]byte, 9)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ours.writeVector(pieces); err != nil {
			t.Fatal(err)
		}
		for rest := back; len(rest) > 0; {
			n, err := ours.Read(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
	}); n > 0 {
		t.Errorf("%v allocations a round trip", n)
	}
}
