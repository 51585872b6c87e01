package syncer

import (
	"context"
	"sync"
	"time"
)

// Budget spreads the admin requests to one cluster: so many a second, with a
// burst of one second's worth. All jobs of all flows of that cluster share it.
// A nil Budget allows everything.
type Budget struct {
	perSecond float64
	now       func() time.Time
	mu        struct {
		sync.Mutex
		tokens float64 // below zero: promised to those who wait
		at     time.Time
	}
}

// NewBudget allows perSecond requests a second, at least one.
func NewBudget(perSecond int, now func() time.Time) *Budget {
	b := &Budget{perSecond: float64(max(perSecond, 1)), now: now}
	b.mu.tokens, b.mu.at = b.perSecond, now()
	return b
}

// Take waits until one more request may be sent, in the order of the calls.
func (b *Budget) Take(ctx context.Context) error {
	if b == nil {
		return ctx.Err()
	}
	wait := b.reserve()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (b *Budget) reserve() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.mu.tokens = min(b.mu.tokens+now.Sub(b.mu.at).Seconds()*b.perSecond, b.perSecond)
	b.mu.at = now
	b.mu.tokens--
	if b.mu.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.mu.tokens / b.perSecond * float64(time.Second))
}
