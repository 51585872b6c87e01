//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"heliograph/internal/kafkatest"
)

const groupSync = "sync.group.offsets.enabled = true\nsync.group.offsets.interval.seconds = 1"

// TestI3GroupSync: a group that moves to backup reads less than offset.lag.max records again.
func TestI3GroupSync(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) { groupSyncOneWay(t, f, 10) })
}

// TestI4GroupSyncWithoutLag: with offset.lag.max=0 it reads none again.
func TestI4GroupSyncWithoutLag(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) { groupSyncOneWay(t, f, 0) })
}

func groupSyncOneWay(t *testing.T, f *fixture, lag int) {
	t.Helper()
	topic, topic2 := f.topic1(), f.topic("test-topic-2")
	f.produce(f.primary, topic, partitions, 100)
	consume(t, f.primary, f.group(), 100, topic)
	h := start(t, f.oneWay(groupSync, fmt.Sprintf("offset.lag.max = %d", lag)))

	f.fullySynced(100, lag, topic)
	f.redelivers(lag, topic)
	noTopics(t, f.primary, f.returned(topic))

	f.primary.CreateTopic(t, topic2, partitions, nil)
	f.produce(f.primary, topic2, partitions, 100)
	// The group also reads what redelivers wrote to the first topic.
	consume(t, f.primary, f.group(), 100+partitions, topic, topic2)
	f.fullySynced(100+partitions, lag, topic)
	f.fullySynced(100, lag, topic2)
	f.redelivers(lag, topic, topic2)
	f.monotonic()
	h.stop()
}

// redelivers moves the group to backup and checks that it reads fewer than lag
// records of each partition again (none for 0). A last record in each partition,
// written on primary and copied, ends the reading.
func (f *fixture) redelivers(lag int, topics ...string) {
	f.tb.Helper()
	var remotes []string
	var lasts []*kgo.Record
	for _, topic := range topics {
		remotes = append(remotes, f.remote(topic))
		for p := range int32(partitions) {
			lasts = append(lasts, &kgo.Record{Topic: topic, Partition: p, Value: []byte("last")})
		}
	}
	f.primary.Produce(f.tb, lasts)
	type place struct {
		topic     string
		partition int32
	}
	again := map[place]int{}
	left := len(lasts)
	consumeUntil(f.tb, f.backup, f.group(), remotes, func(r *kgo.Record) bool {
		if string(r.Value) == "last" {
			left--
			return left == 0
		}
		again[place{r.Topic, r.Partition}]++
		return false
	})
	for at, n := range again {
		if n >= max(lag, 1) {
			f.tb.Errorf("%v: %d records were read again, offset.lag.max is %d", at, n, lag)
		}
	}
}

// TestI7NothingMirroredNoCheckpoint: a partition of which nothing was mirrored gets no checkpoint.
func TestI7NothingMirroredNoCheckpoint(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		topic, silent := f.topic1(), f.topic("test-topic-no-checkpoints")
		f.primary.CreateTopic(t, silent, 1, nil)
		f.produce(f.primary, topic, partitions, 100)
		commitEnds := func() {
			for _, topic := range []string{topic, silent} {
				f.primary.CommitGroup(t, f.group(), topic, ends(t, f.primary, topic)[0])
			}
		}
		commitEnds()
		start(t, f.oneWay())
		await(t, "a checkpoint of the topic with records", func() string {
			return lacks(1, len(f.translated(f.remote(topic))))
		})
		if got := f.translated(f.remote(silent)); len(got) > 0 {
			t.Errorf("checkpoint of a topic of which nothing was mirrored: %v", got)
		}
		f.produce(f.primary, silent, 1, 100)
		commitEnds()
		await(t, "checkpoints of both topics", func() string {
			return lacks(2, min(1, len(f.translated(f.remote(topic))))+len(f.translated(f.remote(silent))))
		})
	})
}

