//go:build linux

package cluster

import "syscall"

// mapFrom is the size from which a block is mapped on its own.
const mapFrom = 256 << 10

// newBlock makes a block. A large one lies outside the heap: the collector lets the
// heap grow with what lies on it before it collects, and would let some hundred
// megabytes of blocks be followed by half as many of garbage.
func newBlock(size int) []byte {
	if size >= mapFrom {
		if b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err == nil {
			return b
		}
	}
	return make([]byte, size)
}

// dropBlock gives a block of newBlock back to the system at once. One that was not
// mapped is refused, and the collector's.
func dropBlock(b []byte) { _ = syscall.Munmap(b) }
