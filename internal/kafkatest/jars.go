package kafkatest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed pom.xml
var pom []byte

// quarrelling names the logger bindings that releases bring along. Two bindings
// on one class path print warnings and take each other's output.
var quarrelling = []string{"slf4j-reload4j-", "slf4j-log4j12-", "log4j-slf4j-impl", "log4j-slf4j2-impl", "logback-classic-"}

// CacheEnv overrides where fetched releases are kept.
const CacheEnv = "HELIOGRAPH_CACHE"

// cacheDir is where releases and derived files are kept between runs.
func cacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Join(dir, "kafka"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache for kafka: %w (set %s)", err, CacheEnv)
	}
	return filepath.Join(dir, "heliograph", "kafka"), nil
}

// Jars returns the directory that holds every jar of a Kafka release, fetching
// it with Maven when it is not in the cache. It is safe for concurrent use by
// several processes: one fetches, the others wait, and a directory appears only
// when it is complete.
func Jars(ctx context.Context, version string) (string, error) {
	r, err := parseRelease(version)
	if err != nil {
		return "", err
	}
	root, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, version)
	if complete(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("cache for kafka: %w", err)
	}
	unlock, err := lockFile(filepath.Join(root, version+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) {
		return dir, nil
	}
	if err := fetch(ctx, root, dir, r, version); err != nil {
		return "", fmt.Errorf("fetch kafka %s: %w", version, err)
	}
	return dir, nil
}

// complete trusts a directory by its name: it gets that name only when it is whole.
func complete(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "kafka-clients-*.jar"))
	return err == nil && len(found) > 0
}

func fetch(ctx context.Context, root, dir string, r release, version string) error {
	work, err := os.MkdirTemp(root, version+".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	pomFile := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pomFile, pom, 0o644); err != nil {
		return err
	}
	jars := filepath.Join(work, "jars")
	args := []string{"-q", "-B", "-f", pomFile, "-Dkafka.version=" + version}
	if r.mirror() {
		args = append(args, "-Pmirror")
	}
	args = append(args, "dependency:copy-dependencies", "-DoutputDirectory="+jars, "-DincludeScope=runtime")
	cmd := exec.CommandContext(ctx, "mvn", args...)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%w (install maven and a Java 17 runtime)", err)
		}
		return fmt.Errorf("mvn: %w: %s", err, lastLines(string(out), 15))
	}
	if err := dropQuarrelling(jars); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(jars, dir)
}

func dropQuarrelling(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, prefix := range quarrelling {
			if strings.HasPrefix(e.Name(), prefix) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lockFile waits for an exclusive lock that other processes respect too. The
// kernel drops it when the holder dies.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
