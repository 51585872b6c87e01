package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// GroupTarget is where a group should stand in one partition of the target.
type GroupTarget struct {
	Offset   mirror.DownstreamOffset
	Metadata string
}

// GroupWrite is what we last committed for a group's partition.
type GroupWrite struct {
	Offset mirror.DownstreamOffset
	At     time.Time
}

// GroupInput is what is known of one group at one moment.
type GroupInput struct {
	Group   string
	Wanted  map[kafka.TopicPartition]GroupTarget
	State   kafka.GroupState // on the target
	Members int
	Err     error // why the target did not describe the group, or did not tell its offsets
	// Snapshot are the offsets the target has for the group, read at SnapshotAt
	// after it was seen without members.
	Snapshot   map[kafka.TopicPartition]int64
	SnapshotAt time.Time
	// Written are our last commits of this life. What an earlier life wrote is
	// not known, and then nothing is moved back.
	Written map[kafka.TopicPartition]GroupWrite
	// Partitions are the partition counts of the target's topics; nil where unknown.
	Partitions map[string]int32
}

// GroupRules bound when a group's offsets are written.
type GroupRules struct {
	Fresh   time.Duration // how old a snapshot may be
	Refresh time.Duration // an unchanged offset is committed again after that, before the target lets it expire; 0 never
	Now     time.Time
}

// Withheld is an offset, or with a zero partition a whole group, that is not
// written, and why. The reasons are [Reason] values with detail.
type Withheld struct {
	Group     string
	Partition kafka.TopicPartition // zero where the whole group is meant
	Reason    Reason
	Detail    string
}

// String is one line for the status page.
func (w Withheld) String() string {
	subject := "group " + w.Group
	if w.Partition.Topic != "" {
		subject += " partition " + w.Partition.String()
	}
	s := subject + ": " + string(w.Reason)
	if w.Detail != "" {
		s += ": " + w.Detail
	}
	return s
}

// Reason is why a group's offset is not written, in stable words for metrics and status.
type Reason string

// The reasons.
const (
	GroupActive       Reason = "active on the target"
	GroupUnknownState Reason = "state on the target unknown"
	GroupStale        Reason = "snapshot of the target too old"
	GroupUntranslated Reason = "no offset could be translated"
	TargetAhead       Reason = "target ahead, not written"
	TargetMissing     Reason = "partition does not exist on the target"
	InPlace           Reason = "already in place"
	CommitRefused     Reason = "refused by the target"
)

// GroupPlan is the commit to make, if any, and a reason for each offset left alone.
type GroupPlan struct {
	Commit   CommitGroup // empty Offsets: nothing to write
	Withheld []Withheld
}

// Group plans one group's offsets on the target. A group is touched only while
// it has no members there; an offset moves forward, or back only from where we
// put it ourselves: a rewind on the source is followed, a group that has moved
// on at the target is never pulled back.
func Group(in GroupInput, rules GroupRules) GroupPlan {
	p := GroupPlan{Commit: CommitGroup{Group: in.Group}}
	if reason, detail := in.untouchable(rules); reason != "" {
		p.Withheld = []Withheld{{Group: in.Group, Reason: reason, Detail: detail}}
		return p
	}
	for _, tp := range slices.SortedFunc(maps.Keys(in.Wanted), kafka.TopicPartition.Compare) {
		want := in.Wanted[tp]
		why, reason, detail := in.partition(tp, want.Offset, rules)
		if reason != "" {
			p.Withheld = append(p.Withheld, Withheld{Group: in.Group, Partition: tp, Reason: reason, Detail: detail})
			continue
		}
		p.Commit.Offsets = append(p.Commit.Offsets, CommitOffset{TopicPartition: tp, Offset: want.Offset, Metadata: want.Metadata, Reason: why})
	}
	return p
}

// untouchable says why the whole group is left alone, or nothing.
func (in GroupInput) untouchable(rules GroupRules) (Reason, string) {
	switch {
	case len(in.Wanted) == 0:
		return GroupUntranslated, ""
	case in.Err != nil:
		return GroupUnknownState, kafka.CauseOf(in.Err)
	case in.State == "":
		return GroupUnknownState, ""
	case in.State != kafka.GroupEmpty && in.State != kafka.GroupDead:
		return GroupActive, fmt.Sprintf("state %s with %s", in.State, count(in.Members, "member"))
	case in.Members > 0:
		return GroupActive, count(in.Members, "member")
	case rules.Now.Sub(in.SnapshotAt) > rules.Fresh:
		return GroupStale, fmt.Sprintf("read %s ago", rules.Now.Sub(in.SnapshotAt))
	}
	return "", ""
}

// partition returns why the offset is written, or why it is not.
func (in GroupInput) partition(tp kafka.TopicPartition, want mirror.DownstreamOffset, rules GroupRules) (why string, reason Reason, detail string) {
	if in.Partitions != nil && tp.Partition >= in.Partitions[tp.Topic] {
		return "", TargetMissing, ""
	}
	have, committed := in.Snapshot[tp]
	if !committed || have < 0 {
		return "nothing committed on the target", "", ""
	}
	last, ours := in.Written[tp]
	switch at := mirror.DownstreamOffset(have); {
	case at < want:
		return fmt.Sprintf("forward from %d", have), "", ""
	case at == want && rules.Refresh > 0 && (!ours || rules.Now.Sub(last.At) >= rules.Refresh):
		return "committed again so that it does not expire", "", ""
	case at == want:
		return "", InPlace, ""
	case ours && last.Offset == at:
		return fmt.Sprintf("back from %d, which we wrote: the group was rewound on the source", have), "", ""
	}
	return "", TargetAhead, fmt.Sprintf("target at %d, source translates to %d", have, want)
}
