package daemon

import (
	"strings"
	"testing"

	"heliograph/internal/coord"
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
)

// storedOrders is what a flow has written down of one partition: source offsets
// 100 to 109 and 112 to 121 lie at the target from 50 on, its position is 125.
func storedOrders(t *testing.T, tp kafka.TopicPartition) storedTranslator {
	t.Helper()
	runs := &offsets.RunMap{}
	for _, r := range []offsets.Run{{Up: 100, Down: 50, Count: 10}, {Up: 112, Down: 60, Count: 10}} {
		if _, err := runs.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	syncs := offsets.NewSyncStore(false)
	for _, s := range []mirror.OffsetSync{{TopicPartition: tp, Upstream: 10, Downstream: 5}, {TopicPartition: tp, Upstream: 40, Downstream: 30}} {
		syncs.Apply(s)
	}
	syncs.ReadToEnd()
	facts := &mirror.PositionFacts{NextTarget: 70}
	return storedTranslator{
		maps:  map[kafka.TopicPartition]coord.StoredMap{tp: {Stored: plan.Stored{Last: 124, Committed: true, Facts: facts}, Runs: runs}},
		syncs: syncs,
	}
}

func TestStoredTranslatorAnswersByTheBestThereIs(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "orders"}
	all := storedOrders(t, tp)
	java := storedTranslator{maps: map[kafka.TopicPartition]coord.StoredMap{tp: {Stored: plan.Stored{Last: 124, Committed: true}}}, syncs: all.syncs}
	mapOnly := storedTranslator{maps: all.maps}
	tests := []struct {
		name    string
		from    storedTranslator
		at      mirror.UpstreamOffset
		want    mirror.DownstreamOffset
		quality string
		by      string
		atMost  int64
		says    string
	}{
		{"a record", all, 105, 55, "exact", byMap, 0, "is the record at the other"},
		{"a marker", all, 110, 60, "next", byMap, 0, "no record of this offset"},
		{"the end", all, 125, 70, "exact", byMap, 0, ""},
		{"ahead of the copy", all, 130, 70, "before", byMap, 5, "position at source offset 125"},
		{"older than the map, a sync's own", all, 40, 30, "exact", bySyncs, 0, "older than the offset map"},
		{"older than the map, behind a sync", all, 60, 31, "before", bySyncs, 19, "20 offsets back"},
		{"older than everything", all, 3, 0, "unknown", "", 0, "older than every offset sync"},
		{"older than the map, no syncs", mapOnly, 60, 0, "unknown", "", 0, "older than the offset map"},
		{"Java's position", java, 41, 31, "next", bySyncs, 0, "Java MirrorMaker's"},
		{"nothing stored", storedTranslator{}, 5, 0, "unknown", "", 0, "no position of the partition"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, b := tt.from.answer(tp, tt.at)
			if got.Offset != tt.want || qualityName(got.Quality) != tt.quality || b.by != tt.by || b.atMost != tt.atMost || !strings.Contains(b.reason, tt.says) {
				t.Errorf("%v %+v, want %s %d by %q, at most %d back, %q", got, b, tt.quality, tt.want, tt.by, tt.atMost, tt.says)
			}
		})
	}
}

func TestStoredTranslatorAnswersBack(t *testing.T) {
	tp := kafka.TopicPartition{Topic: "orders"}
	all := storedOrders(t, tp)
	tests := []struct {
		at      mirror.DownstreamOffset
		want    mirror.UpstreamOffset
		quality string
		by      string
	}{
		{55, 105, "exact", byMap},
		{70, 125, "exact", byMap},
		{75, 125, "before", byMap},
		{30, 40, "exact", bySyncs},
		{45, 41, "before", bySyncs},
		{2, 0, "unknown", ""},
	}
	for _, tt := range tests {
		got, b := all.origin(tp, tt.at)
		if got.Offset != tt.want || qualityName(got.Quality) != tt.quality || b.by != tt.by || b.reason == "" {
			t.Errorf("target offset %d: %v %+v, want %s %d by %q", tt.at, got, b, tt.quality, tt.want, tt.by)
		}
	}
}

func TestPlacesBeyondTheCopysPartitionsAreNamed(t *testing.T) {
	pairs := make([]sourceAndCopy, 3)
	for i, p := range []kafka.TopicPartition{{Topic: "A.orders", Partition: 1}, {Topic: "A.orders", Partition: 2}, {Topic: "A.none", Partition: 9}} {
		pairs[i] = sourceAndCopy{GroupOffset: kafka.GroupOffset{TopicPartition: p}, copied: p}
	}
	beyond(pairs, []kafka.TopicDetail{{Name: "A.orders", Partitions: make([]kafka.PartitionDetail, 2)}})
	for i, want := range []string{"", "A.orders has no partition 2 on the target: it has 2 partitions", ""} {
		if pairs[i].why != want {
			t.Errorf("%s: %q, want %q", pairs[i].copied, pairs[i].why, want)
		}
	}
}
