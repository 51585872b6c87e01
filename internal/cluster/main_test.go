package cluster

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The harness of real brokers keeps one thread alive on purpose: brokers die with it.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("heliograph/internal/kafkatest.spawn.func1.1"))
}
