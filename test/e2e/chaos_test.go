//go:build e2e

package e2e

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"heliograph/test/chaos"
)

// chaosSeed is the schedule of the ordinary run: the gate judges a change, not
// the luck of a draw.
const chaosSeed = 148

// A minute of faults of every kind, in an order drawn from a seed: nothing is
// lost, nothing is doubled, and the loss ledger is empty. HELIOGRAPH_SEED runs
// another schedule; make chaos runs longer ones.
func TestChaos(t *testing.T) {
	length := 75 * time.Second
	if long() {
		length = 10 * time.Minute
	}
	seed := uint64(chaosSeed)
	if os.Getenv("HELIOGRAPH_SEED") != "" || long() {
		seed = seeded(t).Uint64N(math.MaxUint32)
	}
	result, err := chaos.Run(t.Context(), chaos.Options{
		Seed: seed, Length: length, PerSecond: perSecond / 4, Binary: binary(t), Out: lines{t},
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
