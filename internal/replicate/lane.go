package replicate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"heliograph/internal/kafka"
)

// LaneSpec is a lane as its owner opened it.
type LaneSpec struct {
	Index     int32
	Producer  kafka.ProducerID
	Positions kafka.TopicPartition // the lane's partition of the position topic
	Runs      kafka.TopicPartition // the lane's partition of the offset map
	// Ended is called at most once, on a goroutine of its own, when the lane
	// cannot go on: fenced by another owner, or its writes need a new takeover.
	Ended func(reason string, fenced bool)
	// TransactionalID and Transactions make the lane deliver exactly once; empty
	// and nil otherwise.
	TransactionalID string
	Transactions    Transactions
	// Leased reports whether the lane is surely ours still; nil where nobody can
	// tell. It is asked before batches of old records, and before all batches
	// where nothing else fences an owner that was replaced.
	Leased   func() bool
	Unfenced bool
}

// Lane is a partition of the position topic that this process owns: the
// producer identity, the positions and the offset map of the tracks that hash
// to it.
type Lane struct {
	task *Task
	spec LaneSpec

	positions, runs book

	set struct {
		sync.Mutex
		tracks   map[kafka.TopicPartition]*Track // by source partition
		announce []*Track                        // wait for their first position to be written
		ended    bool
		producer kafka.ProducerID
	}
	txn    transaction
	wake   chan struct{}
	over   chan struct{} // closed when the lane cannot go on
	cancel context.CancelFunc
	done   chan struct{}
}

