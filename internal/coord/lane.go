package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/plan"
	"heliograph/internal/replicate"
)

// leasePause is how often a lane that waits for the lease looks again.
const leasePause = 20 * time.Millisecond

// takeoverPause is the pause before a failed takeover is tried again.
const takeoverPause = 2 * time.Second

// mostKeepAlive is far below transactional.id.expiration.ms, seven days by default.
const mostKeepAlive = time.Hour

// NoteExpiration tells how long the target's coordinator remembers a
// transactional id that nobody uses.
func (k *Keeper) NoteExpiration(d time.Duration) { k.expiration.Store(int64(d)) }

// keepAliveEvery is how often a lane's transactional id is used at least.
func (k *Keeper) keepAliveEvery() time.Duration {
	if d := time.Duration(k.expiration.Load()); d > 0 {
		return max(min(d/4, mostKeepAlive), time.Second)
	}
	return mostKeepAlive
}

// scanConcurrency bounds the partitions of a lane that are scanned at once.
const scanConcurrency = 4

type ending struct {
	reason string
	fenced bool
}

// ownedLane is one lane while it is ours. Its run goroutine owns it whole.
type ownedLane struct {
	keeper *Keeper
	index  int32
	cancel context.CancelCauseFunc
	done   chan struct{}
	wake   chan struct{}
	ended  chan ending
	drain  chan context.Context // the context bounds the draining
	// quit ends when draining is asked for, so that a takeover under way does
	// not hold it up.
	quit    context.Context //nolint:containedctx // a signal, as drain is
	hurryUp context.CancelFunc

	id      identity
	lane    *replicate.Lane // nil until the lane has partitions
	stored  positions
	chunks  storedRuns
	running map[kafka.TopicPartition]Replica // tracks handed to the lane, or on their way
	ran     map[kafka.TopicPartition]bool    // under this ownership, at any time
	scans   sync.WaitGroup
	marking sync.Mutex // one fencing transaction at a time
	slots   chan struct{}
	answers map[kafka.TopicPartition]plan.Choice // a person's, for partitions about to be placed
	// scanning are the scans begun for partitions of the lane, ended or not.
	scanning map[kafka.TopicPartition]*scanRun
}

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

func (o *ownedLane) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run keeps the lane until it is revoked or lost.
func (o *ownedLane) run(ctx context.Context) {
	defer close(o.done)
	for {
		again := o.own(ctx)
		if !again {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-o.drain:
			return
		case <-time.After(takeoverPause):
		}
	}
}

// own takes the lane over and follows the wanted partitions until it ends. It
// reports whether the lane should be taken over again.
func (o *ownedLane) own(parent context.Context) (again bool) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	o.lane, o.stored, o.running, o.ran = nil, nil, map[kafka.TopicPartition]Replica{}, map[kafka.TopicPartition]bool{}
	o.slots, o.scanning = make(chan struct{}, scanConcurrency), map[kafka.TopicPartition]*scanRun{}
	o.answers = map[kafka.TopicPartition]plan.Choice{}
	keepAlive := time.NewTimer(o.keeper.keepAliveEvery())
	defer keepAlive.Stop()
	for {
		if err := o.reconcile(ctx); err != nil && !o.tolerate(ctx, err) {
			o.give(cancel)
			return parent.Err() == nil
		}
		select {
		case <-parent.Done():
			o.give(cancel)
			return false
		case bound := <-o.drain:
			cancel(errLost) // scans on their way end
			o.scans.Wait()
			if o.lane != nil {
				if err := o.lane.Close(bound); err != nil {
					o.keeper.log.Warn("a lane was left in haste: its next owner will scan", "lane", o.index, "err", err)
				}
			}
			return false
		case e := <-o.ended:
			o.keeper.log.Warn("the lane ended and is taken over again", "lane", o.index, "reason", e.reason, "fenced", e.fenced)
			o.give(cancel)
			return true
		case <-keepAlive.C:
			o.keepAlive(ctx)
			keepAlive.Reset(o.keeper.keepAliveEvery())
		case <-o.wake:
		}
	}
}

