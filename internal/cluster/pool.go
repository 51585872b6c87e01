package cluster

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

const (
	minBlockBits = 12 // 4 KiB
	// stepsPerDoubling sizes between two powers of two bound the unused part of a
	// new block to a quarter.
	stepsPerDoubling = 4
	// looseFit is how many times larger than needed a free block may be to be taken,
	// or it may have smallFit bytes.
	looseFit = 4
	smallFit = 64 << 10
	// What lies free is bounded in bytes, number and time. Half as much as is in use
	// may lie free in any case.
	maxFree    = 8 << 20
	maxFreeFor = 10 * time.Second
	maxBlocks  = 64
)

// A pool keeps blocks that were released for the next answers. A block comes back
// by the last Release of its Buffer, on whichever goroutine that happens. Every
// block in use is counted in the budget with its whole size, and none that lies
// free.
//
// Answers are seldom of one size. A list that gives the next best block keeps few
// of them; a sync.Pool for each size keeps a set of blocks for each of them.
//
// Blocks may lie outside the heap: after the last Release their bytes must not be
// touched, or the process ends.
type pool struct {
	budget Budget

	mu    sync.Mutex
	free  []freeBlock // the longest free first
	bytes int         // in free
	used  int         // bytes in use
	ended bool        // nothing is kept any more
}

type freeBlock struct {
	buf   *kafka.Buffer // its bytes are the whole block
	since time.Time
}

func (b freeBlock) size() int { return len(b.buf.Bytes()) }

func newPool(b Budget) *pool { return &pool{budget: b} }

// blockSize is the size of a new block for n bytes.
func blockSize(n int) int {
	if n <= 1<<minBlockBits {
		return 1 << minBlockBits
	}
	top := bits.Len(uint(n-1)) - 1 // 2^top < n <= 2^(top+1), roughly
	step := 1 << top / stepsPerDoubling
	return (n + step - 1) / step * step
}

// get waits for the budget and returns a block of n bytes with one reference.
func (p *pool) get(ctx context.Context, n int) (*kafka.Buffer, error) {
	buf := p.take(n)
	size := blockSize(n)
	if buf != nil {
		size = len(buf.Bytes())
	}
	if p.budget != nil {
		if err := p.budget.Acquire(ctx, size); err != nil {
			if buf != nil {
				p.keep(buf)
			}
			return nil, err
		}
	}
	p.mu.Lock()
	p.used += size
	p.mu.Unlock()
	if buf != nil {
		buf.Reset(buf.Bytes()[:n])
		return buf, nil
	}
	return kafka.NewBuffer(newBlock(size)[:n], p.put), nil
}

// take returns the smallest free block that fits n bytes well, or nil.
func (p *pool) take(n int) *kafka.Buffer {
	most := max(looseFit*n, smallFit)
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, b := range p.free {
		if size := b.size(); size >= n && size <= most && (best < 0 || size <= p.free[best].size()) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b := p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	p.bytes -= b.size()
	return b.buf
}

// put takes a block back whose last reference is gone.
func (p *pool) put(b *kafka.Buffer) {
	whole := b.Bytes()
	whole = whole[:cap(whole)]
	b.Reset(whole)
	if p.budget != nil {
		p.budget.Release(len(whole))
	}
	p.mu.Lock()
	p.used -= len(whole)
	p.mu.Unlock()
	p.keep(b)
}

// keep adds a block to the free ones, and drops what is too much.
func (p *pool) keep(b *kafka.Buffer) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, freeBlock{b, now})
	p.bytes += len(b.Bytes())
	drop := 0
	for drop < len(p.free) && (p.ended || p.bytes > max(maxFree, p.used/2) ||
		len(p.free)-drop > maxBlocks || now.Sub(p.free[drop].since) > maxFreeFor) {
		p.bytes -= p.free[drop].size()
		dropBlock(p.free[drop].buf.Bytes())
		drop++
	}
	p.free = slices.Delete(p.free, 0, drop)
}

// close drops what is free, now and from now on.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, b := range p.free {
		dropBlock(b.buf.Bytes())
	}
	p.free, p.bytes = nil, 0
}
