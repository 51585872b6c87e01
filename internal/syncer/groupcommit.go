package syncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

const (
	// settledFor is how long a group is not looked at on the target that stood there
	// as it should, as long as it does not move on the source.
	settledFor = 30 * time.Second
	// mostLooked is how many groups are looked at on the target and then written.
	mostLooked = 200
	// commitsAtOnce bounds the commits under way; each is one request of its own.
	commitsAtOnce = 8
	// A round's commits are spread over its interval, within these rates a second.
	leastCommits = 200
	mostCommits  = 2000
)

// Commit moves the target's groups to the places their last checkpoints tell,
// where plan.Group allows it. Groups go through it a few at a time: described,
// their offsets read, planned and written, so that what was seen is fresh. Those
// that a slow target has made wait for too long are looked at again.
func (g *GroupSync) Commit(ctx context.Context, now time.Time) error {
	groups := g.unsettled(g.o.Now())
	budget := g.commitBudget(len(groups))
	var failed []error
	var err error
	for len(groups) > 0 && err == nil {
		var stale []string
		err = everyBatch(groups, min(g.batch(), mostLooked), func(batch []string) error {
			late, errs, err := g.commitSome(ctx, now, batch, budget)
			stale, failed = append(stale, late...), append(failed, errs...)
			return err
		})
		if len(stale) == len(groups) {
			break // none was fresh: another time
		}
		groups = stale
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("offsets of %s not written: %w", counted(len(failed), "group"), located("commit group offsets", g.o.Flow.Target, failed[0]))
	}
	return errors.Join(err, g.deleteGone(ctx, now))
}

// commitSome looks at some groups and writes them. late are those whose turn came
// when they had to be looked at again, failed the troubles that pass, one a group.
func (g *GroupSync) commitSome(ctx context.Context, now time.Time, groups []string, budget *Budget) (late []string, failed []error, err error) {
	inputs, err := g.look(ctx, groups)
	if err != nil {
		return nil, nil, err
	}
	withheld, errs := make([][]plan.Withheld, len(inputs)), make([]error, len(inputs))
	var work errgroup.Group
	work.SetLimit(commitsAtOnce)
	for i, in := range inputs {
		work.Go(func() error {
			withheld[i], errs[i] = g.commit(ctx, now, in, budget)
			return nil
		})
	}
	_ = work.Wait() // the errors are in errs
	for i, in := range inputs {
		if slices.ContainsFunc(withheld[i], isStale) {
			late = append(late, in.Group)
		}
		if errs[i] != nil {
			failed = append(failed, errs[i])
		}
	}
	return late, failed, nil
}

func isStale(w plan.Withheld) bool { return w.Reason == plan.GroupStale }

// unsettled are the groups to look at in this round: those that moved, those of
// which something did not stand on the target, and the others now and then.
func (g *GroupSync) unsettled(now time.Time) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var groups []string
	for _, group := range g.mu.groups {
		s, ok := g.mu.settled[group]
		if len(g.mu.last[group]) == 0 || ok && s.change == g.mu.changed[group] && now.Sub(s.at) < settledFor {
			continue
		}
		groups = append(groups, group)
	}
	return groups
}

// commitBudget spreads the commits of so many groups over the first half of the interval.
func (g *GroupSync) commitBudget(groups int) *Budget {
	perSecond := leastCommits
	if g.o.CommitEvery > 0 {
		perSecond = int(float64(groups) / (0.4 * g.o.CommitEvery.Seconds()))
	}
	return NewBudget(min(max(perSecond, leastCommits), mostCommits), g.o.Now)
}

// look takes the snapshot of some groups on the target.
func (g *GroupSync) look(ctx context.Context, batch []string) ([]plan.GroupInput, error) {
	if err := g.o.TargetBudget.Take(ctx); err != nil {
		return nil, err
	}
	at := g.o.Now()
	described := g.target.DescribeGroups(ctx, batch...)
	for group, d := range described {
		if kafka.CodeOf(d.Err) == kafka.CodeGroupIDNotFound {
			described[group] = kafka.GroupDescription{Group: group, State: kafka.GroupDead}
		}
	}
	var idle []string
	for _, group := range batch {
		d := described[group]
		if d.Err == nil && (d.State == kafka.GroupEmpty || d.State == kafka.GroupDead) {
			idle = append(idle, group)
		}
	}
	offsets := map[string]kafka.GroupOffsets{}
	if len(idle) > 0 {
		if err := g.o.TargetBudget.Take(ctx); err != nil {
			return nil, err
		}
		offsets = g.target.FetchGroupOffsets(ctx, idle...)
	}
	var partitions map[string]int32
	if g.o.TargetPartitions != nil {
		partitions = g.o.TargetPartitions()
	}
	inputs := make([]plan.GroupInput, len(batch))
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, group := range batch {
		d, o := described[group], offsets[group]
		in := plan.GroupInput{
			Group: group, State: d.State, Members: d.Members, Err: d.Err, SnapshotAt: at, Partitions: partitions,
			Wanted: map[kafka.TopicPartition]plan.GroupTarget{}, Snapshot: map[kafka.TopicPartition]int64{}, Written: maps.Clone(g.mu.written[group]),
		}
		for tp, c := range g.mu.last[group] {
			in.Wanted[tp] = plan.GroupTarget{Offset: c.Downstream, Metadata: c.Metadata}
		}
		if in.Err == nil {
			in.Err = o.Err
		}
		for _, p := range o.Offsets {
			if p.Err != nil && in.Err == nil {
				in.Err = p.Err // what is not known is not overwritten
			}
			in.Snapshot[p.TopicPartition] = p.Offset
		}
		inputs[i] = in
	}
	return inputs, nil
}

