//go:build bench

package main

import (
	"fmt"
	"strings"
)

// bar is one aim of the project, held against what this run measured.
type bar struct {
	measure string
	aim     float64
	atMost  bool // else at least
	unit    string
	// of gives the measure, false where this run did not take it.
	of func(*bench) (float64, bool)
}

// bars are the aims. Ratios are within one run.
var bars = []bar{
	{measure: "payload a CPU second against MirrorMaker tuned, lz4, 16 KiB batches", aim: 12, unit: "×", of: perCPU("lz4-16k", tuned)},
	{measure: "the same, lz4, 64 KiB batches", aim: 20, unit: "×", of: perCPU("lz4-64k", tuned)},
	{measure: "the same, uncompressed, 64 KiB batches", aim: 10, unit: "×", of: perCPU("plain-64k", tuned)},
	{measure: "the same, TLS on both sides, replication factor 3", aim: 8, unit: "×", of: perCPU("tls", tuned)},
	{measure: "wire bytes a CPU second against the TCP relay, uncompressed 64 KiB batches", aim: 35, unit: " %", of: percent(perCPU("plain-64k", relay))},
	{measure: "the same, lz4 64 KiB batches", aim: 35, unit: " %", of: percent(perCPU("lz4-64k", relay))},
	{measure: "one-record batches against the franz-go loop", aim: 2, unit: "×", of: perCPU("one", loop)},
	{measure: "MB/s to lag zero against MirrorMaker tuned, uncompressed backlog", aim: 2.5, unit: "×", of: perSecond("plain-64k", tuned)},
	{measure: "latency p50 at 1,000 records/s against MirrorMaker", aim: 0.5, atMost: true, unit: "×", of: latency(timed.p50)},
	{measure: "latency p99 at 1,000 records/s against MirrorMaker", aim: 0.8, atMost: true, unit: "×", of: latency(timed.p99)},
	{measure: "peak memory, 8 partitions at full speed, the largest of all cells", aim: 120, atMost: true, unit: " MB", of: peak},
}

func (b *bench) barTable(out *strings.Builder) {
	out.WriteString("\n### Against the bars\n\n| measure | bar | measured | |\n|---|---:|---:|---|\n")
	for _, bar := range bars {
		value, ok := bar.of(b)
		aim, measured, verdict := "at least", "not measured", "–"
		if bar.atMost {
			aim = "at most"
		}
		if ok {
			measured, verdict = fmt.Sprintf("%.4g%s", value, bar.unit), "not met"
			if bar.atMost == (value <= bar.aim) || value == bar.aim {
				verdict = "met"
			}
		}
		fmt.Fprintf(out, "| %s | %s %g%s | %s | %s |\n", bar.measure, aim, bar.aim, bar.unit, measured, verdict)
	}
}

// both finds a cell in which heliograph and a peer ran.
func both(b *bench, cell, peer string) (copied, bool) {
	for _, c := range b.copies {
		if c.name == cell {
			return c, len(c.results[helio]) > 0 && len(c.results[peer]) > 0
		}
	}
	return copied{}, false
}

func perCPU(cell, peer string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		c, ok := both(b, cell, peer)
		if !ok {
			return 0, false
		}
		return c.perCPU(helio) / c.perCPU(peer), true
	}
}

func perSecond(cell, peer string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		c, ok := both(b, cell, peer)
		if !ok {
			return 0, false
		}
		return c.perSecond(helio) / c.perSecond(peer), true
	}
}

func percent(of func(*bench) (float64, bool)) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		value, ok := of(b)
		return 100 * value, ok
	}
}

// latency is heliograph's part of MirrorMaker's at the lowest pace.
func latency(of func(timed, string) float64) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		if len(b.latency) == 0 || len(b.latency[0].results[helio]) == 0 || len(b.latency[0].results[defaults]) == 0 {
			return 0, false
		}
		return of(b.latency[0], helio) / of(b.latency[0], defaults), true
	}
}

func peak(b *bench) (most float64, ok bool) {
	for _, c := range b.copies {
		if !c.extra && len(c.results[helio]) > 0 {
			most, ok = max(most, c.memory(helio)), true
		}
	}
	return most, ok
}
