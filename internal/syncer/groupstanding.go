package syncer

import (
	"context"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/plan"
)

// GroupStanding is how one followed group stands on both sides, and what the
// next round would make of it.
type GroupStanding struct {
	Group   string
	State   kafka.GroupState // on the target; empty where it did not tell
	Members int
	Err     error // why the source does not tell the group's offsets
	// Withheld is why the whole group is left alone; its reason is empty where it is not.
	Withheld   plan.Withheld
	Partitions []PartitionStanding
}

// PartitionStanding is a group's place in one partition.
type PartitionStanding struct {
	Source, Target kafka.TopicPartition
	Committed      mirror.UpstreamOffset
	Translation    offsets.Translation
	// There is what the group has committed on the target; a negative one is nothing.
	There kafka.GroupOffset
	// Due is why the offset would be written now; Withheld why not.
	Due      string
	Withheld plan.Withheld
}

// Standing tells how the groups that Discover found stand. It writes nothing,
// and knows nothing of what was written before.
func (g *GroupSync) Standing(ctx context.Context) ([]GroupStanding, error) {
	g.mu.Lock()
	groups := g.mu.groups
	g.mu.last = checkpoints{}
	g.mu.Unlock()
	var all []GroupStanding
	err := everyBatch(groups, g.batch(), func(batch []string) error {
		here := g.source.FetchGroupOffsets(ctx, batch...)
		there := g.target.FetchGroupOffsets(ctx, batch...)
		some := make([]GroupStanding, len(batch))
		for i, group := range batch {
			some[i] = g.standing(group, here[group], there[group])
		}
		inputs, err := g.look(ctx, batch)
		if err != nil {
			return err
		}
		for i := range some {
			some[i].judge(inputs[i], g.o.Now())
		}
		all = append(all, some...)
		return nil
	})
	return all, err
}

// standing translates one group's offsets and makes them the wanted ones.
func (g *GroupSync) standing(group string, here, there kafka.GroupOffsets) GroupStanding {
	s := GroupStanding{Group: group, Err: here.Err}
	committed := map[kafka.TopicPartition]kafka.GroupOffset{}
	for _, o := range there.Offsets {
		committed[o.TopicPartition] = o
	}
	relevant := g.relevant(here.Offsets)
	slices.SortFunc(relevant, func(a, b kafka.GroupOffset) int { return a.Compare(b.TopicPartition) })
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range relevant {
		p := PartitionStanding{
			Source: o.TopicPartition, Target: g.targetName(o.TopicPartition), Committed: mirror.UpstreamOffset(o.Offset),
			Translation: g.o.Translator.Translate(o.TopicPartition, mirror.UpstreamOffset(o.Offset)),
		}
		var ok bool
		if p.There, ok = committed[p.Target]; !ok {
			p.There = kafka.GroupOffset{TopicPartition: p.Target, Offset: -1, Err: there.Err}
		}
		if p.Translation.Known() {
			g.mu.last.put(mirror.Checkpoint{
				Group: group, TopicPartition: p.Target, Upstream: p.Committed, Downstream: p.Translation.Offset, Metadata: o.Metadata,
			})
		}
		s.Partitions = append(s.Partitions, p)
	}
	return s
}

// judge applies the rules of a commit.
func (s *GroupStanding) judge(in plan.GroupInput, now time.Time) {
	s.State, s.Members = in.State, in.Members
	planned := plan.Group(in, plan.GroupRules{Fresh: snapshotFresh, Now: now})
	due, withheld := map[kafka.TopicPartition]string{}, map[kafka.TopicPartition]plan.Withheld{}
	for _, o := range planned.Commit.Offsets {
		due[o.TopicPartition] = o.Reason
	}
	for _, w := range planned.Withheld {
		withheld[w.Partition] = w
	}
	s.Withheld = withheld[kafka.TopicPartition{}]
	for i := range s.Partitions {
		p := &s.Partitions[i]
		p.Due, p.Withheld = due[p.Target], withheld[p.Target]
		if !p.Translation.Known() {
			p.Withheld = plan.Withheld{Group: s.Group, Partition: p.Target, Reason: plan.GroupUntranslated}
		}
	}
}
