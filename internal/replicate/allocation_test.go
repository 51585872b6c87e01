//go:build !race

package replicate

import (
	"fmt"
	"runtime"
	"testing"

	"heliograph/internal/kafka"
)

// TestForwardingAllocatesNothingPerBatch holds for batches that travel as they
// are, and for those of one record, which are merged, once buffers and queues have
// their size. The collector may take pooled memory in the middle, hence the small
// allowance. Pools forget at random under the race detector, so this file is built
// without it.
func TestForwardingAllocatesNothingPerBatch(t *testing.T) {
	for _, records := range []int{1, 16, 64} {
		t.Run(fmt.Sprintf("%d records", records), func(t *testing.T) {
			m := spin(t, records)
			m.serve(5_000)
			const batches = 20_000
			had := m.has()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m.serve(batches)
			runtime.ReadMemStats(&after)
			if got, want := m.has()-had, int64(batches*records); got != want {
				t.Fatalf("%d records arrived of %d: this measured something else", got, want)
			}
			if per := float64(after.Mallocs-before.Mallocs) / batches; per > 0.1 {
				t.Errorf("%.3f allocations per batch, want none amortised", per)
			} else {
				t.Logf("%.4f allocations per batch", per)
			}
		})
	}
}

// has is how many records of data the target holds.
func (m *treadmill) has() (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range int32(8) {
		n += m.stored[kafka.TopicPartition{Topic: "A.orders", Partition: p}]
	}
	return n
}
