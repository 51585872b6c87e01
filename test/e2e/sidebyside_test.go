//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// How far behind groups stand that Java MirrorMaker moved, and how long heliograph
// takes to put them right after it has taken over, on one and the same log. It
// measures, and runs where longer runs were asked for; docs/benchmarks.md has what
// it said.
func TestGroupsSideBySide(t *testing.T) {
	if !long() {
		t.Skip("HELIOGRAPH_LONG is not set")
	}
	const groups, transactions, size = 400, 2000, 10
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "replication.factor = 1", "config.storage.replication.factor = 1", "status.storage.replication.factor = 1",
		"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 5", "emit.checkpoints.interval.seconds = 5",
		"refresh.groups.interval.seconds = 5", "emit.heartbeats.enabled = false")
	tr.append("groups = "+tr.alias+"-.*", tr.alias+".consumer.isolation.level = read_committed", tr.to+".offset.flush.interval.ms = 5000")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	java := tr.java(kafkatest.ReleaseTarget)

	cl := a.Client(t, kgo.TransactionalID(topic))
	for n := range transactions {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		abort := n%4 == 3
		for i := range size {
			value := make([]byte, 100)
			putNumber(value, int64(n*size+i))
			cl.Produce(t.Context(), &kgo.Record{Topic: topic, Value: value}, nil)
		}
		if err := cl.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		how := kgo.TryCommit
		if abort {
			how = kgo.TryAbort
		}
		if err := cl.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	source := committedRecords(t, a, topic)
	await(t, "MirrorMaker has copied all", func() string { return lacks(len(source), int(endOf(t, b, tr.remote(topic)))) })
	index := map[string]int{} // of the record that a group reads next
	for g := range groups {
		group := fmt.Sprintf("%s-%03d", tr.alias, g)
		index[group] = g * len(source) / groups
		a.CommitGroup(t, group, topic, source[index[group]].Offset)
	}
	// behind is how many records each group would read again; -1 where it has no offset.
	behind := func() []int {
		target := committedRecords(t, b, tr.remote(topic))
		names := make([]string, 0, groups)
		for g := range index {
			names = append(names, g)
		}
		var out []int
		for group, r := range b.Admin(t).FetchManyOffsets(t.Context(), names...) {
			o, ok := r.Fetched.Lookup(tr.remote(topic), 0)
			if !ok || o.At < 0 {
				out = append(out, -1)
				continue
			}
			at, _ := slices.BinarySearchFunc(target, o.At, func(r kafka.Record, at int64) int { return int(r.Offset - at) })
			out = append(out, index[group]-at)
		}
		return out
	}
	tell := func(who string, took time.Duration) {
		exact, none, sum, worst := 0, 0, 0, 0
		for _, n := range behind() {
			switch {
			case n < -1:
				t.Errorf("%s: a group stands %d records ahead", who, -n)
			case n == -1:
				none++
			case n == 0:
				exact++
			}
			sum, worst = sum+max(n, 0), max(worst, n)
		}
		t.Logf("%s after %s: %d of %d groups exact, %d without an offset, the others %d records behind on average, %d at most",
			who, took.Round(time.Second), exact, groups, none, sum/max(1, groups-exact-none), worst)
	}
	time.Sleep(45 * time.Second)
	tell("Java MirrorMaker "+kafkatest.ReleaseTarget, 45*time.Second)
	if err := java.Stop(); err != nil {
		t.Fatal(err)
	}
	h := launch(t, binary(t), "takeover", tr.file, "--admin-address", "127.0.0.1:0")
	h.awaitLog("flow starts")
	began := time.Now()
	await(t, "all groups are exact", func() string {
		exact := 0
		for _, n := range behind() {
			if n == 0 {
				exact++
			}
		}
		return lacks(groups, exact)
	})
	tell("heliograph", time.Since(began))
	h.stop()
}
