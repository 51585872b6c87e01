//go:build bench

package main

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

// result is what one turn showed.
type result struct {
	first    time.Duration // from the start of the program to the first record on the target
	startCPU time.Duration // processor time until then
	copy     time.Duration // from the first record to the last
	copyCPU  time.Duration // processor time for that
	memory   int64         // peak resident bytes
}

// String is one line for the person who waits.
func (r result) String() string {
	return fmt.Sprintf("first record %.2f s, all in %.1f s, CPU %.1f + %.1f s, peak %d MB",
		r.first.Seconds(), r.copy.Seconds(), r.startCPU.Seconds(), r.copyCPU.Seconds(), r.memory>>20)
}

// column is one measure of a result as a number for the table.
type column struct {
	title string
	of    func(result) float64
	unit  string
}

func columns(records int) []column {
	mb := float64(records) * recordSize / 1e6
	return []column{
		{"start to first record", func(r result) float64 { return r.first.Seconds() }, "%.2f s"},
		{"CPU until then", func(r result) float64 { return r.startCPU.Seconds() }, "%.1f s"},
		{"first to last record", func(r result) float64 { return r.copy.Seconds() }, "%.1f s"},
		{"CPU for that", func(r result) float64 { return r.copyCPU.Seconds() }, "%.1f s"},
		{"payload per CPU second", func(r result) float64 { return mb / max(r.copyCPU.Seconds(), 0.01) }, "%.0f MB"},
		{"peak memory", func(r result) float64 { return float64(r.memory) / 1e6 }, "%.0f MB"},
	}
}

// appendReport adds a dated section to the results; it never rewrites older ones.
func appendReport(ctx context.Context, o options, field []contender, results map[string][]result) (err error) {
	var b strings.Builder
	if _, err := os.Stat(o.report); errors.Is(err, os.ErrNotExist) {
		b.WriteString("# Benchmarks\n\nMeasured by `make bench`, newest last. All programs ran in turns on the same machine and brokers.\n")
	}
	fmt.Fprintf(&b, "\n## %s, %s\n\n", time.Now().UTC().Format(time.DateOnly), version(ctx))
	fmt.Fprintf(&b, "%d records of %d B, uncompressed, %d partitions, Kafka %s to %s, one broker each, all on %d cores; medians of %d turns.\n\n",
		o.records, recordSize, partitions, kafkatest.ReleaseSource, kafkatest.ReleaseTarget, runtime.NumCPU(), o.turns)
	cols := columns(o.records)
	b.WriteString("| |")
	for _, c := range cols {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(cols)) + "\n")
	for _, c := range field {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, col := range cols {
			fmt.Fprintf(&b, " "+col.unit+" |", median(results[c.name], col.of))
		}
		b.WriteString("\n")
	}
	f, err := os.OpenFile(o.report, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

func median(results []result, of func(result) float64) float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = of(r)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// version is the commit that was measured.
func version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown version"
	}
	return strings.TrimSpace(string(out))
}
