package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Whatever is known of a group, it is touched only without members, it goes back
// only from our own write, and once written there is nothing left to write.
func TestGroupIsNeverPulledBack(t *testing.T) {
	states := []kafka.GroupState{kafka.GroupEmpty, kafka.GroupDead, "STABLE", "PREPARING_REBALANCE", "RECONCILING", ""}
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1, 5)
		in := GroupInput{
			Group: "g", State: rapid.SampledFrom(states).Draw(t, "state"), Members: rapid.IntRange(0, 1).Draw(t, "members"), SnapshotAt: start,
			Wanted: map[kafka.TopicPartition]GroupTarget{}, Snapshot: map[kafka.TopicPartition]int64{}, Written: map[kafka.TopicPartition]GroupWrite{},
		}
		for p := range rapid.Int32Range(0, 3).Draw(t, "partitions") {
			in.Wanted[tp("A.t", p)] = GroupTarget{Offset: mirror.DownstreamOffset(rapid.Int64Range(0, 5).Draw(t, "wanted"))}
			if rapid.Bool().Draw(t, "seen") {
				in.Snapshot[tp("A.t", p)] = offset.Draw(t, "snapshot")
			}
			if rapid.Bool().Draw(t, "ours") {
				in.Written[tp("A.t", p)] = GroupWrite{Offset: mirror.DownstreamOffset(offset.Draw(t, "written")), At: start.Add(-time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour)}
			}
		}
		rules := GroupRules{Fresh: time.Second, Refresh: 24 * time.Hour, Now: start}
		plan := Group(in, rules)
		if len(plan.Commit.Offsets) > 0 && (in.Members > 0 || in.State != kafka.GroupEmpty && in.State != kafka.GroupDead) {
			t.Fatalf("%s with %d members is written: %s", in.State, in.Members, plan.Commit)
		}
		for _, o := range plan.Commit.Offsets {
			have, seen := in.Snapshot[o.TopicPartition]
			last, ours := in.Written[o.TopicPartition]
			if seen && mirror.DownstreamOffset(have) > o.Offset && (!ours || last.Offset != mirror.DownstreamOffset(have)) {
				t.Fatalf("pulled back from %d: %s", have, plan.Commit)
			}
			in.Snapshot[o.TopicPartition] = int64(o.Offset)
			in.Written[o.TopicPartition] = GroupWrite{Offset: o.Offset, At: start}
		}
		if again := Group(in, rules); len(again.Commit.Offsets) > 0 {
			t.Fatalf("left to write: %s", again.Commit)
		}
		whole := len(plan.Withheld) == 1 && plan.Withheld[0].Partition.Topic == ""
		if n := len(plan.Commit.Offsets) + len(plan.Withheld); !whole && n != len(in.Wanted) {
			t.Fatalf("%d of %d offsets have an outcome", n, len(in.Wanted))
		}
	})
}
