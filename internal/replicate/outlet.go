package replicate

import (
	"sync"
	"sync/atomic"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
)

// outlet is the ordered way into one target partition. It joins an appender to
// the sink of the partition's leader. Tracks have one, and so has each lane for
// its position records.
//
// The lock guards the appender and the fields below it. Owner callbacks run
// under the lock and must not block.
type outlet struct {
	tp    kafka.TopicPartition
	owner outletOwner
	txnID string // of the lane's transactions; empty outside exactly-once
	// joins has the partition join the transaction by being written to. It is the
	// same for all outlets of a lane while its transaction is open.
	joins atomic.Bool

	// merger joins small batches before they are sent; nil does not.
	merger *merger
	// leased reports whether the lane is surely ours still; nil is always. always
	// asks before every batch, not only before those of old records.
	leased func() bool
	always bool

	mu  sync.Mutex
	app appender
	// settling is the entry that onSettled is told of; it is here to allocate none.
	settling Entry
	limit    int32 // of a batch, as the target topic says; 0 is not known
	topic    kafka.TopicID
	sink     *sink // where the leader is; nil while unknown
	held     bool  // nothing may be sent yet
	parked   bool  // nothing may be sent any more
	closed   bool
}

// outletOwner hears what becomes of an outlet's entries. All calls come with
// the outlet's lock held.
type outletOwner interface {
	// onSettled owns the entry and releases it.
	onSettled(e *Entry)
	// onHalted is called when a failure was seen and all answers are in.
	onHalted(f failure)
	// onHint is called when an answer named another leader.
	onHint(hint kafka.LeaderHint)
	// onDrained is called when a closed outlet's last answer is in.
	onDrained()
}

func (o *outlet) blockedLocked() bool { return o.held || o.parked || o.closed }

// kickLocked tells the sink that there is something to send.
func (o *outlet) kickLocked() {
	if o.sink != nil && !o.blockedLocked() && o.app.ready() {
		o.sink.enqueue(o)
	}
}

// collect takes one entry for a request of the given sink that still has room,
// and reports whether more is ready behind it.
func (o *outlet) collect(s *sink, room int) (p kafka.ProducePartition, ok, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sink != s || o.blockedLocked() || !o.app.ready() {
		return p, false, false
	}
	if o.merger != nil {
		o.merger.merge(&o.app, o.limit)
	}
	if room >= 0 && o.app.peek().bytes() > room {
		return p, false, true
	}
	if !o.leasedLocked() {
		return p, false, false
	}
	e := o.app.take()
	return kafka.ProducePartition{TopicPartition: o.tp, TopicID: o.topic, Batch: e.Bytes}, true, o.app.ready()
}

// leasedLocked reports whether the next batch may be sent as far as ownership
// goes. Where the broker cannot be relied on to refuse the batch of an owner that
// was replaced, because it forgets the producers of old records or has no fence,
// nobody else does. An outlet that waits for its lease is told as if its leader
// were away: it tries again.
func (o *outlet) leasedLocked() bool {
	if o.leased == nil || !o.always && !o.app.peek().old || o.leased() {
		return true
	}
	if o.app.waiting == 0 { // else an answer comes that kicks
		o.app.phase = halted
		o.owner.onHalted(failure{class: kafka.ClassRefresh, message: "our lease on the lane has run out: the group's coordinator does not answer, or another owner has it"})
	}
	return false
}

// answer applies a broker's answer, or the connection's end, to the oldest
// unanswered entry.
func (o *outlet) answer(p *kafka.ProducedPartition, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.app.failed(failure{class: kafka.ClassRefresh, message: err.Error()})
	case p.Code == kafka.CodeNone:
		o.app.stored(mirror.DownstreamOffset(p.BaseOffset))
	default:
		o.app.failed(failureOf(p))
		if p.Leader.Node != kafka.NoNode {
			o.owner.onHint(p.Leader)
		}
	}
	for o.app.settle(&o.settling) {
		o.owner.onSettled(&o.settling)
	}
	o.settling = Entry{}
	if o.closed {
		if o.app.waiting == 0 {
			o.owner.onDrained()
		}
		return
	}
	if o.app.phase == halted {
		_, e := o.app.firstFailed()
		o.owner.onHalted(e.failure)
	}
	o.kickLocked()
}

func failureOf(p *kafka.ProducedPartition) failure {
	f := failure{code: p.Code, class: p.Code.Class(), message: p.Message}
	if len(p.RecordErrors) > 0 && f.message == "" {
		f.message = p.RecordErrors[0].Message
	}
	return f
}