// tolerate reports whether the lane can go on although new partitions could not
// be started: those that run are not to suffer. They are tried again.
func (o *ownedLane) tolerate(ctx context.Context, err error) bool {
	if ctx.Err() != nil || o.quit.Err() != nil {
		return o.quit.Err() != nil // the drain that was asked for comes next
	}
	fenced := kafka.ClassOf(err) == kafka.ClassFence
	o.keeper.log.Warn("taking partitions over did not work, trying again", "lane", o.index, "err", err, "fenced", fenced)
	if o.lane == nil || fenced {
		return false
	}
	time.AfterFunc(takeoverPause, o.signal)
	return true
}

// keepAlive writes a marker into the lane's own partition, so that the
// coordinator does not forget the transactional id: after that the next owner
// would get another producer id and could not fence this one. Exactly-once
// commits do the same.
func (o *ownedLane) keepAlive(ctx context.Context) {
	if o.lane == nil || o.id.fence != FenceMarker || o.keeper.opts.ExactlyOnce {
		return
	}
	tp := kafka.TopicPartition{Topic: o.keeper.opts.PositionsTopic, Partition: o.index}
	if _, err := o.mark(ctx, tp); err != nil && ctx.Err() == nil {
		o.keeper.log.Warn("the lane's transactional id was not kept alive", "lane", o.index, "err", err)
	}
}

// give ends the lane at once.
func (o *ownedLane) give(cancel context.CancelCauseFunc) {
	cancel(errLost)
	o.scans.Wait()
	if o.lane != nil {
		gone, stop := context.WithCancel(context.Background())
		stop()
		_ = o.lane.Close(gone) // what is left unanswered is found by the scan
	}
	select {
	case <-o.ended:
	default:
	}
}

