package replicate

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// Protocol is how a transaction runs.
type Protocol int16

const (
	// Protocol1 adds partitions before their first batch; epoch and sequences go on
	// after a commit. Brokers of every release and feature level serve it.
	Protocol1 Protocol = 1
	// Protocol2 is that of KIP-890's second part (transaction.version 2): partitions
	// join by being written to, and every commit answers another epoch, at times
	// another producer id, in which sequences begin at 0.
	Protocol2 Protocol = 2
)

// Transactions is a lane's transactional id at the target's coordinator. coord
// gives it to lanes of exactly-once flows.
type Transactions interface {
	// Protocol is the one that a transaction which begins now is to run by. It
	// follows the cluster's feature level, which may change while the lane runs.
	Protocol() Protocol
	// Add opens a transaction of protocol 1 if need be and adds partitions to it.
	Add(ctx context.Context, pid kafka.ProducerID, tps []kafka.TopicPartition) error
	// Commit returns the producer id and epoch of the next transaction. It may be
	// asked again after a lost answer.
	Commit(ctx context.Context, p Protocol, pid kafka.ProducerID) (next kafka.ProducerID, err error)
}

const (
	// transactionEvery and transactionBytes bound a transaction: read_committed
	// readers of the target see nothing of it before it ends.
	transactionEvery = time.Second
	transactionBytes = 64 << 20
	// TransactionTimeout is how long the coordinator lets a transaction stay
	// open. It is far above transactionEvery, so that a slow broker does not
	// abort what is nearly done, and within every broker's default limit.
	TransactionTimeout = time.Minute
	// finishWithin is how long a commit waits for outstanding answers before the
	// transaction is given up and the lane taken over anew.
	finishWithin = TransactionTimeout / 2
)

// ModeDefault and ModeExactlyOnce are the delivery modes written into positions.
const (
	ModeDefault     = "default"
	ModeExactlyOnce = "exactly-once"
)

// transaction is the state of an exactly-once lane. Positions travel inside the
// transaction of the data they stand for, so that both become visible, or
// neither.
//
// Invariant: a track sends only between being added to the open transaction and
// its commit; held and gated keep it from sending at other times.
type transaction struct {
	// turn is held while the transaction is added to or ended. That may take long:
	// a channel, so that simulated time passes for who waits.
	turn     chan struct{}
	open     bool
	protocol Protocol // of the open one, or of the last
	ended    int64    // how many were committed
	// sameEpoch says that the last one ended under the epoch that goes on.
	sameEpoch bool
	members   map[*Track]struct{}
	bytes     atomic.Int64 // settled since it began
}

// transactional reports whether the lane delivers exactly once.
func (l *Lane) transactional() bool { return l.spec.Transactions != nil }

// joinTransaction adds waiting tracks to the transaction, opening one if need
// be, and lets them send.
func (l *Lane) joinTransaction(ctx context.Context, waiting []*Track) {
	l.txn.turn <- struct{}{}
	defer func() { <-l.txn.turn }()
	l.joinTransactionLocked(ctx, waiting)
}

func (l *Lane) joinTransactionLocked(ctx context.Context, waiting []*Track) {
	if !l.txn.open {
		l.txn.protocol = l.spec.Transactions.Protocol()
	}
	err := l.addToTransaction(ctx, waiting)
	if err != nil && len(waiting) > 1 && kafka.ClassOf(err) != kafka.ClassFence {
		// One missing topic fails the whole request: find it.
		for _, tr := range waiting {
			l.joinTransactionLocked(ctx, []*Track{tr})
		}
		return
	}
	if err != nil {
		l.notJoined(waiting, err)
		return
	}
	if !l.txn.open {
		l.txn.open = true
		l.txn.members = map[*Track]struct{}{}
		l.txn.bytes.Store(0)
		l.positions.adopt()
		l.runs.adopt()
	}
	for _, tr := range waiting {
		l.txn.members[tr] = struct{}{}
		tr.mu.Lock()
		tr.adoptLocked(l)
		tr.held = false
		tr.kickLocked()
		tr.mu.Unlock()
	}
}