// commit writes what the plan allows for one group, and returns what it withheld.
// Its error is one that passes.
func (g *GroupSync) commit(ctx context.Context, now time.Time, in plan.GroupInput, budget *Budget) ([]plan.Withheld, error) {
	g.mu.Lock()
	change := g.mu.changed[in.Group] // may move on while we write
	g.mu.Unlock()
	planned := plan.Group(in, plan.GroupRules{Fresh: snapshotFresh, Refresh: refreshOffsets, Now: g.o.Now()})
	withheld := planned.Withheld
	var outcome map[kafka.TopicPartition]error
	var err error
	if len(planned.Commit.Offsets) > 0 {
		if err := budget.Take(ctx); err != nil {
			return nil, err
		}
		offsets := make([]kafka.GroupOffset, len(planned.Commit.Offsets))
		for i, o := range planned.Commit.Offsets {
			offsets[i] = kafka.GroupOffset{TopicPartition: o.TopicPartition, Offset: int64(o.Offset), LeaderEpoch: kafka.NoLeaderEpoch, Metadata: o.Metadata}
		}
		outcome, err = g.target.CommitGroupOffsets(ctx, in.Group, offsets)
	}
	synced := 0
	var refused error
	for _, o := range planned.Commit.Offsets {
		perr := err
		if perr == nil {
			perr = outcome[o.TopicPartition]
		}
		switch {
		case perr == nil:
			synced++
			g.noteWrite(in.Group, o.TopicPartition, o.Offset, now)
		case becameActive(kafka.CodeOf(perr)):
			withheld = append(withheld, plan.Withheld{Group: in.Group, Partition: o.TopicPartition, Reason: plan.GroupActive, Detail: kafka.CodeOf(perr).String()})
		default:
			refused = perr
			withheld = append(withheld, plan.Withheld{Group: in.Group, Partition: o.TopicPartition, Reason: plan.CommitRefused, Detail: kafka.CauseOf(perr)})
		}
	}
	g.noteCommit(now, in.Group, synced, withheld)
	g.noteSettled(in.Group, change, withheld)
	g.reportGroup(now, in.Group, "commit", refused)
	if synced > 0 {
		g.o.Log.LogAttrs(ctx, slog.LevelDebug, "group offsets written", slog.String(telemetry.KeyGroup, in.Group), slog.Int(telemetry.KeyCount, synced))
	}
	if kafka.Heals(refused) {
		return withheld, refused
	}
	return withheld, nil
}

// becameActive reports the answers of a broker whose group has members.
func becameActive(c kafka.Code) bool {
	switch c {
	case kafka.CodeUnknownMemberID, kafka.CodeRebalanceInProgress, kafka.CodeStaleMemberEpoch, kafka.CodeIllegalGeneration, kafka.CodeNonEmptyGroup:
		return true
	}
	return false
}

// noteSettled notes whether all of a group stands on the target, as it was at
// the given change of its checkpoints.
func (g *GroupSync) noteSettled(group string, change int, withheld []plan.Withheld) {
	now := g.o.Now()
	arrived := !slices.ContainsFunc(withheld, func(w plan.Withheld) bool { return w.Reason != plan.InPlace })
	if slices.ContainsFunc(withheld, isStale) {
		return // it is looked at again
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if arrived {
		g.mu.settled[group] = settledGroup{change, now}
	}
	_, coarse := g.mu.coarse[group]
	if !arrived || !coarse && change == g.mu.changed[group] {
		g.latency.end(group, now, arrived)
	}
}

func (g *GroupSync) noteWrite(group string, tp kafka.TopicPartition, offset mirror.DownstreamOffset, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.mu.written[group]
	if of == nil {
		of = map[kafka.TopicPartition]plan.GroupWrite{}
		g.mu.written[group] = of
	}
	of[tp] = plan.GroupWrite{Offset: offset, At: now}
}

// noteCommit keeps how a group's round went. A partition that is already in
// place counts as synced.
func (g *GroupSync) noteCommit(now time.Time, group string, synced int, withheld []plan.Withheld) {
	var left []plan.Withheld
	for _, w := range withheld {
		if w.Reason == plan.InPlace {
			synced++
			continue
		}
		left = append(left, w)
	}
	g.setStatus(group, func(s *GroupStatus) { s.Synced, s.SyncedAt, s.Withheld = synced, now, left })
}
