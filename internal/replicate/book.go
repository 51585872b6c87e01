package replicate

import (
	"context"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// bookBatchBytes is the size at which a book's records are split into several batches.
const bookBatchBytes = 256 << 10

// book is one of a lane's own partitions on the target: its positions, or its
// part of the offset map. What is written to it goes under the lane's producer
// identity, in order, like data.
type book struct {
	outlet
	lane *Lane

	end     mirror.DownstreamOffset // behind our last record, under the outlet's lock
	tries   int                     // since the last success, under the outlet's lock
	lastErr string                  // why nothing is written, under the outlet's lock
}

func (b *book) init(l *Lane, tp kafka.TopicPartition) {
	b.lane = l
	b.tp, b.owner, b.txnID = tp, b, l.spec.TransactionalID
	b.app.producer, b.app.transactional = l.producer(), l.transactional()
	b.leased, b.always = l.spec.Leased, l.spec.Unfenced
}

// adopt has the book write under the lane's present identity.
func (b *book) adopt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.adoptLocked(b.lane)
}

// sick reports whether the book needs its leader looked for.
func (b *book) sick() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sickLocked()
}

func (b *book) sickLocked() bool { return !b.closed && (b.app.phase == halted || b.sink == nil) }

// heal looks for the partition's leader until it is found.
func (b *book) heal(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		if !b.sickLocked() { // who waits for the books looks after them, too
			b.mu.Unlock()
			return
		}
		// What is known of the leader is good for one try; after that it is asked for.
		if b.tries == 0 && b.task().routeTargetLocked(&b.outlet) {
			b.tries = 1
			b.resumeLocked()
			b.mu.Unlock()
			return
		}
		b.tries++
		tries := b.tries
		b.mu.Unlock()
		sleep(ctx, backoff(tries))
		asking, cancel := context.WithTimeout(ctx, stewardTimeout)
		err := b.task().target.RefreshMetadata(asking, b.tp.Topic)
		cancel()
		b.mu.Lock()
		if err == nil && b.task().routeTargetLocked(&b.outlet) {
			b.resumeLocked()
			b.mu.Unlock()
			return
		}
		if err != nil {
			b.lastErr = err.Error()
		} else {
			b.lastErr = "partition " + b.tp.String() + " has no leader"
		}
		b.mu.Unlock()
	}
}

func (b *book) task() *Task { return b.lane.task }

func (b *book) resumeLocked() {
	if b.app.phase == halted {
		b.app.resume()
	}
	b.kickLocked()
}

// write appends records in as few batches as fit. done is called, under the
// book's lock, when the last is acknowledged. plain keeps them out of a
// transaction.
func (b *book) write(records []kafka.Record, plain bool, done func()) {
	var batches [][]byte
	var counts []int32
	for len(records) > 0 {
		n := fitting(records)
		batch, err := recordbatch.Build(records[:n], recordbatch.BuildOptions{})
		if err != nil {
			b.lane.end("the books cannot be encoded: "+err.Error(), false)
			return
		}
		batches, counts = append(batches, batch), append(counts, int32(n))
		records = records[n:]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, batch := range batches {
		e := Entry{Bytes: batch, Count: counts[i], plain: plain}
		if i == len(batches)-1 {
			e.settled = func(mirror.DownstreamOffset) { done() }
		}
		b.app.push(e)
	}
	b.kickLocked()
}

// fitting is how many of the records go into one batch, at least one.
func fitting(records []kafka.Record) int {
	size := 0
	for i := range records {
		size += len(records[i].Key) + len(records[i].Value)
		for _, h := range records[i].Headers {
			size += len(h.Key) + len(h.Value)
		}
		if size > bookBatchBytes && i > 0 {
			return i
		}
	}
	return len(records)
}

// follow notices that the book's topic was deleted and made again, also where
// nothing was to be written meanwhile.
func (b *book) follow() {
	_, _, id, ok := b.task().target.Leader(b.tp)
	b.mu.Lock()
	made := ok && id.Known() && b.topic.Known() && id != b.topic && b.app.idle()
	if made {
		b.end = 0
		b.task().routeTargetLocked(&b.outlet)
	}
	b.mu.Unlock()
	if made {
		b.lane.rewrite(b)
	}
}

// idle reports whether everything written is acknowledged.
func (b *book) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.app.idle()
}

// shut ends the book at once.
func (b *book) shut() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

func (b *book) isShut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// onSettled tells whoever waited for the records.
func (b *book) onSettled(e *Entry) {
	b.tries, b.lastErr = 0, ""
	if e.base < b.end {
		b.lane.rewrite(b) // the topic was made again, empty
	}
	b.end = e.base + mirror.DownstreamOffset(e.Count)
	if e.settled != nil {
		e.settled(e.base)
	}
}

// onHalted has the lane's goroutine look for the leader, or ends the lane.
func (b *book) onHalted(f failure) {
	b.lastErr = f.text()
	switch {
	case f.code == kafka.CodeInvalidTxnState && b.app.entries.at(0).plain:
		// The marker of our own transaction is still on its way to the partition; an
		// owner that was replaced would be refused for its epoch.
		b.lane.signal()
	case f.class == kafka.ClassFence:
		b.lane.end(b.tp.String()+": "+f.text(), true)
	case f.class == kafka.ClassData || f.class == kafka.ClassBug || f.code == kafka.CodeTransactionAbortable:
		b.lane.end(b.tp.String()+": "+f.text(), false)
	default:
		b.lane.signal()
	}
}

// onHint is told where the partition's leader went.
func (b *book) onHint(h kafka.LeaderHint) { b.task().target.NoteLeader(b.tp, h) }

// onDrained has nothing to release: the batches are the book's own.
func (b *book) onDrained() {}

// waitIdle waits until an outlet has nothing queued or unanswered, or is stuck.
func waitIdle(ctx context.Context, o *outlet, stuck func() bool) bool {
	for {
		o.mu.Lock()
		idle := o.app.idle() || o.closed || stuck()
		o.mu.Unlock()
		if idle {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, 2*time.Millisecond)
	}
}

// heals looks after several books at once.
func heals(ctx context.Context, books ...*book) {
	var wg sync.WaitGroup
	for _, b := range books {
		if b.sick() {
			wg.Go(func() { b.heal(ctx) })
		}
	}
	wg.Wait()
}