// addToTransaction tells the coordinator which partitions will be written to. By
// protocol 2 they join when they are, under an epoch that no marker on its way
// belongs to. Behind a transaction of protocol 1, which ended under the same epoch,
// the coordinator is asked once all the same, and answers when the markers are
// written: a leader that has not seen its own would take our batch for one of the
// transaction that is committed already.
func (l *Lane) addToTransaction(ctx context.Context, waiting []*Track) error {
	if l.txn.protocol == Protocol2 && (l.txn.open || !l.txn.sameEpoch) {
		return nil
	}
	tps := make([]kafka.TopicPartition, 0, len(waiting)+2)
	for _, tr := range waiting {
		tps = append(tps, tr.tp)
	}
	if !l.txn.open {
		tps = append(tps, l.positions.tp, l.runs.tp)
	}
	return l.spec.Transactions.Add(ctx, l.producer(), tps)
}

// producer is the identity that the lane writes under now. By protocol 2 it is
// another one after each commit.
func (l *Lane) producer() kafka.ProducerID {
	l.set.Lock()
	defer l.set.Unlock()
	return l.set.producer
}

// adoptLocked has an outlet of the lane write under the lane's present identity
// and by the protocol of its transaction.
func (o *outlet) adoptLocked(l *Lane) {
	o.app.adopt(l.producer())
	o.joins.Store(l.txn.protocol == Protocol2)
}

// notJoined has tracks ask again later, or ends the lane where it is fenced.
func (l *Lane) notJoined(waiting []*Track, err error) {
	if kafka.ClassOf(err) == kafka.ClassFence {
		l.end("transaction: "+err.Error(), true)
		return
	}
	for _, tr := range waiting {
		tr.mu.Lock()
		if kafka.Heals(err) && tr.unheard != l.txn.ended {
			// It may have been added all the same, once a transaction.
			tr.unheard = l.txn.ended
			tr.markers++
		}
		tr.waitLocked("target: " + err.Error())
		tr.tries++
		pause := backoff(tr.tries)
		tr.mu.Unlock()
		time.AfterFunc(pause, func() {
			tr.mu.Lock()
			closed := tr.closed
			if !closed {
				tr.runLocked()
			}
			tr.mu.Unlock()
			if !closed {
				l.announce(tr)
			}
		})
	}
}

// commitTransaction ends the open transaction: no track sends more, what was
// sent is answered, the positions are written, the coordinator commits. Where
// any of it does not work in time, the lane ends: its next takeover aborts what
// is open and goes on from the last committed positions.
func (l *Lane) commitTransaction(ctx context.Context) {
	l.txn.turn <- struct{}{}
	defer func() { <-l.txn.turn }()
	l.commitTransactionLocked(ctx)
}

// Apart runs what needs the lane's transactional id for itself, as a fence does,
// while no transaction of the lane is open. The producer is the one that holds
// the id then.
func (l *Lane) Apart(ctx context.Context, what func(kafka.ProducerID) error) error {
	select {
	case l.txn.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.txn.turn }()
	if l.commitTransactionLocked(ctx); l.txn.open {
		return fmt.Errorf("lane %d ended with its transaction open", l.spec.Index)
	}
	return what(l.producer())
}

func (l *Lane) commitTransactionLocked(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	if !l.txn.open {
		if lost := l.bereft(); len(lost) > 0 {
			l.write(lost, true, func() {}) // outside of transactions, as at a clean stop
			l.written(ctx)
		}
		return
	}
	members := make([]*Track, 0, len(l.txn.members))
	for tr := range l.txn.members {
		members = append(members, tr)
		tr.mu.Lock()
		tr.app.gated = true
		tr.mu.Unlock()
	}
	for _, tr := range members {
		if err := tr.answered(ctx); err != nil {
			l.end(fmt.Sprintf("the transaction cannot be finished: %s: %v", tr.tp, err), false)
			return
		}
	}
	for _, tr := range members {
		tr.mapOpen()
	}
	l.write(slices.Concat(members, l.others(l.bereft())), false, func() {})
	if !l.written(ctx) {
		l.end("the transaction cannot be finished: its positions were not written", false)
		return
	}
	next, err := l.endTransaction(ctx)
	if err != nil {
		l.end("the transaction cannot be committed: "+err.Error(), kafka.ClassOf(err) == kafka.ClassFence)
		return
	}
	l.txn.open = false
	l.txn.ended++
	l.txn.sameEpoch = next == l.producer()
	l.set.Lock()
	l.set.producer = next
	l.set.Unlock()
	l.positions.adopt()
	l.runs.adopt()
	for _, tr := range members {
		tr.committed()
	}
}

