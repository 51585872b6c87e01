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

// write adds a dated section to the report; it never rewrites older ones.
func (b *bench) write(ctx context.Context) (err error) {
	var out strings.Builder
	load := "default run"
	switch {
	case b.full:
		load = "full run"
	case b.quick:
		load = "quick run"
	}
	fmt.Fprintf(&out, "\n## %s, %s, %s\n\n", time.Now().UTC().Format(time.DateOnly), version(ctx), load)
	fmt.Fprintf(&out, "Kafka %s to Kafka %s, MirrorMaker %s, %s; %s, %d cores shared with the brokers; medians, turns: %d.\n",
		kafkatest.ReleaseSource, kafkatest.ReleaseTarget, kafkatest.ReleaseTarget, runtime.Version(), machine(), runtime.NumCPU(), b.turns)
	for i := range b.copies {
		b.copies[i].table(&out, b.field)
	}
	b.latencyTable(&out)
	b.barTable(&out)
	if b.report == "-" {
		_, err = os.Stdout.WriteString(out.String())
		return err
	}
	f, err := os.OpenFile(b.report, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(out.String())
	return errors.Join(err, f.Close())
}

// The measures of a copy.
func (c copied) perCPU(short string) float64 {
	return median(c.results[short], func(r result) float64 { return c.payload(r.records) / seconds(r.copyCPU) })
}

func (c copied) perSecond(short string) float64 {
	return median(c.results[short], func(r result) float64 { return c.payload(r.records) / r.copy.Seconds() })
}

func (c copied) memory(short string) float64 {
	return median(c.results[short], func(r result) float64 { return float64(r.memory) / 1e6 })
}

// idling is a line under the table of a cell with idle partitions.
func (c copied) idling(out *strings.Builder, field []contender) {
	for _, who := range field {
		if all := c.results[who.short]; c.idle > 0 && len(all) > 0 && all[0].idling >= 0 {
			fmt.Fprintf(out, "\n%s, all copied: %.1f %% of one core.\n", who.name, 100*median(all, func(r result) float64 { return r.idling }))
		}
	}
}

func (c copied) table(out *strings.Builder, field []contender) {
	fmt.Fprintf(out, "\n### %s\n\n%.1f GB in records of %d B, %.1f GB on the wire, %d partitions.\n\n",
		c.title, c.payload(int64(c.records))/1e3, c.size, float64(c.wire)/1e9, c.parts)
	out.WriteString("| | MB a CPU second | ratio to MirrorMaker tuned | CPU s a GB | MB/s | peak memory | start to first record | CPU until then | others' p99 |\n")
	out.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, who := range field {
		all := c.results[who.short]
		if why := c.failed[who.short]; why != "" {
			fmt.Fprintf(out, "| %s | failed: %s |\n", who.name, cellText(why))
		}
		if len(all) == 0 {
			continue
		}
		per := c.perCPU(who.short)
		ratio := "–"
		if len(c.results[tuned]) > 0 {
			ratio = fmt.Sprintf("%.1f", per/c.perCPU(tuned))
		}
		first, until, others := "–", "–", "–"
		if who.short != relay {
			first = fmt.Sprintf("%.2f s", median(all, func(r result) float64 { return r.first.Seconds() }))
			others = fmt.Sprintf("%.1f ms", median(all, func(r result) float64 { return millis(r.others) }))
			until = fmt.Sprintf("%.2f s", median(all, func(r result) float64 { return r.startCPU.Seconds() }))
		}
		fmt.Fprintf(out, "| %s | %.0f | %s | %.2f | %.0f | %.0f MB | %s | %s | %s |\n",
			who.name, per, ratio, 1e3/per, c.perSecond(who.short), c.memory(who.short), first, until, others)
	}
	c.idling(out, field)
}

// cellText is a failure's first line, fit for a cell of a table.
func cellText(why string) string {
	first, _, _ := strings.Cut(why, "\n")
	return strings.ReplaceAll(first, "|", "/")
}

func (b *bench) latencyTable(out *strings.Builder) {
	if len(b.latency) == 0 {
		return
	}
	fmt.Fprintf(out, "\n### Latency, records of %d B\n\n| | records/s | p50 | p99 | p99.9 |\n|---|---:|---:|---:|---:|\n", latencyRecord)
	names := slices.Concat(b.field, []contender{{short: direct, name: "produce and consume alone"}})
	for _, at := range b.latency {
		for _, who := range names {
			if why := at.failed[who.short]; why != "" {
				fmt.Fprintf(out, "| %s | %d | failed: %s |\n", who.name, at.pace, cellText(why))
			}
			if len(at.results[who.short]) > 0 {
				fmt.Fprintf(out, "| %s | %d | %.2f ms | %.2f ms | %.2f ms |\n", who.name, at.pace,
					at.p50(who.short), at.p99(who.short), at.p999(who.short))
			}
		}
	}
}

func (t timed) p50(short string) float64 {
	return median(t.results[short], func(q quantiles) float64 { return millis(q.p50) })
}

func (t timed) p99(short string) float64 {
	return median(t.results[short], func(q quantiles) float64 { return millis(q.p99) })
}

func (t timed) p999(short string) float64 {
	return median(t.results[short], func(q quantiles) float64 { return millis(q.p999) })
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func median[T any](results []T, of func(T) float64) float64 {
	if len(results) == 0 {
		return 0
	}
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

// machine is the processor's name, as the kernel tells it.
func machine() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(raw)) {
		if key, name, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(name)
		}
	}
	return runtime.GOARCH
}
