package kafka

import "sync/atomic"

// Buffer is a counted block of bytes that batches are read into once and
// written from in place. It starts with one reference.
//
// Ownership: the buffer owns the bytes, batches borrow them, a window holds a
// reference per batch, the acknowledgement releases it.
type Buffer struct {
	data    []byte
	refs    atomic.Int32
	release func(*Buffer)
}

// NewBuffer wraps data with one reference. release runs once, when the last
// reference is gone; it may be nil.
func NewBuffer(data []byte, release func(*Buffer)) *Buffer {
	b := &Buffer{data: data, release: release}
	b.refs.Store(1)
	return b
}

// Bytes is the whole block. It must not be touched after the last Release.
func (b *Buffer) Bytes() []byte { return b.data }

// Retain adds a reference.
func (b *Buffer) Retain() { b.refs.Add(1) }

// Release drops a reference.
func (b *Buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		if b.release != nil {
			b.release(b)
		}
	case n < 0:
		panic("kafka: buffer released more often than retained")
	}
}

// Reset makes the block usable again with one reference and other bytes. Only
// the pool that got it back by release may call it.
func (b *Buffer) Reset(data []byte) {
	b.data = data
	b.refs.Store(1)
}
