package coord

import (
	"context"
	"errors"
	"fmt"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// scanRun is one partition's scan under way.
type scanRun struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newScanRun(life context.Context) (context.Context, *scanRun) {
	ctx, cancel := context.WithCancel(life)
	return ctx, &scanRun{cancel, make(chan struct{})}
}

// end stops the scan and waits for it. A partition that was not scanned has none.
func (r *scanRun) end() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// scan finds one partition's place, starts its track, and returns how many
// records it found behind the position. marked are the partitions that were fenced,
// and by whom.
func (o *ownedLane) scan(ctx context.Context, s placed, marked map[kafka.TopicPartition]kafka.ProducerID, wait func()) int {
	k := o.keeper
	to := limit{marker: kafka.NoProducer, end: int64(s.in.TargetLog.End)}
	if by, ok := marked[s.Target]; ok {
		to.marker = by
	}
	var writers map[int64]bool
	if s.p.Anchored {
		writers = map[int64]bool{s.in.Stored.Facts.ProducerID: true, o.id.producer.ID: true}
	}
	if !to.hasMarker() && s.p.Anchored && !s.in.Stored.Facts.Clean {
		wait() // until the last owner's session must have ended
		if end := k.target.ListOffsets(ctx, []kafka.TopicPartition{s.Target}, kafka.Latest, kafka.ReadUncommitted)[s.Target]; end.Err == nil {
			to.end = end.Offset
		}
	}
	sc := scanner{source: k.source, target: k.target, iso: k.opts.Isolation, compacted: s.Demands.Compacted, seed: k.seed}
	f, err := o.find(ctx, &sc, s, writers, to)
	for errors.Is(err, errNoMarker) && ctx.Err() == nil {
		k.log.Warn("the fence did not reach a partition, fencing it again", "lane", o.index, "topic", s.Target.Topic, "partition", s.Target.Partition)
		if marked, err := o.mark(ctx, s.Target); err != nil {
			k.log.Warn("a partition cannot be fenced yet", "topic", s.Target.Topic, "partition", s.Target.Partition, "err", err)
		} else if by, ok := marked[s.Target]; ok {
			to.marker = by
		}
		f, err = k.scanFrom(ctx, &sc, &s, writers, to)
	}
	spec := replicate.TrackSpec{Replica: s.Replica.Replica, Next: f.next, Write: f.write, Known: true, Moved: true}
	switch {
	case ctx.Err() != nil:
		return 0
	case err == nil:
		spec.Runs = mapFound(o.runMap(s.Replica), f.pairs)
	}
	switch {
	case err != nil:
		spec.Next, spec.Write = s.p.Source, s.p.Target
		o.lane.Park(spec, "where the last owner stopped cannot be found: "+err.Error())
		return 0
	case f.foreign > 0 && s.Policy.ParkForeign:
		reason := fmt.Sprintf("somebody else wrote %d records to %s behind ours: copying on would append to them", f.foreign, s.Target)
		if err := o.enter(ctx, s.Replica, plan.Placement{Kind: plan.PlacePark, Source: f.next, Reason: reason, Lost: losses.ForeignWriter}); err != nil {
			k.log.Warn("the loss ledger was not written", "err", err)
		}
		o.lane.Park(spec, reason)
		return f.ours
	case f.foreign > 0:
		k.log.Warn("somebody else writes to a replicated partition", "topic", s.Target.Topic, "partition", s.Target.Partition, "records", f.foreign)
	}
	if !o.enterGap(ctx, s, f.gone) {
		return 0
	}
	o.begin([]replicate.TrackSpec{spec})
	return f.ours
}

// Held is the reason of tracks that only write down where they stand.
const Held = "its place is found; nothing is copied"

// begin starts tracks whose places are found, or only has their places written down.
func (o *ownedLane) begin(specs []replicate.TrackSpec) {
	if !o.keeper.opts.Settle {
		o.lane.Start(specs)
		return
	}
	for _, s := range specs {
		s.Moved = s.Known
		o.lane.Park(s, Held)
	}
}

// find finds a partition's place by the rules of its position.
func (o *ownedLane) find(ctx context.Context, sc *scanner, s placed, writers map[int64]bool, to limit) (found, error) {
	k := o.keeper
	if s.p.Anchored {
		return k.scanFrom(ctx, sc, &s, writers, to)
	}
	k.silenceJava(ctx)
	end, err := k.still(ctx, s.Target)
	if err != nil {
		return found{}, err
	}
	s.p.Target = s.tailStart()
	sc.clocks = []bool{false}
	if !s.Demands.LogAppendTime {
		sc.clocks = []bool{true, false}
	}
	return sc.findBehindJava(ctx, s, k.syncsOf(ctx, s.Source), end)
}

// enterGap writes what the source's retention took between the position and the
// source's start into the ledger, less what had been copied before; each record
// of that took an offset at least. It reports false when the lane ended first.
func (o *ownedLane) enterGap(ctx context.Context, s placed, copied int) bool {
	if s.p.Gap == nil {
		return true
	}
	gap := *s.p.Gap
	gap.From += mirror.UpstreamOffset(copied)
	if gap.From >= gap.To {
		return true
	}
	s.p.Gap = &gap
	for {
		err := o.enter(ctx, s.Replica, s.p)
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		o.keeper.log.Warn("a partition cannot start before its loss is written down", "topic", s.Source.Topic, "partition", s.Source.Partition, "err", err)
		pause(ctx, takeoverPause)
	}
}

// mostBehind is how far MirrorMaker's position can lie behind what it wrote: it
// commits once a minute, and no partition takes more records in that time.
const mostBehind = 10_000_000

// someTakeovers is more markers of takeovers than a tail will hold.
const someTakeovers = 1000

// tailStart is where reading must begin so that the target's tail can hold all
// source records behind the position. Markers take offsets too: one a
// takeover, and in transactions at most one a record.
func (s placed) tailStart() mirror.DownstreamOffset {
	behind := min(mirror.DownstreamOffset(s.in.SourceLog.End-s.p.Source), mostBehind)
	return max(s.in.TargetLog.Start, s.in.TargetLog.End-2*behind-someTakeovers)
}
