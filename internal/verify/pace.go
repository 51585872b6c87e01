package verify

import (
	"context"
	"sync"
	"time"
)

// paceStep is the longest a pause lasts before the debt is looked at again.
const paceStep = 100 * time.Millisecond

// pace holds all readers together to a number of bytes per second. What was read
// is paid for afterwards, so the mean holds whatever the size of an answer.
type pace struct {
	rate int64 // zero is no limit
	now  func() time.Time
	mu   struct {
		sync.Mutex
		owed float64
		at   time.Time
	}
}

func newPace(rate int64) *pace {
	p := &pace{rate: rate, now: time.Now}
	p.mu.at = p.now()
	return p
}

func (p *pace) spend(n int) {
	if p.rate == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payLocked()
	p.mu.owed += float64(n)
}

func (p *pace) payLocked() {
	now := p.now()
	p.mu.owed = max(0, p.mu.owed-now.Sub(p.mu.at).Seconds()*float64(p.rate))
	p.mu.at = now
}

// debt is how long it takes to pay what is owed.
func (p *pace) debt() time.Duration {
	if p.rate == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.payLocked()
	return time.Duration(p.mu.owed / float64(p.rate) * float64(time.Second))
}

// wait returns when nothing is owed.
func (p *pace) wait(ctx context.Context) error {
	for d := p.debt(); d > 0; d = p.debt() {
		if err := pause(ctx, min(d, paceStep)); err != nil {
			return err
		}
	}
	return nil
}

// limit is the most that one fetch may bring, so that a tight pace is not
// overrun by a large answer.
func (p *pace) limit(most int32) int32 {
	if p.rate == 0 {
		return most
	}
	return int32(min(int64(most), max(p.rate/5, 16<<10)))
}

// pause waits, or returns why it need not.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
