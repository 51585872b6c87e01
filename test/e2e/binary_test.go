//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// built is the program under test, built once for all tests of this package.
var built struct {
	once sync.Once
	path string
	err  error
}

// binary is the path of the program, built from the tree.
func binary(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "heliograph-e2e-") //nolint:usetesting // it outlives the test that builds it
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "heliograph")
		out, err := exec.Command("go", "build", "-o", built.path, "heliograph/cmd/heliograph").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		tb.Fatalf("build the program: %v", built.err)
	}
	return built.path
}

// within bounds a wait of the test.
func within(tb testing.TB, limit time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(tb.Context(), limit, fmt.Errorf("not within %v", limit))
	tb.Cleanup(cancel)
	return ctx
}
