package coord

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An owner that was frozen and may have been replaced does not take the lane's
// identity: that would fence its successor.
func TestNoTakeoverWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.fill(numbered(0, 5))
		var held atomic.Bool
		r.opts.Leased = held.Load
		r.takeOver()
		defer r.close()
		time.Sleep(time.Minute)
		r.target.mu.Lock()
		taken := r.target.pid != before
		r.target.mu.Unlock()
		if taken {
			t.Error("the identity was taken without a lease")
		}
		held.Store(true)
		if got := r.settle(); got.Position != 5 {
			t.Errorf("with the lease it stands at %d: %s %s", got.Position, got.State, got.Reason)
		}
	})
}
