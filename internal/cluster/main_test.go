package cluster

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long goroutines get to end after the last test: a busy
// machine schedules them late, and one that leaks is there for ever.
const leakPatience = 20 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = awaitQuiet()
	}
	os.Exit(code)
}

func awaitQuiet() int {
	deadline := time.Now().Add(leakPatience)
	for {
		// The harness of real brokers keeps one thread alive on purpose: brokers die with it.
		err := goleak.Find(goleak.IgnoreAnyFunction("heliograph/internal/kafkatest.spawn.func1.1"))
		if err == nil {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			return 1
		}
	}
}
