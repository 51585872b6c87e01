package cluster

import (
	"context"
	"math/bits"
	"sync"

	"heliograph/internal/kafka"
)

const (
	minBlockBits = 12 // 4 KiB
	maxBlockBits = 27 // 128 MiB; larger blocks are not kept
	// stepsPerDoubling classes between two powers of two bound the unused part
	// of a block to a quarter.
	stepsPerDoubling = 4
	blockClasses     = (maxBlockBits-minBlockBits)*stepsPerDoubling + 1
)

// A pool keeps blocks by size class. A block comes back by the last Release of
// its Buffer, on whichever goroutine that happens. Every block in use is counted
// in the budget with its whole size, and none that lies in the pool: what lies
// there, the garbage collector may take.
type pool struct {
	budget  Budget
	classes [blockClasses]sync.Pool
}

func newPool(b Budget) *pool { return &pool{budget: b} }

// classOf is the smallest class that holds n bytes, and its size. The class is
// -1 for a block too large to keep.
func classOf(n int) (class, size int) {
	if n <= 1<<minBlockBits {
		return 0, 1 << minBlockBits
	}
	top := bits.Len(uint(n-1)) - 1 // 2^top < n <= 2^(top+1), roughly
	if top >= maxBlockBits {
		return -1, n
	}
	step := 1 << top / stepsPerDoubling
	steps := (n - 1<<top + step - 1) / step // 1..stepsPerDoubling
	class = (top-minBlockBits)*stepsPerDoubling + steps
	if class >= blockClasses {
		return -1, n
	}
	return class, 1<<top + steps*step
}

// get waits for the budget and returns a block of n bytes with one reference.
func (p *pool) get(ctx context.Context, n int) (*kafka.Buffer, error) {
	class, size := classOf(n)
	if p.budget != nil {
		if err := p.budget.Acquire(ctx, size); err != nil {
			return nil, err
		}
	}
	if class < 0 {
		return kafka.NewBuffer(make([]byte, size), func(*kafka.Buffer) { p.uncount(size) }), nil
	}
	if b, ok := p.classes[class].Get().(*kafka.Buffer); ok {
		whole := b.Bytes()
		b.Reset(whole[:n])
		return b, nil
	}
	return kafka.NewBuffer(make([]byte, size)[:n], func(b *kafka.Buffer) {
		whole := b.Bytes()
		b.Reset(whole[:cap(whole)])
		p.classes[class].Put(b)
		p.uncount(size)
	}), nil
}

func (p *pool) uncount(size int) {
	if p.budget != nil {
		p.budget.Release(size)
	}
}
