package coord

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// placed is a replica with the decision where it starts.
type placed struct {
	Replica
	in plan.PlaceInput
	p  plan.Placement
}

// start places partitions, fences those with unfinished writing, starts what
// can start at once and scans the rest.
func (o *ownedLane) start(ctx, life context.Context, replicas []Replica) error {
	k := o.keeper
	k.learnLeaders(ctx, replicas)
	sources, targets, failed := k.bounds(ctx, replicas)
	var ready []replicate.TrackSpec
	var scans []placed
	var marks []kafka.TopicPartition
	for _, r := range replicas {
		if err := failed[r.Source]; err != nil {
			if ctx.Err() != nil {
				return err
			}
			o.postpone(ctx, r, err)
			continue
		}
		in := o.input(ctx, r, sources[r.Source], targets[r.Source])
		p := plan.Place(in)
		if p.Kind == plan.PlaceScan {
			scans = append(scans, placed{r, in, p}) // what is lost is known after it
		} else if err := o.enter(ctx, r, p); err != nil {
			k.log.Warn("a partition cannot start before its loss is written down", "topic", r.Source.Topic, "partition", r.Source.Partition, "err", err)
			time.AfterFunc(takeoverPause, o.signal)
			continue
		}
		o.running[r.Source], o.ran[r.Source] = r, true
		delete(o.answers, r.Source)
		switch p.Kind {
		case plan.PlacePark:
			o.lane.Park(replicate.TrackSpec{Replica: r.Replica, Next: in.SourceLog.Start, Write: in.TargetLog.End}, parkReason(in, p))
		case plan.PlaceScan:
			if o.id.fence == FenceMarker && p.Anchored && !in.Stored.Facts.Clean && in.Stored.Facts.ProducerID == o.id.producer.ID {
				marks = append(marks, r.Target)
			}
		default:
			ready = append(ready, replicate.TrackSpec{Replica: r.Replica, Next: p.Source, Write: p.Target, Known: in.Stored != nil, Runs: o.runMap(r)})
		}
	}
	o.begin(ready)
	if len(scans) == 0 {
		return nil
	}
	marked, err := o.mark(ctx, marks...)
	if err != nil {
		for _, s := range scans {
			delete(o.running, s.Source)
		}
		return err
	}
	waited := sync.OnceFunc(func() { pause(life, SessionTimeout) })
	began := time.Now()
	var left, records atomic.Int64
	left.Store(int64(len(scans)))
	for _, s := range scans {
		ctx, run := newScanRun(life)
		o.scanning[s.Source] = run
		o.scans.Go(func() {
			defer close(run.done)
			o.slots <- struct{}{}
			defer func() { <-o.slots }()
			records.Add(int64(o.scan(ctx, s, marked, waited)))
			if left.Add(-1) == 0 && life.Err() == nil {
				k.log.Info("the last owner had not stopped in order: read where it ended", "lane", o.index, "partitions", len(scans),
					"records", records.Load(), "fence", string(o.id.fence), "took", time.Since(began).Round(time.Millisecond).String())
			}
		})
	}
	return nil
}

// postpone has a partition tried again in a while.
func (o *ownedLane) postpone(ctx context.Context, r Replica, err error) {
	level := slog.LevelWarn
	if kafka.Heals(err) {
		level = slog.LevelDebug // a leader is being elected, a topic has just been made
	}
	o.keeper.log.Log(ctx, level, "a partition cannot start yet", "topic", r.Source.Topic, "partition", r.Source.Partition, "err", err)
	time.AfterFunc(takeoverPause, o.signal)
}

func (o *ownedLane) input(ctx context.Context, r Replica, source plan.SourceLog, target plan.TargetLog) plan.PlaceInput {
	k := o.keeper
	in := plan.PlaceInput{
		Source: r.Source, Target: r.Target,
		SourceCluster: k.opts.SourceClusterID, TargetCluster: k.opts.TargetClusterID,
		SourceID: r.SourceID, TargetID: r.TargetID,
		SourceLog: source, TargetLog: target,
		Reset: k.opts.Reset, Born: r.Born, Missing: r.Missing, ParkOvertaken: r.Policy.ParkOvertaken,
		RestartSource: r.Policy.RestartSource, RestartTarget: r.Policy.RestartTarget,
		Answer: o.answers[r.Source],
	}
	if s, ok := o.stored[r.Source]; ok {
		in.Stored = &s.Stored
	} else if target.End > 0 && len(o.chunks[r.Source]) == 0 {
		in.Synced = len(k.syncsOf(ctx, r.Source)) > 0
	}
	return in
}

// mark fences partitions and tells whose marker each got. The lane has one
// transactional id, and its scans may have to fence again while it runs: in an
// exactly-once lane only between two transactions, since the fence's abort would
// take what is open with it.
func (o *ownedLane) mark(ctx context.Context, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]kafka.ProducerID, error) {
	o.marking.Lock()
	defer o.marking.Unlock()
	id := o.id
	if !o.keeper.opts.ExactlyOnce || len(tps) == 0 {
		return o.keeper.mark(ctx, id, tps)
	}
	var marked map[kafka.TopicPartition]kafka.ProducerID
	err := o.lane.Apart(ctx, func(p kafka.ProducerID) (err error) {
		id.producer = p
		marked, err = o.keeper.mark(ctx, id, tps)
		return err
	})
	return marked, err
}

// enter writes what a placement found lost into the ledger.
func (o *ownedLane) enter(ctx context.Context, r Replica, p plan.Placement) error {
	e := losses.Entry{
		Flow: o.keeper.opts.Flow, Source: r.Source, Target: r.Target, Kind: p.Lost, Action: losses.Continued, Reason: p.Reason, At: time.Now(),
	}
	switch {
	case p.Gap != nil:
		e.From, e.To, e.Records, e.Reason = p.Gap.From, p.Gap.To, int64(p.Gap.To-p.Gap.From), p.Gap.Reason
		e.Kind = losses.Overtaken
	case p.Lost == "":
		return nil
	default:
		e.From, e.To = p.Source, p.Source
	}
	if p.Kind == plan.PlacePark {
		e.Action = losses.Parked
	}
	return o.keeper.ledger.Write(ctx, e, nil)
}

// parkReason tells why a partition is parked and what would let it go on.
func parkReason(in plan.PlaceInput, p plan.Placement) string {
	if p.Lost == losses.Overtaken {
		return p.Reason + "; to go on behind them set heliograph.retention.overtaken = continue"
	}
	var words []string
	for _, c := range p.Choices {
		if c != plan.ChoiceKeep { // an answer for one partition, not for a file
			words = append(words, string(c))
		}
	}
	if len(words) == 0 {
		return p.Reason
	}
	set := "set heliograph.missing.position to one of " + strings.Join(words, ", ")
	if in.Stored != nil && (in.Stored.Committed || in.Stored.Facts != nil) {
		set = "to go on all the same, delete the partition's position and " + set
	}
	return p.Reason + "; " + set
}
