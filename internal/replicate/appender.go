package replicate

import (
	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// maxOpen is how many batches of one producer a broker remembers per partition
// (ProducerStateEntry.NUM_BATCHES_TO_RETAIN). A retry of anything older could
// be stored twice.
const maxOpen = 5

// appender keeps the order of one target partition: which batch may be sent
// now, under which sequence, and what an answer means for the ones behind it.
//
// It is a state machine without clock, lock or I/O; its outlet guards it.
//
// Invariant: entries are sent in source order, each under one sequence until
// the target has definitely refused it.
// Invariant: at most maxOpen entries are unsettled, one until the leader's
// first success; without that rule a broker that has no state of the producer
// could store a later batch and refuse an earlier one (KAFKA-15591).
// Invariant: a batch of old records is unsettled alone: a broker that forgot the
// producer could store the batch behind it and refuse it.
// Invariant: after a failure nothing is sent until all answers are in.
type appender struct {
	producer     kafka.ProducerID
	nextSequence int32
	entries      ring[Entry]
	cursor       int // first entry that take would consider
	waiting      int // answers outstanding
	confirmed    bool
	phase        phase
	// transactional seals batches as part of the lane's transaction; gated lets
	// only those be sent again that were sent before.
	transactional, gated bool
	queued               int // bytes of all entries
}

type phase uint8

const (
	flowing  phase = iota
	draining       // a failure was seen, answers are outstanding
	halted         // a failure was seen and all answers are in: resolve, then resume
)

// push appends an entry behind all others.
func (a *appender) push(e Entry) {
	e.sequence = noSequence
	a.queued += e.bytes()
	a.entries.push(e)
}

// tail is the last entry, or nil.
func (a *appender) tail() *Entry {
	if a.entries.len() == 0 {
		return nil
	}
	return a.entries.at(a.entries.len() - 1)
}

// ready reports whether take has an entry to send.
func (a *appender) ready() bool {
	if a.phase != flowing {
		return false
	}
	for a.cursor < a.entries.len() && a.entries.at(a.cursor).state == entryStored {
		a.cursor++
	}
	if a.cursor >= min(a.entries.len(), maxOpen) {
		return false
	}
	next := a.entries.at(a.cursor)
	limit := 1
	if a.confirmed && !next.old && !a.entries.at(0).old {
		limit = maxOpen
	}
	return a.waiting < limit && (!a.gated || next.sequence != noSequence)
}

// peek is the entry take would return. Only after ready.
func (a *appender) peek() *Entry { return a.entries.at(a.cursor) }

// take binds the next entry to its sequence, seals it and counts it as sent.
func (a *appender) take() *Entry {
	e := a.entries.at(a.cursor)
	if e.sequence == noSequence {
		e.sequence = a.nextSequence
		a.nextSequence = addSequence(a.nextSequence, e.Count)
	}
	recordbatch.Seal(e.Bytes, recordbatch.Stamp{
		ProducerID: a.producer.ID, Epoch: a.producer.Epoch, Sequence: e.sequence,
		Transactional: a.transactional && !e.plain,
	})
	e.state = entrySent
	a.waiting++
	a.cursor++
	return e
}

// adopt goes on under another identity, whose sequences begin at 0. Only while
// nothing is unanswered or in doubt: what was sent under the last identity is
// settled, or was refused.
func (a *appender) adopt(p kafka.ProducerID) {
	if a.producer == p {
		return
	}
	if a.producer.ID != p.ID {
		a.confirmed = false // the leader has no state of it
	}
	a.producer, a.nextSequence = p, 0
	for i := range a.entries.len() {
		a.entries.at(i).sequence = noSequence
	}
}

// addSequence counts on and wraps as brokers do (DefaultRecordBatch.incrementSequence).
func addSequence(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & 0x7fffffff) }

// stored notes the acknowledgement of the oldest unanswered entry.
func (a *appender) stored(base mirror.DownstreamOffset) {
	e := a.oldestSent()
	if e == nil {
		return
	}
	e.state, e.base = entryStored, base
	a.waiting--
	a.confirmed = true
	a.halt()
}

// failed notes that the oldest unanswered entry was not acknowledged.
func (a *appender) failed(f failure) {
	e := a.oldestSent()
	if e == nil {
		return
	}
	e.state, e.failure = entryFailed, f
	e.doubt = e.doubt || f.unsure()
	a.waiting--
	if a.phase == flowing {
		a.phase = draining
	}
	a.halt()
}

func (a *appender) halt() {
	if a.phase == draining && a.waiting == 0 {
		a.phase = halted
	}
}

// oldestSent finds the entry that the next answer belongs to: an outlet's
// requests travel on one connection, which answers in order.
func (a *appender) oldestSent() *Entry {
	for i := range a.entries.len() {
		if e := a.entries.at(i); e.state == entrySent {
			return e
		}
	}
	return nil
}

// settle moves the front entry to e if it is stored.
func (a *appender) settle(e *Entry) bool {
	if a.entries.len() == 0 || a.entries.at(0).state != entryStored {
		return false
	}
	*e = a.entries.pop()
	a.queued -= e.bytes()
	if a.cursor > 0 {
		a.cursor--
	}
	return true
}

// firstFailed is the entry whose failure decides what happens next, and its place.
func (a *appender) firstFailed() (int, *Entry) {
	for i := range a.entries.len() {
		if e := a.entries.at(i); e.state == entryFailed {
			return i, e
		}
	}
	return 0, nil
}

// resume starts again from the first unsettled entry, with the same sequences
// and one in flight until a success.
func (a *appender) resume() {
	for i := range a.entries.len() {
		if e := a.entries.at(i); e.state == entryFailed {
			e.state, e.failure = entryQueued, failure{}
		}
	}
	a.cursor, a.confirmed, a.phase = 0, false, flowing
}

// replace puts other entries in the place of the one that the target has
// definitely refused, and frees the sequences from there on. It reports false
// where a later entry was stored, which must not happen: order is lost then.
// Only while halted. The removed entry is returned for its release.
func (a *appender) replace(i int, with []Entry) (removed Entry, ok bool) {
	for j := i + 1; j < a.entries.len(); j++ {
		if a.entries.at(j).state == entryStored {
			return Entry{}, false
		}
	}
	removed = *a.entries.at(i)
	if removed.sequence != noSequence {
		a.nextSequence = removed.sequence
	}
	for j := i + 1; j < a.entries.len(); j++ {
		a.entries.at(j).sequence = noSequence
	}
	a.queued -= removed.bytes()
	for j := i; j < a.entries.len()-1; j++ {
		*a.entries.at(j) = *a.entries.at(j + 1)
	}
	a.entries.cut(a.entries.len()-1, func(*Entry) {})
	for j, e := range with {
		e.sequence = noSequence
		a.queued += e.bytes()
		a.entries.insert(i+j, e)
	}
	return removed, true
}

// shed drops the entries that were never sent and hands each to drop. What
// remains is what may already lie in the target's log.
func (a *appender) shed(drop func(*Entry)) {
	n := 0
	for n < a.entries.len() && a.entries.at(n).sequence != noSequence {
		n++
	}
	a.entries.cut(n, func(e *Entry) {
		a.queued -= e.bytes()
		drop(e)
	})
	a.cursor = min(a.cursor, a.entries.len())
}

// idle reports whether nothing is queued or unanswered.
func (a *appender) idle() bool { return a.entries.len() == 0 }