// TestI8Restart: checkpoints do not go back over a restart, and groups go on being followed.
func TestI8Restart(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		const lag = 10
		topic := f.topic1()
		file := f.oneWay(groupSync, fmt.Sprintf("offset.lag.max = %d", lag))
		h := start(t, file)
		f.produce(f.primary, topic, partitions, 100)
		consume(t, f.primary, f.group(), 100, topic)
		f.fullySynced(100, lag, topic)
		h.stop()
		f.monotonic()
		h = start(t, file)
		f.produce(f.primary, topic, partitions, 100)
		consume(t, f.primary, f.group(), 100, topic)
		f.fullySynced(200, lag, topic)
		f.monotonic()
		h.stop()
		awaitCount(within(t, patience), t, f.backup, f.remote(topic), 200)
	})
}

// TestI9GroupBehindReplication: a group far behind is translated too, and goes
// back when it goes back on primary.
func TestI9GroupBehindReplication(t *testing.T) {
	namings(t, func(t *testing.T, f *fixture) {
		const perPartition = 1000
		topic := f.topic1()
		start(t, f.oneWay(groupSync, "offset.lag.max = 10"))
		f.produce(f.primary, topic, partitions, 100)
		consume(t, f.primary, f.group(), 100, topic)
		initial := f.awaitCheckpoints(topic, func(int32, int64) bool { return true })

		for range 9 {
			f.produce(f.primary, topic, partitions, 1000)
		}
		f.produce(f.primary, topic, partitions, 900)
		awaitCount(within(t, 2*patience), t, f.backup, f.remote(topic), partitions*perPartition)
		f.primary.CommitGroup(t, f.group(), topic, slices.Repeat([]int64{perPartition * 9 / 10}, partitions)...)
		high := f.awaitCheckpoints(topic, func(p int32, at int64) bool { return at > initial[p] })
		f.monotonic()

		f.primary.CommitGroup(t, f.group(), topic, slices.Repeat([]int64{perPartition / 10}, partitions)...)
		f.awaitCheckpoints(topic, func(p int32, at int64) bool { return at < high[p] })
	})
}

// awaitCheckpoints waits until the last checkpoints of all partitions are as
// wanted and returns their downstream offsets.
func (f *fixture) awaitCheckpoints(topic string, wanted func(partition int32, downstream int64) bool) map[int32]int64 {
	f.tb.Helper()
	at := map[int32]int64{}
	await(f.tb, "checkpoints of all partitions of "+topic, func() string {
		clear(at)
		for p, c := range f.translated(f.remote(topic)) {
			if wanted(p, int64(c.Downstream)) {
				at[p] = int64(c.Downstream)
			}
		}
		if len(at) < partitions {
			return fmt.Sprintf("only of %v", slices.Sorted(maps.Keys(at)))
		}
		return ""
	})
	return at
}

// TestI3GroupSyncTransactions is row I3 with a source whose offsets hold transaction markers.
func TestI3GroupSyncTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	topic := f.topic1()
	for batch := range 10 {
		f.produceTransaction(topic, fmt.Sprint(batch), 10)
	}
	consume(t, f.primary, f.group(), 100, topic)
	h := start(t, f.oneWay(groupSync, "offset.lag.max = 10"))
	f.fullySynced(100, 10, topic)
	f.redelivers(10, topic)
	f.monotonic()
	h.stop()
	same(t, kafkatest.Side{Cluster: f.primary, Topic: topic}, kafkatest.Side{Cluster: f.backup, Topic: f.remote(topic)})
}

// produceTransaction writes count records, one to each partition in turn, in a transaction.
func (f *fixture) produceTransaction(topic, id string, count int) {
	f.tb.Helper()
	cl := f.primary.Client(f.tb, kgo.TransactionalID(f.name+id))
	var records []*kgo.Record
	for i := range count {
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: fmt.Appendf(nil, "message-%d", i)})
	}
	if err := transact(f.tb.Context(), cl, kgo.TryCommit, records...); err != nil {
		f.tb.Fatal(err)
	}
}