// OpenLane starts a lane that coord has fenced. Its tracks come by [Lane.Start].
func (t *Task) OpenLane(spec LaneSpec) *Lane {
	ctx, cancel := context.WithCancel(t.ctx)
	l := &Lane{task: t, spec: spec, wake: make(chan struct{}, 1), over: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	l.set.tracks, l.set.producer = map[kafka.TopicPartition]*Track{}, spec.Producer
	l.txn.turn = make(chan struct{}, 1)
	l.positions.init(l, spec.Positions)
	l.runs.init(l, spec.Runs)
	t.mu.Lock()
	t.lanes[spec.Index] = l
	t.mu.Unlock()
	t.wg.Go(func() { l.run(ctx) })
	return l
}

// add lists a track with its lane and its task.
func (l *Lane) add(spec TrackSpec) *Track {
	tr := newTrack(l.task, l, spec)
	l.set.Lock()
	l.set.tracks[spec.Source] = tr
	l.set.Unlock()
	l.task.mu.Lock()
	l.task.byPartition[spec.Source] = tr
	l.task.mu.Unlock()
	return tr
}

// Start begins to copy partitions from where coord found their places.
func (l *Lane) Start(specs []TrackSpec) {
	for _, spec := range specs {
		tr := l.add(spec)
		tr.mu.Lock()
		targetOK := l.task.routeTargetLocked(&tr.outlet)
		switch {
		case !targetOK:
			tr.app.phase = halted
			tr.waitLocked("target: no leader known")
			l.task.steward.watch(tr, ailTarget)
		case tr.otherTargetLocked():
			// What is cached may be older than what coord has seen: the steward asks.
			tr.app.phase = halted
			tr.waitLocked("target: its topic is asked for again")
			l.task.steward.watch(tr, ailTarget)
		case !l.task.routeSourceLocked(tr):
			tr.waitLocked("source: no leader known")
			l.task.steward.watch(tr, ailSource)
		case tr.state != TrackParked:
			tr.runLocked()
		}
		tr.mu.Unlock()
	}
}

// Park lists a partition that cannot be copied, with the reason, so that it is
// seen in the status.
func (l *Lane) Park(spec TrackSpec, reason string) {
	tr := l.add(spec)
	tr.mu.Lock()
	tr.parkLocked(reason)
	tr.mu.Unlock()
}

// Stop ends tracks whose topics are no longer replicated. What they had in
// flight is settled or forgotten; their positions stay as written.
func (l *Lane) Stop(tps []kafka.TopicPartition) {
	for _, tp := range tps {
		l.set.Lock()
		tr := l.set.tracks[tp]
		delete(l.set.tracks, tp)
		l.set.Unlock()
		if tr != nil {
			tr.close()
		}
	}
}

// Index is the lane's partition number.
func (l *Lane) Index() int32 { return l.spec.Index }

// Close drains the lane until ctx ends: no more fetching, all in flight
// acknowledged, last positions written and marked clean. It reports what was
// left unacknowledged; that will be found by the next owner's scan. A lane that
// has ended, because another owner has it, waits for nothing.
func (l *Lane) Close(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.task.wg.Go(func() {
		select {
		case <-l.over:
			cancel()
		case <-ctx.Done():
		}
	})
	tracks := l.list()
	for _, tr := range tracks {
		tr.drain()
	}
	left := 0
	for _, tr := range tracks {
		if !waitIdle(ctx, &tr.outlet, tr.stuckLocked) {
			left++
		}
	}
	var err error
	if left > 0 {
		err = fmt.Errorf("lane %d: %d partitions have batches without an answer", l.spec.Index, left)
	}
	l.commitTransaction(ctx)
	if l.written(ctx) {
		// In exactly-once this repeats the positions outside of a transaction:
		// MirrorMaker in its default mode reads aborted ones as true.
		l.commit(true)
	}
	if !l.written(ctx) {
		err = errors.Join(err, fmt.Errorf("lane %d: last positions were not written", l.spec.Index))
	}
	l.abandon()
	return err
}

// written waits until all that was written into the books is acknowledged. It
// looks after them meanwhile: who waits may be the goroutine that does so else.
func (l *Lane) written(ctx context.Context) bool {
	for {
		heals(ctx, &l.runs, &l.positions)
		// In this order: positions are queued when their runs are acknowledged.
		if l.runs.idle() && l.positions.idle() {
			return true
		}
		if ctx.Err() != nil || l.runs.isShut() {
			return false
		}
		sleep(ctx, 2*time.Millisecond)
	}
}

// abandon ends the lane and its tracks at once.
func (l *Lane) abandon() {
	l.positions.shut()
	l.runs.shut()
	l.cancel()
	<-l.done
	for _, tr := range l.list() {
		tr.close()
	}
	l.task.mu.Lock()
	if l.task.lanes[l.spec.Index] == l {
		delete(l.task.lanes, l.spec.Index)
	}
	l.task.mu.Unlock()
}

func (l *Lane) list() []*Track {
	l.set.Lock()
	defer l.set.Unlock()
	tracks := make([]*Track, 0, len(l.set.tracks))
	for _, tr := range l.set.tracks {
		tracks = append(tracks, tr)
	}
	return tracks
}

// announce asks for the track's first position record, which names our producer
// id. The track sends nothing before it is written. Called with the track's
// lock held.
func (l *Lane) announce(tr *Track) {
	l.set.Lock()
	l.set.announce = append(l.set.announce, tr)
	l.set.Unlock()
	l.signal()
}

func (l *Lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run writes positions every few seconds and whenever a track waits for its
// first one, and brings the lane's books back after failures.
func (l *Lane) run(ctx context.Context) {
	defer close(l.done)
	every := l.task.opts.CommitEvery
	if l.transactional() {
		every = transactionEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		heals(ctx, &l.positions, &l.runs)
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			if l.txn.bytes.Load() >= transactionBytes {
				l.commitTransaction(ctx)
			}
		case <-ticker.C:
			l.positions.follow()
			l.runs.follow()
			if l.transactional() {
				l.commitTransaction(ctx)
			} else {
				l.commit(false)
			}
		}
		l.announceWaiting(ctx)
	}
}

// announceWaiting lets tracks send that wait to: it writes their first
// positions, or adds them to the transaction.
func (l *Lane) announceWaiting(ctx context.Context) {
	l.set.Lock()
	waiting := l.set.announce
	l.set.announce = nil
	l.set.Unlock()
	if len(waiting) == 0 {
		return
	}
	if l.transactional() {
		l.joinTransaction(ctx, waiting)
		return
	}
	l.write(waiting, false, func() {
		for _, tr := range waiting {
			tr.mu.Lock()
			tr.held = false
			tr.kickLocked()
			tr.mu.Unlock()
		}
	})
}

// rewrite has the positions of all tracks written again, also of idle ones, and
// the whole map where that is what was lost.
func (l *Lane) rewrite(lost *book) {
	for _, tr := range l.list() {
		tr.mu.Lock()
		tr.dirty, tr.forgotten = true, true
		if lost == &l.runs {
			tr.firstChunk, tr.lastChunk = tr.runs.FirstChunk(), tr.runs.FirstChunk()
			tr.runsChanged = tr.runs.Len() > 0
		}
		tr.mu.Unlock()
	}
}

// commit writes the positions that moved. At a clean stop it writes those of
// all tracks that were active, and marks the ones that drained as clean.
func (l *Lane) commit(clean bool) {
	var moved []*Track
	for _, tr := range l.list() {
		tr.mu.Lock()
		due := tr.dirty && (clean || tr.announced && !tr.held) || clean && (tr.announced || tr.stats.batches > 0) || tr.bereftLocked()
		tr.mu.Unlock()
		if due {
			moved = append(moved, tr)
		}
	}
	if len(moved) > 0 {
		l.write(moved, clean, func() {})
	}
}

// bereft are the tracks whose positions a topic took with it that was deleted.
func (l *Lane) bereft() []*Track {
	var out []*Track
	for _, tr := range l.list() {
		tr.mu.Lock()
		if tr.bereftLocked() {
			out = append(out, tr)
		}
		tr.mu.Unlock()
	}
	return out
}

// bereftLocked reports whether the track had a position that is to be written
// again, although nothing has moved it. A track that was parked before it began
// had one of its last owner, which tells more than we know.
func (tr *Track) bereftLocked() bool {
	return tr.forgotten && (tr.stats.batches > 0 || tr.spec.Known && tr.state != TrackParked)
}

// write writes down where tracks stand: the map first, and when it is
// acknowledged the positions. done is called when these are.
func (l *Lane) write(tracks []*Track, clean bool, done func()) {
	positions, chunks := l.snapshot(tracks, clean, time.Now().UnixMilli())
	if len(chunks) == 0 {
		l.positions.write(positions, clean, done)
		return
	}
	l.runs.write(chunks, clean, func() { l.positions.write(positions, clean, done) })
}

// fenced ends the lane because another owner has it.
func (l *Lane) fenced(reason string) { l.end(reason, true) }

// reopen ends the lane so that it is taken over anew, with a fence and a scan.
func (l *Lane) reopen(reason string) { l.end(reason, false) }

func (l *Lane) end(reason string, fenced bool) {
	l.set.Lock()
	first := !l.set.ended
	l.set.ended = true
	l.set.Unlock()
	if first {
		close(l.over)
	}
	if first && l.spec.Ended != nil {
		l.task.wg.Go(func() { l.spec.Ended(reason, fenced) })
	}
}
