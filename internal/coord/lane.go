package coord

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"heliograph/internal/kafka"
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

	// left is why the lane's last partitions were left without a clean position; nil
	// where they were not, or while they run. Read by others when done is closed.
	left error

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
		err := o.reconcile(ctx)
		if err != nil && !o.tolerate(ctx, err) {
			o.give(cancel, kafka.ClassOf(err) == kafka.ClassFence)
			return parent.Err() == nil
		}
		if err == nil && o.lane != nil {
			o.left = nil
		}
		select {
		case <-parent.Done():
			o.give(cancel, true)
			return false
		case bound := <-o.drain:
			cancel(errLost) // scans on their way end
			o.scans.Wait()
			if o.lane != nil {
				o.left = o.lane.Close(bound)
			}
			return false
		case e := <-o.ended:
			o.keeper.log.Warn("the lane ended and is taken over again", "lane", o.index, "reason", e.reason, "fenced", e.fenced)
			o.give(cancel, e.fenced)
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

// give ends the lane at once. It is theirs where another owner fenced it or the
// group took it: then it is not we who leave it.
func (o *ownedLane) give(cancel context.CancelCauseFunc, theirs bool) {
	cancel(errLost)
	o.scans.Wait()
	if o.lane != nil {
		gone, stop := context.WithCancel(context.Background())
		stop()
		_ = o.lane.Close(gone) // what is left unanswered is found by the scan
		if o.left = nil; !theirs {
			o.left = fmt.Errorf("lane %d: it ended, and was not taken over again", o.index)
		}
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
		spec.TransactionalID, spec.Transactions = id.txnID, transactions{o.keeper, id.txnID}
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
