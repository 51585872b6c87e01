package chaos

import (
	"strings"
	"testing"
)

const twoRuns = `# Reliability

What it is.

## 2026-12-01, seed 5, heliograph abc

Verdict: **1000 records, lost 0, doubled 0**, 0 entries in the loss ledger.

| fault | times | recovery, median | recovery, longest | moved | lost | doubled |
|---|---:|---:|---:|---:|---:|---:|
| kill -9 of the process | 2 | 1.0 s | 3.0 s | 11 | 0 | 0 |
| target broker paused | 1 | not measured | not measured | 5 | 0 | 0 |

## 2026-12-01, seed 6, heliograph abc

Verdict: **500 records, lost 0, doubled 0**, 0 entries in the loss ledger.

| kill -9 of the process | 1 | 2.0 s | 2.0 s | 7 | 0 | 0 |

## 2026-12-01, seed 5, Java MirrorMaker 2, 4.3.1

Verdict: **800 records, doubled 90**, 0 entries in the loss ledger.

| kill -9 of the process | 1 | 9.0 s | 9.0 s | 7 | 0 | 90 |
`

// The summary counts every run, and making it again changes nothing.
func TestSummaryCountsEveryRun(t *testing.T) {
	got := withSummary(twoRuns)
	for _, want := range []string{
		"heliograph: 2 runs of 2 seeds, 4 faults, 1500 records, lost 0, doubled 0. Java MirrorMaker 2: 1 runs of 1 seeds, 1 faults, 800 records, lost 0, doubled 90.",
		"| kill -9 of the process | 3 | 1.5 s | 3.0 s | 0 | 0 | 1 | 9.0 s | 9.0 s | 0 | 90 |",
		"| target broker paused | 1 |  |  | 0 | 0 | 0 | | | |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if !strings.HasPrefix(got, "# Reliability\n\nWhat it is.\n\n## Summary\n") || !strings.HasSuffix(got, twoRuns[strings.Index(twoRuns, "## 2026"):]) {
		t.Errorf("the rest is not as it was:\n%s", got)
	}
	if again := withSummary(got); again != got {
		t.Errorf("made again it is\n%s", again)
	}
}
