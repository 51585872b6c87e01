package replicate

import (
	"context"
	"sync"
	"time"
)

// brakeStep is how often a braked fetch looks again, so that a changed rate is
// felt at once.
const brakeStep = 50 * time.Millisecond

// Brake caps bytes per second. What was read is paid afterwards: a fetch starts
// only when nothing is owed, so the mean rate holds whatever the answers' sizes.
type Brake struct {
	mu   sync.Mutex
	rate int64 // bytes per second; 0 is no cap
	owed float64
	at   time.Time
}

// NewBrake makes a brake; a rate of zero does not brake.
func NewBrake(bytesPerSecond int64) *Brake { return &Brake{rate: bytesPerSecond, at: time.Now()} }

// SetRate changes the cap while it is in use. Zero lifts it.
func (b *Brake) SetRate(bytesPerSecond int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.payLocked()
	b.rate = bytesPerSecond
	if bytesPerSecond == 0 {
		b.owed = 0
	}
}

// Rate is the cap in bytes per second, zero for none.
func (b *Brake) Rate() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate
}

// Spend notes n bytes that were read.
func (b *Brake) Spend(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.payLocked()
	if b.rate > 0 {
		b.owed += float64(n)
	}
}

func (b *Brake) payLocked() {
	now := time.Now()
	b.owed = max(0, b.owed-now.Sub(b.at).Seconds()*float64(b.rate))
	b.at = now
}

func (b *Brake) pause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.payLocked()
	if b.rate <= 0 || b.owed <= 0 {
		return 0
	}
	return time.Duration(b.owed / float64(b.rate) * float64(time.Second))
}

// waitBrakes returns when none of the brakes is owed anything, or ctx ends.
func waitBrakes(ctx context.Context, brakes []*Brake) {
	for ctx.Err() == nil {
		var pause time.Duration
		for _, b := range brakes {
			pause = max(pause, b.pause())
		}
		if pause == 0 {
			return
		}
		sleep(ctx, min(pause, brakeStep))
	}
}

// brakedBytes is the most one fetch may bring so that a tight cap is not
// overrun by one large answer: a fifth of a second's worth, at least 16 KiB.
func brakedBytes(brakes []*Brake, most int32) int32 {
	for _, b := range brakes {
		if r := b.Rate(); r > 0 {
			most = int32(min(int64(most), max(r/5, 16<<10)))
		}
	}
	return most
}
