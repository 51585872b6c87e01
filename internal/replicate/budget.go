package replicate

import (
	"context"
	"sync"
)

// Budget bounds the bytes of record data that the process holds. A fetch answer
// takes its size before its body is read; what was not taken stays in the
// broker. Waiters are served in order, so a large one is not starved.
type Budget struct {
	mu      sync.Mutex
	size    int64
	used    int64
	waiters []budgetWaiter
}

type budgetWaiter struct {
	n     int64
	ready chan struct{}
}

// NewBudget makes a budget of size bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// Size is the budget in bytes.
func (b *Budget) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// SetSize changes it. What is held beyond a smaller one is given back as it is written.
func (b *Budget) SetSize(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size = size
	b.grantLocked()
}

// Used is what is held now. It exceeds Size only by what [Budget.Force] took.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Acquire takes n bytes, waiting until they are free. A request larger than the
// whole budget is met when nothing else is held: one batch larger than the
// budget must not stop its partition for ever.
func (b *Budget) Acquire(ctx context.Context, n int) error {
	b.mu.Lock()
	if len(b.waiters) == 0 && b.fitsLocked(int64(n)) {
		b.used += int64(n)
		b.mu.Unlock()
		return nil
	}
	w := budgetWaiter{n: int64(n), ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		b.abandon(w)
		return context.Cause(ctx)
	}
}

// abandon takes a waiter out of the queue, or gives back what it was just granted.
func (b *Budget) abandon(w budgetWaiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiters {
		if b.waiters[i].ready == w.ready {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.grantLocked()
			return
		}
	}
	b.used -= w.n
	b.grantLocked()
}

// Force takes n bytes without waiting. It is for copies that replace larger
// buffers, which are released right after.
func (b *Budget) Force(n int) {
	b.mu.Lock()
	b.used += int64(n)
	b.mu.Unlock()
}

// Release gives n bytes back.
func (b *Budget) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= int64(n)
	b.grantLocked()
}

func (b *Budget) fitsLocked(n int64) bool { return b.used+n <= b.size || b.used == 0 }

func (b *Budget) grantLocked() {
	for len(b.waiters) > 0 && b.fitsLocked(b.waiters[0].n) {
		b.used += b.waiters[0].n
		close(b.waiters[0].ready)
		b.waiters = b.waiters[1:]
	}
}
