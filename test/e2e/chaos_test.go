//go:build e2e

package e2e

import (
	"math"
	"strings"
	"testing"
	"time"

	"heliograph/test/chaos"
)

// A minute of faults of every kind, in an order drawn from a seed: nothing is
// lost, nothing is doubled, and the loss ledger is empty. HELIOGRAPH_SEED
// replays a schedule; make chaos runs longer ones.
func TestChaos(t *testing.T) {
	length := 75 * time.Second
	if long() {
		length = 10 * time.Minute
	}
	result, err := chaos.Run(t.Context(), chaos.Options{
		Seed: seeded(t).Uint64N(math.MaxUint32), Length: length, PerSecond: perSecond / 4, Binary: binary(t), Out: lines{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, lost %d, doubled %d\n%s\n%s", result.Records(), result.Lost(), result.Doubled(), result.Table(), strings.Join(result.Notes, "\n"))
	if err := result.Failure(); err != nil {
		t.Error(err)
	}
}

// lines writes to the test's log.
type lines struct{ tb testing.TB }

func (l lines) Write(p []byte) (int, error) {
	l.tb.Helper()
	l.tb.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
