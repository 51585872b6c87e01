package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"heliograph/internal/kafkatest"
)

// Append adds the result to a file as a dated section, and counts it into the summary at
// the file's top. It never rewrites older sections.
func (r *Result) Append(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = []byte(head)
	case err != nil:
		return err
	}
	return os.WriteFile(path, []byte(withSummary(string(text)+r.section(ctx))), 0o600)
}

const head = "# Reliability\n\n" +
	"Runs of `make chaos`, newest last: a flow under load, broken again and again by a seeded schedule of\n" +
	"faults (`test/chaos`). *Recovery* is the time from a fault's end until everything that was acknowledged\n" +
	"at the source before has arrived on the target. *Moved* counts the records that arrived from the\n" +
	"fault's start until then. *Lost* and *doubled* are what an independent checker found when all was\n" +
	"over: it reads both clusters as a `read_committed` consumer and compares every record. Where the\n" +
	"checker found both equal they are 0 in every row; otherwise rows tell what was seen under which kind.\n"

func (r *Result) section(ctx context.Context) string {
	var b strings.Builder
	program := version(ctx, r.Binary)
	if r.Java {
		program = "Java MirrorMaker 2, " + kafkatest.ReleaseTarget
	}
	fmt.Fprintf(&b, "\n## %s, seed %d, %s\n\n", time.Now().UTC().Format(time.DateOnly), r.Seed, program)
	fmt.Fprintf(&b, "%s. Kafka %s to %s with %d brokers; %d minutes scheduled, %s taken; %d cores, shared with the brokers.\n",
		r.Plan.Setup, kafkatest.ReleaseSource, kafkatest.ReleaseTarget, targetBrokers,
		int(r.Length.Minutes()), r.Took.Round(time.Second), runtime.NumCPU())
	fmt.Fprintf(&b, "Load: %d records a second asked for, %.0f reached. %d faults, %d starts of the program.\n",
		r.PerSecond, r.Reached, len(r.Rows), r.Starts)
	fmt.Fprintf(&b, "Verdict: **%d records, lost %d, doubled %d**, %d entries in the loss ledger.\n\n",
		r.Records(), r.Lost(), r.Doubled(), len(r.Ledger))
	b.WriteString(r.Table())
	r.wrongs(&b)
	return b.String()
}

func (r *Result) wrongs(b *strings.Builder) {
	if r.Failure() == nil {
		return
	}
	b.WriteString("\nWhat went wrong:\n\n")
	for line := range strings.Lines(r.Failure().Error()) {
		// Kept short: whole logs do not belong in a report.
		const most = 300
		line = strings.TrimSpace(line)
		fmt.Fprintf(b, "- %s\n", line[:min(most, len(line))])
	}
}

// Table is the result by kind of fault.
func (r *Result) Table() string {
	equal := r.Lost()+r.Doubled() == 0
	var b strings.Builder
	b.WriteString("| fault | times | recovery, median | recovery, longest | moved | lost | doubled |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, k := range kinds {
		var took []time.Duration
		var times int
		var moved, doubled, gaps int64
		for _, row := range r.Rows {
			if row.Kind != k.kind {
				continue
			}
			times++
			moved += row.moved
			if !equal {
				doubled, gaps = doubled+row.doubled, gaps+row.gaps
			}
			if row.measured {
				took = append(took, row.recovered)
			}
		}
		if times == 0 {
			continue
		}
		median, longest := "not measured", "not measured"
		if n := len(took); n > 0 {
			slices.Sort(took)
			median, longest = seconds((took[(n-1)/2]+took[n/2])/2), seconds(took[n-1])
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d | %d | %d |\n", k.kind, times, median, longest, moved, gaps, doubled)
	}
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// version is what the program that was broken says of itself.
func version(ctx context.Context, binary string) string {
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return "heliograph, unknown version"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}
