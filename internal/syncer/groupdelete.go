package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/plan"
	"heliograph/internal/telemetry"
)

// GroupDeleter deletes groups; a broker refuses those that have members.
type GroupDeleter interface {
	DeleteGroups(ctx context.Context, groups ...string) map[string]error
}

// noteGone finds the groups that have checkpoints and are not on the source any
// more. A listing shows only what we may describe: see deleteGone.
func (g *GroupSync) noteGone(listed []kafka.GroupListing) {
	if !g.o.Deletions {
		return
	}
	there := map[string]bool{}
	for _, l := range listed {
		there[l.Group] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for group := range g.mu.last {
		if there[group] {
			delete(g.mu.gone, group)
		} else {
			g.mu.gone[group] = true
		}
	}
}

// deleteGone deletes groups on the target that were deleted on the source, where
// they are empty and stand where we put them. A group that the source does not
// let us see any more is not gone.
func (g *GroupSync) deleteGone(ctx context.Context, now time.Time) error {
	g.mu.Lock()
	groups := slices.Sorted(maps.Keys(g.mu.gone))
	g.mu.Unlock()
	source, describes := g.source.(groupDescriber)
	target, deletes := g.target.(GroupDeleter)
	if len(groups) == 0 || !describes || !deletes {
		return nil
	}
	return everyBatch(groups, g.batch(), func(batch []string) error {
		if err := g.o.SourceBudget.Take(ctx); err != nil {
			return err
		}
		var gone []string
		for group, d := range source.DescribeGroups(ctx, batch...) {
			if d.Err == nil && d.State == kafka.GroupDead || kafka.CodeOf(d.Err) == kafka.CodeGroupIDNotFound {
				gone = append(gone, group)
			}
		}
		if len(gone) == 0 {
			return nil
		}
		slices.Sort(gone)
		inputs, err := g.look(ctx, gone)
		if err != nil {
			return err
		}
		for _, in := range inputs {
			g.deleteOne(ctx, now, in, target)
		}
		return nil
	})
}

// groupDescriber tells the state of groups on the source.
type groupDescriber interface {
	DescribeGroups(ctx context.Context, groups ...string) map[string]kafka.GroupDescription
}

func (g *GroupSync) deleteOne(ctx context.Context, now time.Time, in plan.GroupInput, target GroupDeleter) {
	var err error
	switch {
	case in.Err != nil:
		return // not known: next round
	case in.State == kafka.GroupDead:
	case in.State != kafka.GroupEmpty || in.Members > 0:
		err = fmt.Errorf("group %s was deleted on cluster %s and is in use on cluster %s: it stays", in.Group, g.o.Flow.Source, g.o.Flow.Target)
	case !standsAsWritten(in):
		err = fmt.Errorf("group %s was deleted on cluster %s and has moved on cluster %s since: it stays", in.Group, g.o.Flow.Source, g.o.Flow.Target)
	default:
		if err = g.o.TargetBudget.Take(ctx); err != nil {
			return
		}
		if err = target.DeleteGroups(ctx, in.Group)[in.Group]; kafka.Heals(err) {
			return
		}
		if err == nil {
			g.o.Log.LogAttrs(ctx, slog.LevelInfo, "group deleted, as on the source", slog.String(telemetry.KeyGroup, in.Group))
		}
	}
	g.conditions.Report(now, "delete "+in.Group, err, slog.String(telemetry.KeyGroup, in.Group))
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.mu.gone, in.Group)
		delete(g.mu.last, in.Group)
		delete(g.mu.written, in.Group)
	}
}

// standsAsWritten reports whether every offset of the group on the target is one
// of ours.
func standsAsWritten(in plan.GroupInput) bool {
	for tp, at := range in.Snapshot {
		if w, ok := in.Wanted[tp]; at >= 0 && (!ok || int64(w.Offset) != at) {
			return false
		}
	}
	return true
}