// reconcile makes the lane's tracks match the wanted partitions. Being asked to
// drain interrupts it; the scans it has started live on with life.
func (o *ownedLane) reconcile(life context.Context) error {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	defer context.AfterFunc(o.quit, func() { cancel(errDraining) })()
	wanted := o.keeper.wanted(o.index)
	var gone []kafka.TopicPartition
	for tp, r := range o.running {
		if w, ok := wanted[tp]; !ok || w.SourceID != r.SourceID || w.Target != r.Target || w.Policy.RestartTarget && w.TargetID != r.TargetID {
			gone = append(gone, tp)
			delete(o.running, tp)
		}
	}
	for tp, choice := range o.keeper.answered(o.index) {
		o.answers[tp] = choice
		if _, ok := o.running[tp]; ok { // parked; it is placed anew
			gone = append(gone, tp)
			delete(o.running, tp)
		}
	}
	if len(gone) > 0 && o.lane != nil {
		for _, tp := range gone {
			o.scanning[tp].end()
		}
		o.lane.Stop(gone)
	}
	var fresh []Replica
	for tp, r := range wanted {
		if _, ok := o.running[tp]; !ok {
			fresh = append(fresh, r)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if o.lane == nil {
		if err := o.open(ctx); err != nil {
			return err
		}
	}
	if err := o.readAgain(ctx, fresh); err != nil {
		return err
	}
	if err := o.searchElsewhere(ctx, fresh); err != nil {
		return err
	}
	return o.start(ctx, life, fresh)
}

// readAgain reads the lane's books again before a partition starts that has run
// under this ownership: what was read at its beginning is old.
func (o *ownedLane) readAgain(ctx context.Context, replicas []Replica) error {
	if !slices.ContainsFunc(replicas, func(r Replica) bool { return o.ran[r.Source] }) {
		return nil
	}
	newer, err := o.keeper.books.readPositions(ctx, []int32{o.index})
	if err != nil {
		return err
	}
	maps.Copy(o.stored, newer)
	o.chunks, err = o.keeper.books.readRuns(ctx, o.index)
	return err
}

// searchElsewhere looks in all lanes for positions that are not in their own: a
// topic that was grown, or another partitioner, put them there. Only then does
// a partition count as new.
func (o *ownedLane) searchElsewhere(ctx context.Context, replicas []Replica) error {
	for _, r := range replicas {
		if _, ok := o.stored[r.Source]; ok {
			continue
		}
		all, err := o.keeper.strayPositions(ctx)
		if err != nil {
			return err
		}
		if s, ok := all[r.Source]; ok {
			o.stored[r.Source] = s
		}
	}
	return nil
}

// open identifies us and reads the positions.
func (o *ownedLane) open(ctx context.Context) error {
	if err := o.awaitLease(ctx); err != nil {
		return err
	}
	id, err := o.keeper.identify(ctx, o.index)
	if err != nil {
		return err
	}
	o.id = id
	if o.stored, err = o.keeper.books.readPositions(ctx, []int32{o.index}); err != nil {
		return err
	}
	if id.fence == FenceMarker {
		// The last owner's positions may still arrive in our lane: close it too.
		books := []kafka.TopicPartition{{Topic: o.keeper.opts.PositionsTopic, Partition: o.index}, o.keeper.books.runsPartition(o.index)}
		if o.unclean() {
			if _, err := o.keeper.mark(ctx, id, books); err != nil {
				return err
			}
			if o.stored, err = o.keeper.books.readPositions(ctx, []int32{o.index}); err != nil {
				return err
			}
		}
	}
	if o.chunks, err = o.keeper.books.readRuns(ctx, o.index); err != nil {
		return err
	}
	o.keeper.noteFence(o.index, id.fence)
	spec := replicate.LaneSpec{
		Index: o.index, Producer: id.producer,
		Positions: kafka.TopicPartition{Topic: o.keeper.opts.PositionsTopic, Partition: o.index},
		Runs:      o.keeper.books.runsPartition(o.index),
		Leased:    o.keeper.opts.Leased, Unfenced: id.fence == FenceLease,
		Ended: func(reason string, fenced bool) {
			select {
			case o.ended <- ending{reason, fenced}:
			default:
			}
		},
	}
	if o.keeper.opts.ExactlyOnce {
		spec.TransactionalID, spec.Transactions = id.txnID, transactions{o.keeper, id}
	}
	o.lane = o.keeper.task.OpenLane(spec)
	return nil
}

// awaitLease waits until the lane is surely ours. An owner that was frozen and
// replaced does not know yet: to take the lane's identity once more would only
// fence its successor.
func (o *ownedLane) awaitLease(ctx context.Context) error {
	for o.keeper.opts.Leased != nil && !o.keeper.opts.Leased() {
		pause(ctx, leasePause)
		if ctx.Err() != nil {
			return fmt.Errorf("take lane %d over: %w", o.index, context.Cause(ctx))
		}
	}
	return nil
}

// unclean reports whether the lane's last owner may still be writing.
func (o *ownedLane) unclean() bool {
	for tp, s := range o.stored {
		if o.keeper.LaneOf(tp) == o.index && s.Facts != nil && !s.Facts.Clean && s.Facts.Mode != replicate.ModeExactlyOnce {
			return true
		}
	}
	return false
}

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
			records.Add(int64(o.scan(ctx, s, marked[s.Target], waited)))
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

// mark fences partitions. The lane has one transactional id, and its scans may
// have to fence again while it runs.
func (o *ownedLane) mark(ctx context.Context, tps ...kafka.TopicPartition) (map[kafka.TopicPartition]bool, error) {
	o.marking.Lock()
	defer o.marking.Unlock()
	return o.keeper.mark(ctx, o.id, tps)
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

// scan finds one partition's place, starts its track, and returns how many
// records it found behind the position.
func (o *ownedLane) scan(ctx context.Context, s placed, marked bool, wait func()) int {
	k := o.keeper
	to := limit{marker: kafka.NoProducer, end: int64(s.in.TargetLog.End)}
	var writers map[int64]bool
	if s.p.Anchored {
		writers = map[int64]bool{s.in.Stored.Facts.ProducerID: true, o.id.producer.ID: true}
	}
	if marked {
		to.marker = o.id.producer
	} else if s.p.Anchored && !s.in.Stored.Facts.Clean {
		wait() // until the last owner's session must have ended
		if end := k.target.ListOffsets(ctx, []kafka.TopicPartition{s.Target}, kafka.Latest, kafka.ReadUncommitted)[s.Target]; end.Err == nil {
			to.end = end.Offset
		}
	}
	sc := scanner{source: k.source, target: k.target, iso: k.opts.Isolation, compacted: s.Demands.Compacted, seed: k.seed}
	f, err := o.find(ctx, &sc, s, writers, to)
	for errors.Is(err, errNoMarker) && ctx.Err() == nil {
		k.log.Warn("the fence did not reach a partition, fencing it again", "lane", o.index, "topic", s.Target.Topic, "partition", s.Target.Partition)
		if _, err := o.mark(ctx, s.Target); err != nil {
			k.log.Warn("a partition cannot be fenced yet", "topic", s.Target.Topic, "partition", s.Target.Partition, "err", err)
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
