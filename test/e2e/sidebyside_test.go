//go:build e2e && long

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
	"heliograph/internal/kafkatest"
)

// How far behind groups stand that Java MirrorMaker moved, and how long heliograph
// takes to put them right after it has taken over, on one and the same log. It
// measures; docs/benchmarks.md has what it said.
func TestGroupsSideBySide(t *testing.T) {
	const groups, transactions, size = 400, 2000, 10
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, oneBroker,
		"sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 5", "emit.checkpoints.interval.seconds = 5",
		"refresh.groups.interval.seconds = 5", "emit.heartbeats.enabled = false")
	tr.append("groups = "+tr.alias+"-.*", tr.alias+".consumer.isolation.level = read_committed", tr.to+".offset.flush.interval.ms = 5000")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, 1, nil)
	java := tr.java(kafkatest.ReleaseTarget)

	cl := a.Client(t, kgo.TransactionalID(topic))
	for n := range transactions {
		var records []*kgo.Record
		for i := range size {
			value := make([]byte, 100)
			putNumber(value, int64(n*size+i))
			records = append(records, &kgo.Record{Topic: topic, Value: value})
		}
		how := kgo.TryCommit
		if n%4 == 3 {
			how = kgo.TryAbort
		}
		if err := transact(t.Context(), cl, how, records...); err != nil {
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
	h := tr.takeover()
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

// Thousands of groups on a thousand partitions, on real brokers. It measures;
// docs/benchmarks.md has what it said.
func TestThousandsOfGroupsOnBrokers(t *testing.T) {
	const groups, parts, each = 4000, 1000, 5
	a, b := kafkatest.Pair(t)
	tr := newTrial(t, a, b, "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 60")
	topic := tr.topic("orders")
	a.CreateTopic(t, topic, parts, nil)
	a.Produce(t, kafkatest.Messages(topic, parts, 10))
	name := func(g int) string { return fmt.Sprintf("%s-%04d", tr.alias, g) }
	commit := func(c *kafkatest.Cluster, g int, at int64) {
		var all kadm.Offsets
		for i := range each {
			all.Add(kadm.Offset{Topic: topic, Partition: int32((g*each + i) % parts), At: at, LeaderEpoch: -1})
		}
		resp, err := c.Admin(t).CommitOffsets(t.Context(), name(g), all)
		if err == nil {
			err = resp.Error()
		}
		if err != nil {
			t.Error(err)
		}
	}
	var work errgroup.Group
	work.SetLimit(8)
	for g := range groups {
		work.Go(func() error { commit(a, g, int64(g%10)); return nil })
	}
	_ = work.Wait()
	h := start(t, tr.file)
	awaitWithin(t, 3*patience, "all is copied", func() string {
		return lacks(parts*10, int(h.metric("heliograph_partition_records_total")))
	})
	began := time.Now()
	exact := func(want func(g int) int64) int {
		names := make([]string, groups)
		for g := range names {
			names[g] = name(g)
		}
		n := 0
		for g, r := range b.Admin(t).FetchManyOffsets(t.Context(), names...) {
			var index int
			_, _ = fmt.Sscanf(strings.TrimPrefix(g, tr.alias+"-"), "%d", &index)
			ok := 0
			for _, o := range r.Fetched.Sorted() {
				if o.At == want(index) {
					ok++
				}
			}
			if ok == each {
				n++
			}
		}
		return n
	}
	awaitWithin(t, 3*patience, "all groups stand on the target", func() string { return lacks(groups, exact(func(g int) int64 { return int64(g % 10) })) })
	t.Logf("%d of %d groups exact %s after the copy, interval 60s; CPU %s", groups, groups, time.Since(began).Round(100*time.Millisecond), h.CPU().Round(100*time.Millisecond))
	h.stop()

	// One second by choice: how long a commit takes to the target.
	tr.append("sync.group.offsets.interval.seconds = 1")
	h = start(t, tr.file)
	h.awaitState(tr.flow(), "running")
	cpu, since := h.CPU(), time.Now()
	for round := range 20 {
		for g := round; g < groups; g += groups / 10 {
			commit(a, g, int64((g+round)%10))
		}
		time.Sleep(time.Second)
	}
	t.Logf("interval 1s, ten of %d groups move a second: at most %.2fs (median), %.2fs (99th percentile); %.1f%% of a core",
		groups, h.metric("heliograph_flow_group_sync_seconds", `percentile="50"`), h.metric("heliograph_flow_group_sync_seconds", `percentile="99"`),
		100*(h.CPU()-cpu).Seconds()/time.Since(since).Seconds())
	h.stop()
}
