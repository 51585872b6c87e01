//go:build !race

package replicate

import (
	"runtime"
	"testing"
)

// TestForwardingAllocatesNothingPerBatch holds for batches that travel as they
// are, once buffers and queues have their size. The collector may take pooled
// memory in the middle, hence the small allowance. Pools forget at random under
// the race detector, so this file is built without it.
func TestForwardingAllocatesNothingPerBatch(t *testing.T) {
	m := spin(t, 16)
	m.serve(5_000)
	const batches = 20_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m.serve(batches)
	runtime.ReadMemStats(&after)
	if per := float64(after.Mallocs-before.Mallocs) / batches; per > 0.1 {
		t.Errorf("%.3f allocations per batch, want none amortised", per)
	}
}
