//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heliograph/internal/kafkatest"
)

const (
	// patience bounds every wait for something that should come soon. It is long
	// because other work may have the machine's cores.
	patience = 3 * time.Minute
	// lookEvery is the pace of looking.
	lookEvery = 200 * time.Millisecond
)

// await looks until a condition holds. A condition returns an empty text
// when it does, or what is missing.
func await(tb testing.TB, what string, missing func() string) {
	tb.Helper()
	awaitWithin(tb, patience, what, missing)
}

func awaitWithin(tb testing.TB, limit time.Duration, what string, missing func() string) {
	tb.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			tb.Fatalf("%s: not within %v: %s", what, limit, last)
		case <-tick.C:
		}
	}
}

// writeFile writes a properties file of the test.
func writeFile(tb testing.TB, lines ...string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "mm2.properties")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// prefixed turns client properties into lines of a file, in the order of the keys.
func prefixed(prefix string, properties map[string]string) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		lines = append(lines, prefix+key+" = "+properties[key])
	}
	return lines
}

// heliograph is a running process of the program under test.
type heliograph struct {
	*kafkatest.Process
	tb testing.TB
}

// start runs "heliograph run FILE" and returns at once. The process is stopped
// at the test's end if it still runs, and its log is shown if the test failed.
func start(tb testing.TB, file string, args ...string) *heliograph {
	tb.Helper()
	return launch(tb, binary(tb), append([]string{"run", file, "--admin-address", "127.0.0.1:0"}, args...)...)
}

func launch(tb testing.TB, path string, args ...string) *heliograph {
	tb.Helper()
	p, err := kafkatest.StartProcess(kafkatest.ProcessSpec{Name: "heliograph", Dir: tb.TempDir(), Path: path, Args: args})
	if err != nil {
		tb.Fatal(err)
	}
	h := &heliograph{Process: p, tb: tb}
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Log(p.Tail(60))
		}
	})
	return h
}

// exit waits for the end and checks the exit code.
func (h *heliograph) exit(want int) {
	h.tb.Helper()
	got, err := h.ExitCode(within(h.tb, patience))
	if err != nil {
		h.tb.Fatal(err)
	}
	if got != want {
		h.tb.Fatalf("exit code %d, want %d", got, want)
	}
}

// stop asks the process to end as a service manager does and expects a clean end.
// A signal before a program's first line finds no handler, whatever the program.
func (h *heliograph) stop() {
	h.tb.Helper()
	h.awaitLog("flow starts")
	if err := h.Signal(syscall.SIGTERM); err != nil {
		h.tb.Fatal(err)
	}
	h.exit(0)
}

// awaitLog waits for a line of the log that holds all the words.
func (h *heliograph) awaitLog(words ...string) string {
	h.tb.Helper()
	var found string
	await(h.tb, fmt.Sprintf("a log line with %q", words), func() string {
		for line := range strings.Lines(h.Log()) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				found = line
				return ""
			}
		}
		if !h.Running() {
			return "the process has ended"
		}
		return "no such line"
	})
	return found
}

// address is where the process serves metrics and health.
func (h *heliograph) address() string {
	h.tb.Helper()
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(h.awaitLog("metrics and health are served")), &line); err != nil {
		h.tb.Fatal(err)
	}
	return line.Address
}

// get asks the admin server and returns the status and the body.
func (h *heliograph) get(path string) (int, string) {
	h.tb.Helper()
	req, err := http.NewRequestWithContext(h.tb.Context(), http.MethodGet, "http://"+h.address()+path, http.NoBody)
	if err != nil {
		h.tb.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.tb.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// part is one flow in the answer of /healthz.
type part struct {
	Name, State, Reason string
	Ready               bool
}

// part asks how a flow is; the zero part while the process does not know it.
func (h *heliograph) part(flow string) part {
	h.tb.Helper()
	_, body := h.get("/healthz")
	var health struct{ Parts []part }
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		h.tb.Fatalf("/healthz: %v: %s", err, body)
	}
	for _, p := range health.Parts {
		if p.Name == flow {
			return p
		}
	}
	return part{}
}

// awaitState waits until a flow is in a state and returns why it is.
func (h *heliograph) awaitState(flow, state string) string {
	h.tb.Helper()
	var p part
	await(h.tb, "flow "+flow+" is "+state, func() string {
		if p = h.part(flow); p.State == state {
			return ""
		}
		return fmt.Sprintf("it is %+v", p)
	})
	return p.Reason
}

// metric sums the series of a name whose labels hold all the given ones, each
// written as label="value".
func (h *heliograph) metric(name string, labels ...string) float64 {
	h.tb.Helper()
	status, body := h.get("/metrics")
	if status != http.StatusOK {
		h.tb.Fatalf("/metrics: status %d: %s", status, body)
	}
	var sum float64
	for s := bufio.NewScanner(strings.NewReader(body)); s.Scan(); {
		series, value, ok := strings.Cut(s.Text(), "} ")
		if !ok || !strings.HasPrefix(series, name+"{") {
			continue
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			h.tb.Fatalf("/metrics: %s: %v", s.Text(), err)
		}
		sum += v
	}
	return sum
}
