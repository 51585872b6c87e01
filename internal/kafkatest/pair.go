package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// RequireEnv names a variable that, set to anything, turns missing tools (Java, Maven) from a skipped
// test into a failed one. CI sets CI, which does the same.
const RequireEnv = "HELIOGRAPH_REQUIRE_KAFKA"

// requireJava skips tb where real Kafka cannot run, or fails it where it must.
func requireJava(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		Missing(tb, "real Kafka", err)
	}
}

// Missing skips tb, which lacks a tool, or fails it where that must be there: see [RequireEnv].
func Missing(tb testing.TB, what string, err error) {
	tb.Helper()
	if os.Getenv("CI") != "" || os.Getenv(RequireEnv) != "" {
		tb.Fatalf("%s: %v", what, err)
	}
	tb.Skipf("%s: %v", what, err)
}

// shared are clusters that live as long as the test binary, by release.
var shared struct {
	sync.Mutex
	clusters map[string]*Cluster
}

// Pair returns the usual two clusters, one broker each: A, a source of release
// [ReleaseSource], and B, a target of release [ReleaseTarget]. All tests of the
// binary share them, so topics, groups and aliases must carry the test's name: see
// [Name]. The binary's TestMain must end through [Main].
func Pair(tb testing.TB) (a, b *Cluster) {
	tb.Helper()
	requireJava(tb)
	shared.Lock()
	defer shared.Unlock()
	var group errgroup.Group
	opts := [2]ClusterOptions{{Name: "A", Version: ReleaseSource}, {Name: "B", Version: ReleaseTarget}}
	var clusters [2]*Cluster
	for i, o := range opts {
		if clusters[i] = shared.clusters[o.Version]; clusters[i] != nil {
			continue
		}
		group.Go(func() (err error) {
			clusters[i], err = Launch(tb.Context(), o)
			return err
		})
	}
	err := group.Wait()
	for i, c := range clusters {
		if c != nil {
			keepLocked(opts[i].Version, c)
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range clusters {
		tb.Cleanup(func() { c.ShowOnFailure(tb) })
	}
	return clusters[0], clusters[1]
}

// Shared returns the binary's cluster of a release, with one broker.
func Shared(tb testing.TB, version string) *Cluster {
	tb.Helper()
	requireJava(tb)
	shared.Lock()
	defer shared.Unlock()
	c := shared.clusters[version]
	if c == nil {
		var err error
		if c, err = Launch(tb.Context(), ClusterOptions{Version: version}); err != nil {
			tb.Fatal(err)
		}
		keepLocked(version, c)
	}
	tb.Cleanup(func() { c.ShowOnFailure(tb) })
	return c
}

func keepLocked(version string, c *Cluster) {
	if shared.clusters == nil {
		shared.clusters = map[string]*Cluster{}
	}
	shared.clusters[version] = c
}

// Main runs a test binary's tests and closes the shared clusters. It returns the exit code.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	for _, c := range shared.clusters {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "kafkatest:", err)
		return max(code, 1)
	}
	return code
}

var notLegal = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// Name makes a topic, group or alias name that belongs to the running test.
func Name(tb testing.TB, suffix string) string {
	tb.Helper()
	name := strings.Trim(notLegal.ReplaceAllString(tb.Name(), "-"), "-")
	if suffix == "" {
		return name
	}
	return name + "-" + suffix
}
