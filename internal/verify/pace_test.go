package verify

import (
	"testing"
	"time"
)

func TestPaceIsPaidAfterwards(t *testing.T) {
	p := newPace(1000)
	now := time.Unix(0, 0)
	p.now = func() time.Time { return now }
	p.mu.at = now
	if d := p.debt(); d != 0 {
		t.Fatalf("owes %v before anything was read", d)
	}
	p.spend(1500)
	p.spend(500)
	if d := p.debt(); d != 2*time.Second {
		t.Fatalf("owes %v for 2000 bytes at 1000 per second", d)
	}
	now = now.Add(1500 * time.Millisecond)
	if d := p.debt(); d != 500*time.Millisecond {
		t.Fatalf("owes %v after 1.5 s", d)
	}
	now = now.Add(time.Hour)
	p.spend(1000)
	if d := p.debt(); d != time.Second {
		t.Fatalf("owes %v: idle time must not be saved up", d)
	}
	if n := p.limit(4 << 20); n != 16<<10 {
		t.Errorf("a fetch may bring %d bytes", n)
	}
	if free := newPace(0); free.debt() != 0 || free.limit(4<<20) != 4<<20 {
		t.Error("no rate holds something down")
	}
}