// others are those of the tracks that have no part in the open transaction.
func (l *Lane) others(tracks []*Track) []*Track {
	return slices.DeleteFunc(tracks, func(tr *Track) bool {
		_, in := l.txn.members[tr]
		return in
	})
}

// endTransaction asks until the coordinator has answered. A question whose answer
// was lost is asked again under the same identity: once the transaction is
// committed, the coordinator only says so, and by protocol 2 under what the lane
// goes on. Whether the lane is still ours hangs on no answer: another owner that
// has taken the id over raised its epoch further, and this one is refused.
func (l *Lane) endTransaction(ctx context.Context) (kafka.ProducerID, error) {
	pid := l.producer()
	for tries := 0; ; tries++ {
		next, err := l.spec.Transactions.Commit(ctx, l.txn.protocol, pid)
		c := kafka.ClassOf(err)
		if err == nil || c != kafka.ClassRetry && c != kafka.ClassRefresh || ctx.Err() != nil {
			return next, err
		}
		sleep(ctx, backoff(tries))
	}
}

// answered waits until every batch that was sent is settled, or is known to be
// refused. A batch whose fate is unknown keeps the transaction from ending.
func (tr *Track) answered(ctx context.Context) error {
	for {
		tr.mu.Lock()
		front := (*Entry)(nil)
		if tr.app.entries.len() > 0 && tr.app.entries.at(0).sequence != noSequence {
			front = tr.app.entries.at(0)
		}
		refused := front != nil && tr.stuckLocked() && front.failure.class == kafka.ClassData
		closed, reason := tr.closed, tr.reason
		tr.mu.Unlock()
		switch {
		case front == nil || refused:
			return nil
		case closed:
			return fmt.Errorf("the partition was stopped with a batch under way")
		case ctx.Err() != nil:
			return fmt.Errorf("no answer in time (%s)", reason)
		}
		sleep(ctx, time.Millisecond)
	}
}

// committed publishes what the transaction has made visible, and has the track
// join the next one if it has more to send.
func (tr *Track) committed() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.app.gated = false
	tr.held, tr.announced = true, false
	if len(tr.open) > 0 {
		tr.write++ // the commit marker takes one offset
	} else {
		tr.markers++ // also where there was nothing to commit
	}
	tr.visible, tr.visibleWrite = tr.position, tr.write
	for _, r := range tr.open {
		tr.publishRun(r.up, r.down, r.count)
	}
	tr.open = tr.open[:0]
	if tr.state == TrackRunning {
		tr.askToSendLocked()
	}
}

// askToSendLocked announces a track that was left with something to send when a
// transaction ended. One that waits then asks when it runs again.
func (tr *Track) askToSendLocked() {
	if tr.held && !tr.announced && !tr.closed && tr.app.entries.len() > 0 {
		tr.announced = true
		tr.lane.announce(tr)
	}
}

// mapOpen adds to the offset map what the transaction is about to make visible.
func (tr *Track) mapOpen() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, r := range tr.open {
		tr.mapRun(r.up, r.down, r.count)
	}
}

// openRun is a run of records acknowledged inside a transaction that is open.
type openRun struct {
	up    mirror.UpstreamOffset
	down  mirror.DownstreamOffset
	count int32
}

// soonAgain are the pauses of a batch that came before the coordinator had written
// the markers of the last transaction, which usually takes a few milliseconds. By
// protocol 2 the brokers wait a little themselves. After the last the track waits as
// for an absent leader.
var soonAgain = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

// soonLocked sends again in a moment, and holds on to what is queued until then.
func (tr *Track) soonLocked() {
	pause := soonAgain[tr.soon]
	tr.soon++
	time.AfterFunc(pause, func() {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if !tr.closed && tr.app.phase == halted {
			tr.resumeLocked()
			tr.kickLocked()
		}
	})
}
