//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"heliograph/internal/kafkatest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := parallelUnlessAsked("4"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(kafkatest.Main(m))
}

// parallelUnlessAsked lets more tests run side by side than there are cores,
// where the command line does not say how many: they wait for other processes
// much more than they compute.
func parallelUnlessAsked(n string) error {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(strings.TrimLeft(arg, "-"), "test.parallel") {
			return nil
		}
	}
	return flag.Set("test.parallel", n)
}
