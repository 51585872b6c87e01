package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

func tp(topic string, partition int32) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: topic, Partition: partition}
}

// wanted is one partition that should stand at 100.
func wanted() map[kafka.TopicPartition]GroupTarget {
	return map[kafka.TopicPartition]GroupTarget{tp("A.orders", 0): {Offset: 100, Metadata: "m"}}
}

func at(offset int64) map[kafka.TopicPartition]int64 {
	return map[kafka.TopicPartition]int64{tp("A.orders", 0): offset}
}

// writes is our commit of the partition, some time ago.
func writes(offset mirror.DownstreamOffset, ago time.Duration) map[kafka.TopicPartition]GroupWrite {
	return map[kafka.TopicPartition]GroupWrite{tp("A.orders", 0): {Offset: offset, At: start.Add(-ago)}}
}

func TestGroupMovesOnlyWhereThatIsSafe(t *testing.T) {
	rules := GroupRules{Fresh: 10 * time.Second, Refresh: 24 * time.Hour, Now: start}
	cases := []struct {
		name string
		in   GroupInput
		want string
	}{
		{
			"unknown on the target",
			GroupInput{State: kafka.GroupDead},
			"commit group g: A.orders-0=100 (nothing committed on the target)",
		},
		{
			"empty without this offset",
			GroupInput{State: kafka.GroupEmpty},
			"commit group g: A.orders-0=100 (nothing committed on the target)",
		},
		{
			"negative offset on the target",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(-1)},
			"commit group g: A.orders-0=100 (nothing committed on the target)",
		},
		{
			"target at zero",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(0)},
			"commit group g: A.orders-0=100 (forward from 0)",
		},
		{
			"target behind",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(50)},
			"commit group g: A.orders-0=100 (forward from 50)",
		},
		{
			"target ahead by itself",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(180)},
			"group g partition A.orders-0: target ahead, not written: target at 180, source translates to 100",
		},
		{
			"target ahead, we wrote less",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(180), Written: writes(150, time.Minute)},
			"group g partition A.orders-0: target ahead, not written: target at 180, source translates to 100",
		},
		{
			"source rewound, target where we put it",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(180), Written: writes(180, time.Minute)},
			"commit group g: A.orders-0=100 (back from 180, which we wrote: the group was rewound on the source)",
		},
		{
			"in place",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(100), Written: writes(100, time.Minute)},
			"group g partition A.orders-0: already in place",
		},
		{
			"in place for a day",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(100), Written: writes(100, 24*time.Hour)},
			"commit group g: A.orders-0=100 (committed again so that it does not expire)",
		},
		{
			"in place since an earlier life",
			GroupInput{State: kafka.GroupEmpty, Snapshot: at(100)},
			"commit group g: A.orders-0=100 (committed again so that it does not expire)",
		},
		{
			"active",
			GroupInput{State: "STABLE", Members: 2},
			"group g: active on the target: state STABLE with 2 members",
		},
		{
			"rebalancing",
			GroupInput{State: "PREPARING_REBALANCE", Members: 1},
			"group g: active on the target: state PREPARING_REBALANCE with 1 member",
		},
		{
			"assigning by the new protocol",
			GroupInput{State: "ASSIGNING", Members: 1},
			"group g: active on the target: state ASSIGNING with 1 member",
		},
		{
			"empty yet with members",
			GroupInput{State: kafka.GroupEmpty, Members: 1},
			"group g: active on the target: 1 member",
		},
		{
			"not described",
			GroupInput{Err: errors.New("no answer")},
			"group g: state on the target unknown: no answer",
		},
		{"no state", GroupInput{}, "group g: state on the target unknown"},
		{
			"snapshot too old",
			GroupInput{State: kafka.GroupEmpty, SnapshotAt: start.Add(-time.Minute)},
			"group g: snapshot of the target too old: read 1m0s ago",
		},
		{
			"nothing translated",
			GroupInput{State: kafka.GroupEmpty, Wanted: map[kafka.TopicPartition]GroupTarget{}},
			"group g: no offset could be translated",
		},
		{
			"topic gone on the target",
			GroupInput{State: kafka.GroupEmpty, Partitions: map[string]int32{"A.other": 1}},
			"group g partition A.orders-0: partition does not exist on the target",
		},
		{
			"partition there",
			GroupInput{State: kafka.GroupEmpty, Partitions: map[string]int32{"A.orders": 1}},
			"commit group g: A.orders-0=100 (nothing committed on the target)",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := c.in
			in.Group = "g"
			if in.Wanted == nil {
				in.Wanted = wanted()
			}
			if in.SnapshotAt.IsZero() {
				in.SnapshotAt = start
			}
			p := Group(in, rules)
			var got []string
			if len(p.Commit.Offsets) > 0 {
				got = append(got, p.Commit.String())
			}
			for _, w := range p.Withheld {
				got = append(got, w.String())
			}
			if joined := strings.Join(got, "\n"); joined != c.want {
				t.Errorf("got  %s\nwant %s", joined, c.want)
			}
		})
	}
}

func TestGroupPartitionsAreDecidedOneByOne(t *testing.T) {
	in := GroupInput{
		Group: "g", State: kafka.GroupEmpty, SnapshotAt: start,
		Wanted:   map[kafka.TopicPartition]GroupTarget{tp("A.b", 1): {Offset: 0}, tp("A.a", 2): {Offset: 5}, tp("A.a", 1): {Offset: 7}},
		Snapshot: map[kafka.TopicPartition]int64{tp("A.a", 1): 9},
	}
	p := Group(in, GroupRules{Fresh: time.Second, Now: start})
	want := "commit group g: A.a-2=5 (nothing committed on the target), A.b-1=0 (nothing committed on the target)"
	if got := p.Commit.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(p.Withheld) != 1 || p.Withheld[0].Reason != TargetAhead {
		t.Errorf("withheld %v", p.Withheld)
	}
}
