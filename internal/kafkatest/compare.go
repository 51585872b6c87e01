package kafkatest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"heliograph/internal/kafka"
)

// A Side is one of two topics to compare.
type Side struct {
	Cluster *Cluster
	Topic   string
}

// CompareOptions relax a comparison.
type CompareOptions struct {
	// IgnoreTimestamps is for targets that stamp records themselves (LogAppendTime).
	IgnoreTimestamps bool
	// Isolation of both readers; read_uncommitted also shows what was aborted.
	Isolation kafka.Isolation
}

// maxDifferences bounds how many differences a report spells out.
const maxDifferences = 10

// A Report says how two topics differ, record by record.
type Report struct {
	// SourceRecords and TargetRecords are the counts over all partitions.
	SourceRecords, TargetRecords int
	// Differences are the first ones, in words. Empty means equal in content and order.
	Differences []string
	// Missing are source records that the target lacks, Extra are target records
	// beyond those of the source (copies included), both regardless of order.
	Missing, Extra int
}

// Equal reports whether both topics hold the same records in the same order.
func (r *Report) Equal() bool { return len(r.Differences) == 0 }

// String is for a failed test's output.
func (r *Report) String() string {
	if r.Equal() {
		return fmt.Sprintf("equal: %d records", r.SourceRecords)
	}
	return fmt.Sprintf("source %d records, target %d, missing %d, extra %d\n  %s",
		r.SourceRecords, r.TargetRecords, r.Missing, r.Extra, strings.Join(r.Differences, "\n  "))
}

// Compare reads both topics as read_committed consumers and compares key, value,
// headers, timestamp, partition and order of every record. It counts records and
// never looks at offsets.
func Compare(ctx context.Context, source, target Side) (*Report, error) {
	return CompareWith(ctx, source, target, CompareOptions{Isolation: kafka.ReadCommitted})
}

// CompareWith is [Compare] under other rules.
func CompareWith(ctx context.Context, source, target Side, o CompareOptions) (*Report, error) {
	want, err := source.Cluster.Read(ctx, source.Topic, o.Isolation)
	if err != nil {
		return nil, err
	}
	got, err := target.Cluster.Read(ctx, target.Topic, o.Isolation)
	if err != nil {
		return nil, err
	}
	return CompareRecords(want, got, o), nil
}

// CompareRecords compares what was read of two topics, by partition.
func CompareRecords(want, got map[int32][]kafka.Record, o CompareOptions) *Report {
	r := &Report{}
	partitions := map[int32]bool{}
	for p := range want {
		partitions[p] = true
	}
	for p := range got {
		partitions[p] = true
	}
	for _, p := range slices.Sorted(maps.Keys(partitions)) {
		r.partition(p, want[p], got[p], o)
	}
	return r
}

func (r *Report) partition(p int32, want, got []kafka.Record, o CompareOptions) {
	r.SourceRecords += len(want)
	r.TargetRecords += len(got)
	if len(want) != len(got) {
		r.differ("partition %d: %d source records, %d target records", p, len(want), len(got))
	}
	for i := range min(len(want), len(got)) {
		if what := recordDifference(&want[i], &got[i], o); what != "" {
			r.differ("partition %d, record %d (source offset %d, target offset %d): %s", p, i, want[i].Offset, got[i].Offset, what)
		}
	}
	counts := map[[16]byte]int{}
	for i := range want {
		counts[digest(&want[i], o)]++
	}
	for i := range got {
		counts[digest(&got[i], o)]--
	}
	for _, n := range counts {
		r.Missing += max(n, 0)
		r.Extra += max(-n, 0)
	}
}

func (r *Report) differ(format string, args ...any) {
	switch n := len(r.Differences); {
	case n < maxDifferences:
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	case n == maxDifferences:
		r.Differences = append(r.Differences, "and more")
	}
}

// recordDifference names the first thing in which two records differ.
func recordDifference(want, got *kafka.Record, o CompareOptions) string {
	switch {
	case !sameBytes(want.Key, got.Key):
		return fmt.Sprintf("key %s, want %s", show(got.Key), show(want.Key))
	case !sameBytes(want.Value, got.Value):
		return fmt.Sprintf("value %s, want %s", show(got.Value), show(want.Value))
	case !o.IgnoreTimestamps && want.Timestamp != got.Timestamp:
		return fmt.Sprintf("timestamp %d, want %d", got.Timestamp, want.Timestamp)
	case len(want.Headers) != len(got.Headers):
		return fmt.Sprintf("%d headers, want %d", len(got.Headers), len(want.Headers))
	}
	for i := range want.Headers {
		w, g := want.Headers[i], got.Headers[i]
		if w.Key != g.Key || !sameBytes(w.Value, g.Value) {
			return fmt.Sprintf("header %d is %q=%s, want %q=%s", i, g.Key, show(g.Value), w.Key, show(w.Value))
		}
	}
	return ""
}

// sameBytes tells null from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func show(b []byte) string {
	const most = 40
	switch {
	case b == nil:
		return "null"
	case len(b) > most:
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	default:
		return fmt.Sprintf("%q", b)
	}
}

// digest identifies a record by its content.
func digest(r *kafka.Record, o CompareOptions) [16]byte {
	h := sha256.New()
	var scratch [8]byte
	field := func(b []byte) {
		n := int64(len(b))
		if b == nil {
			n = -1
		}
		binary.BigEndian.PutUint64(scratch[:], uint64(n))
		h.Write(scratch[:])
		h.Write(b)
	}
	field(r.Key)
	field(r.Value)
	if !o.IgnoreTimestamps {
		binary.BigEndian.PutUint64(scratch[:], uint64(r.Timestamp))
		h.Write(scratch[:])
	}
	for _, header := range r.Headers {
		field([]byte(header.Key))
		field(header.Value)
	}
	var sum [sha256.Size]byte
	return [16]byte(h.Sum(sum[:0])[:16])
}

// AwaitEqual compares until both topics are equal, and fails the test with the
// last report when ctx ends before.
func AwaitEqual(ctx context.Context, tb testing.TB, source, target Side) {
	tb.Helper()
	AwaitEqualWith(ctx, tb, source, target, CompareOptions{Isolation: kafka.ReadCommitted})
}

// AwaitEqualWith is [AwaitEqual] under other rules.
func AwaitEqualWith(ctx context.Context, tb testing.TB, source, target Side, o CompareOptions) {
	tb.Helper()
	poll := time.NewTicker(4 * pollEvery)
	defer poll.Stop()
	last := "nothing was read"
	for {
		report, err := CompareWith(ctx, source, target, o)
		switch {
		case err == nil && report.Equal():
			return
		case err == nil:
			last = report.String()
		case ctx.Err() == nil:
			last = err.Error()
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s on %s is not equal to %s on %s: %s", target.Topic, target.Cluster.Name(), source.Topic, source.Cluster.Name(), last)
		case <-poll.C:
		}
	}
}
