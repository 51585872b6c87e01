package syncer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
)

// LookAgain is when a group that could not be translated exactly is looked at
// again, whatever the interval is: its records may have been copied since. The
// pause doubles while that does not help, up to lookAgainAtMost.
const LookAgain = 5 * time.Second

const lookAgainAtMost = 4 * LookAgain

// look is what was found of a group on the source.
type look struct {
	at    time.Time
	where uint64 // of its offsets: another one means that the group has moved
}

// coarseGroup is a group of which some partitions could not be translated exactly.
type coarseGroup struct {
	partitions int
	again      time.Time
	pause      time.Duration
}

// Emit writes a checkpoint for each followed group and partition that has moved.
// Before Load it does nothing.
func (g *GroupSync) Emit(ctx context.Context, now time.Time) error {
	groups, all := g.toLookAt(now)
	var failed []error
	written := 0
	err := everyBatch(groups, g.batch(), func(batch []string) error {
		if err := g.o.SourceBudget.Take(ctx); err != nil {
			return err
		}
		at := g.o.Now()
		got := g.source.FetchGroupOffsets(ctx, batch...)
		var due []mirror.Checkpoint
		for _, group := range batch {
			g.reportGroup(now, group, "offsets", got[group].Err)
			if err := got[group].Err; err != nil {
				g.setStatus(group, func(s *GroupStatus) { s.Reason = g.unreadable(group, err) })
				if kafka.Heals(err) {
					failed = append(failed, err)
				}
				continue
			}
			due = append(due, g.due(at, group, got[group].Offsets, all)...)
		}
		written += len(due)
		return g.emit(ctx, at, due)
	})
	if written > 0 && g.o.Emitted != nil {
		g.o.Emitted()
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("offsets of %s not read: %w", counted(len(failed), "group"), located("fetch group offsets", g.o.Flow.Source, failed[0])))
	}
	if err != nil { // the next round makes up for it
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.allAt = time.Time{}
	}
	return err
}

// toLookAt are all groups once an interval, and in between those that were never
// looked at, or not exact.
func (g *GroupSync) toLookAt(now time.Time) (groups []string, all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.last == nil {
		return nil, false
	}
	// A round may come a little early; the next one would be late by more.
	if g.mu.allAt.IsZero() || now.Sub(g.mu.allAt) >= g.o.EmitEvery-min(g.o.EmitEvery, LookAgain)/2 {
		g.mu.allAt = now
		return g.mu.groups, true
	}
	for _, group := range g.mu.groups {
		_, known := g.mu.looked[group]
		c, coarse := g.mu.coarse[group]
		if !known || coarse && !now.Before(c.again) {
			groups = append(groups, group)
		}
	}
	return groups, false
}

// Sharpened has the groups that are not exact looked at in the next round of
// Emit: translations have become better.
func (g *GroupSync) Sharpened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for group, c := range g.mu.coarse {
		c.again = time.Time{}
		g.mu.coarse[group] = c
	}
}

// due are one group's checkpoints that say something new. Between two looks at all
// groups one that is not exact yet is given only where it has become better:
// while its records are being copied it would be written again and again.
func (g *GroupSync) due(at time.Time, group string, committed []kafka.GroupOffset, all bool) []mirror.Checkpoint {
	relevant := g.relevant(committed)
	slices.SortFunc(relevant, func(a, b kafka.GroupOffset) int { return a.Compare(b.TopicPartition) })
	var translated []mirror.Checkpoint
	coarse := 0
	for _, o := range relevant {
		t := g.o.Translator.Translate(o.TopicPartition, mirror.UpstreamOffset(o.Offset))
		if t.Known() {
			translated = append(translated, mirror.Checkpoint{
				Group: group, TopicPartition: g.targetName(o.TopicPartition),
				Upstream: mirror.UpstreamOffset(o.Offset), Downstream: t.Offset, Metadata: o.Metadata,
			})
		}
		if t.Quality < offsets.Next {
			coarse++
		}
	}
	g.setStatus(group, func(s *GroupStatus) {
		s.Partitions, s.Checkpoints, s.CheckpointAt, s.Reason = len(relevant), len(translated), at, ""
		switch {
		case len(translated) == 0:
			s.Reason = "no offset can be translated yet"
		case len(translated) < len(relevant):
			s.Reason = fmt.Sprintf("%d of %s can be translated", len(translated), counted(len(relevant), "partition"))
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	due := slices.DeleteFunc(translated, func(c mirror.Checkpoint) bool { return !g.mu.last.due(c) })
	where := whereabouts(relevant)
	before, seen := g.mu.looked[group]
	g.mu.looked[group] = look{at, where}
	if seen && before.where != where {
		g.latency.begin(group, before.at)
	}
	better := g.noteCoarse(at, group, coarse)
	if coarse == 0 && len(due) == 0 && g.stands(group) {
		g.latency.end(group, at, true) // it moved over what has no copy
	}
	if seen && !all && !better {
		return nil
	}
	return due
}

// noteCoarse keeps of how many partitions a group is not exact, and reports
// whether there are fewer than before. Called with the lock held.
func (g *GroupSync) noteCoarse(at time.Time, group string, partitions int) (better bool) {
	before := g.mu.coarse[group]
	better = partitions < before.partitions
	if partitions == 0 {
		delete(g.mu.coarse, group)
		return better
	}
	pause := LookAgain
	if !better && partitions == before.partitions {
		pause = min(2*before.pause, lookAgainAtMost)
	}
	g.mu.coarse[group] = coarseGroup{partitions: partitions, again: at.Add(pause), pause: pause}
	return better
}

// stands reports whether all that was written down of a group stands on the
// target. Called with the lock held.
func (g *GroupSync) stands(group string) bool {
	s, ok := g.mu.settled[group]
	return ok && s.change == g.mu.changed[group]
}

// whereabouts is a number that changes when a group moves.
func whereabouts(committed []kafka.GroupOffset) uint64 {
	h := fnv.New64a()
	for _, o := range committed {
		place := strconv.AppendInt(append([]byte(o.Topic), 0), int64(o.Partition), 10)
		_, _ = h.Write(strconv.AppendInt(append(place, 0), o.Offset, 10))
	}
	return h.Sum64()
}

// emit writes checkpoints, and remembers them once they are written.
func (g *GroupSync) emit(ctx context.Context, at time.Time, due []mirror.Checkpoint) error {
	return everyBatch(due, checkpointBatch, func(some []mirror.Checkpoint) error {
		records := make([]kafka.Record, len(some))
		for i, c := range some {
			records[i] = kafka.Record{Key: c.AppendKey(nil), Value: c.AppendValue(nil), Timestamp: at.UnixMilli()}
		}
		if _, err := g.books.WriteRecords(ctx, g.topic, records); err != nil {
			others := ""
			if some[0].Group != some[len(some)-1].Group {
				others = " and others"
			}
			return fmt.Errorf("checkpoints of group %s%s: %w", some[0].Group, others, located("write", g.o.Flow.Target, err))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range some {
			g.mu.last.put(c)
			g.mu.changed[c.Group]++
		}
		return nil
	})
}
