package replicate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/mirror"
	"heliograph/internal/recordbatch"
)

// positionBatchBytes is the size at which a lane's positions are split into
// several batches.
const positionBatchBytes = 256 << 10

// LaneSpec is a lane as its owner opened it.
type LaneSpec struct {
	Index     int32
	Producer  kafka.ProducerID
	Positions kafka.TopicPartition // the lane's partition of the position topic
	// Ended is called at most once, on a goroutine of its own, when the lane
	// cannot go on: fenced by another owner, or its writes need a new takeover.
	Ended func(reason string, fenced bool)
	// TransactionalID and Transactions make the lane deliver exactly once; empty
	// and nil otherwise.
	TransactionalID string
	Transactions    Transactions
}

// Lane is a partition of the position topic that this process owns: the
// producer identity and the positions of the tracks that hash to it. Its outlet
// writes the positions.
type Lane struct {
	outlet
	task     *Task
	spec     LaneSpec
	producer kafka.ProducerID

	set struct {
		sync.Mutex
		tracks   map[kafka.TopicPartition]*Track // by source partition
		announce []*Track                        // wait for their first position to be written
		ended    bool
	}
	txn     transaction
	tries   int // of the outlet, under its lock
	wake    chan struct{}
	cancel  context.CancelFunc
	done    chan struct{}
	lastErr string // why positions are not written, under the outlet's lock
}

// OpenLane starts a lane that coord has fenced. Its tracks come by [Lane.Start].
func (t *Task) OpenLane(spec LaneSpec) *Lane {
	ctx, cancel := context.WithCancel(t.ctx)
	l := &Lane{task: t, spec: spec, producer: spec.Producer, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	l.set.tracks = map[kafka.TopicPartition]*Track{}
	l.outlet.tp = spec.Positions
	l.outlet.owner = l
	l.outlet.app.producer = spec.Producer
	l.outlet.app.transactional, l.outlet.txnID = l.transactional(), spec.TransactionalID
	t.mu.Lock()
	t.lanes[spec.Index] = l
	t.mu.Unlock()
	t.wg.Go(func() { l.run(ctx) })
	return l
}

// Start begins to copy partitions from where coord found their places.
func (l *Lane) Start(specs []TrackSpec) {
	for _, spec := range specs {
		tr := newTrack(l.task, l, spec)
		l.set.Lock()
		l.set.tracks[spec.Source] = tr
		l.set.Unlock()
		tr.mu.Lock()
		targetOK := l.task.routeTargetLocked(&tr.outlet)
		switch {
		case !targetOK:
			tr.app.phase = halted
			tr.waitLocked("target: no leader known")
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
	tr := newTrack(l.task, l, spec)
	l.set.Lock()
	l.set.tracks[spec.Source] = tr
	l.set.Unlock()
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

// Tracks lists the source partitions of the lane.
func (l *Lane) Tracks() []kafka.TopicPartition {
	l.set.Lock()
	defer l.set.Unlock()
	tps := make([]kafka.TopicPartition, 0, len(l.set.tracks))
	for tp := range l.set.tracks {
		tps = append(tps, tp)
	}
	return tps
}

// Index is the lane's partition number.
func (l *Lane) Index() int32 { return l.spec.Index }

// Close drains the lane until ctx ends: no more fetching, all in flight
// acknowledged, last positions written and marked clean. It reports what was
// left unacknowledged; that will be found by the next owner's scan.
func (l *Lane) Close(ctx context.Context) error {
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
	l.mu.Lock()
	lost := l.closed
	l.mu.Unlock()
	var err error
	if left > 0 {
		err = fmt.Errorf("lane %d: %d partitions have batches without an answer", l.spec.Index, left)
	}
	if !lost {
		never := func() bool { return false }
		l.commitTransaction(ctx)
		if waitIdle(ctx, &l.outlet, never) {
			// In exactly-once this repeats the positions outside of a transaction:
			// MirrorMaker in its default mode reads aborted ones as true.
			l.commit(true)
		}
		if !waitIdle(ctx, &l.outlet, never) {
			err = errors.Join(err, fmt.Errorf("lane %d: last positions were not written", l.spec.Index))
		}
	}
	l.abandon()
	return err
}

// abandon ends the lane and its tracks at once.
func (l *Lane) abandon() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
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

// stuckLocked reports whether the track will not drain: a person is needed.
func (tr *Track) stuckLocked() bool { return tr.state == TrackParked && tr.app.waiting == 0 }

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
// first one, and brings the lane's outlet back after failures.
func (l *Lane) run(ctx context.Context) {
	defer close(l.done)
	every := l.task.opts.CommitEvery
	if l.transactional() {
		every = transactionEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	l.mu.Lock()
	routed := l.task.routeTargetLocked(&l.outlet)
	l.mu.Unlock()
	for {
		if !routed {
			routed = l.heal(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			if l.txn.bytes.Load() >= transactionBytes {
				l.commitTransaction(ctx)
			}
		case <-ticker.C:
			if l.transactional() {
				l.commitTransaction(ctx)
			} else {
				l.commit(false)
			}
		}
		l.announceWaiting(ctx)
		l.mu.Lock()
		routed = l.app.phase != halted && l.sink != nil
		l.mu.Unlock()
	}
}

// heal looks for the position partition's leader until it is found.
func (l *Lane) heal(ctx context.Context) bool {
	for ctx.Err() == nil {
		l.mu.Lock()
		l.tries++
		tries := l.tries
		l.mu.Unlock()
		sleep(ctx, backoff(tries))
		asking, cancel := context.WithTimeout(ctx, stewardTimeout)
		err := l.task.target.RefreshMetadata(asking, l.tp.Topic)
		cancel()
		l.mu.Lock()
		if err == nil && l.task.routeTargetLocked(&l.outlet) {
			l.app.resume()
			l.kickLocked()
			l.mu.Unlock()
			return true
		}
		if err != nil {
			l.lastErr = err.Error()
		} else {
			l.lastErr = "partition " + l.tp.String() + " has no leader"
		}
		l.mu.Unlock()
	}
	return false
}

// announceWaiting writes the first positions of tracks that wait for them.
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

// commit writes the positions that moved. At a clean stop it writes those of
// all tracks that were active, and marks the ones that drained as clean.
func (l *Lane) commit(clean bool) {
	var moved []*Track
	for _, tr := range l.list() {
		tr.mu.Lock()
		due := tr.dirty && (clean || tr.announced && !tr.held) || clean && (tr.announced || tr.stats.batches > 0)
		tr.mu.Unlock()
		if due {
			moved = append(moved, tr)
		}
	}
	if len(moved) > 0 {
		l.write(moved, clean, func() {})
	}
}

// write appends one position record a track, in as few batches as fit. done is
// called under the lane's outlet lock when the last is acknowledged.
func (l *Lane) write(tracks []*Track, clean bool, done func()) {
	var records []kafka.Record
	size := 0
	now := time.Now().UnixMilli()
	flush := func(then func(mirror.DownstreamOffset)) {
		batch, err := recordbatch.Build(records, recordbatch.BuildOptions{})
		if err != nil {
			l.end(fmt.Sprintf("positions cannot be encoded: %v", err), false)
			return
		}
		l.mu.Lock()
		l.app.push(Entry{Bytes: batch, Count: int32(len(records)), settled: then, plain: clean})
		l.kickLocked()
		l.mu.Unlock()
		records, size = nil, 0
	}
	for _, tr := range tracks {
		r := tr.positionRecord(clean, now)
		records = append(records, r)
		size += len(r.Key) + len(r.Value) + len(r.Headers[0].Value)
		if size > positionBatchBytes && tr != tracks[len(tracks)-1] {
			flush(nil)
		}
	}
	flush(func(mirror.DownstreamOffset) { done() })
}

// positionRecord snapshots the track's position as MirrorMaker's record with
// our facts in a header.
func (tr *Track) positionRecord(clean bool, now int64) kafka.Record {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.dirty = false
	key := mirror.PositionKey{
		Connector: mirror.SourceConnector, Cluster: tr.task.opts.Flow.Source,
		Topic: tr.spec.Source.Topic, Partition: tr.spec.Source.Partition,
	}
	facts := mirror.PositionFacts{
		Clean: clean && tr.app.idle(), ProducerID: tr.lane.producer.ID, ProducerEpoch: tr.lane.producer.Epoch,
		NextTarget:    tr.write,
		SourceCluster: tr.task.opts.SourceClusterID, TargetCluster: tr.task.opts.TargetClusterID,
		SourceTopicID: tr.spec.SourceID, TargetTopicID: tr.spec.TargetID,
		SourceEpoch: tr.epoch, Mode: ModeDefault,
	}
	if tr.lane.transactional() {
		facts.Mode = ModeExactlyOnce
	}
	return kafka.Record{
		Key:     key.AppendTo(nil),
		Value:   mirror.AppendPositionValue(nil, tr.position-1),
		Headers: facts.AppendHeader(nil), Timestamp: now,
	}
}

// onSettled tells whoever waited for the positions.
func (l *Lane) onSettled(e *Entry) {
	l.tries, l.lastErr = 0, ""
	if e.settled != nil {
		e.settled(e.base)
	}
}

// onHalted has the lane's goroutine look for the leader, or ends the lane.
func (l *Lane) onHalted(f failure) {
	l.lastErr = f.text()
	switch f.class {
	case kafka.ClassFence:
		l.end("positions: "+f.text(), true)
	case kafka.ClassData, kafka.ClassBug:
		l.end("positions: "+f.text(), false)
	default:
		l.signal()
	}
}

// onHint is told where the position partition's leader went.
func (l *Lane) onHint(h kafka.LeaderHint) { l.task.target.NoteLeader(l.tp, h) }

// onDrained has nothing to release: position batches are the lane's own.
func (l *Lane) onDrained() {}

// fenced ends the lane because another owner has it.
func (l *Lane) fenced(reason string) { l.end(reason, true) }

// reopen ends the lane so that it is taken over anew, with a fence and a scan.
func (l *Lane) reopen(reason string) { l.end(reason, false) }

func (l *Lane) end(reason string, fenced bool) {
	l.set.Lock()
	first := !l.set.ended
	l.set.ended = true
	l.set.Unlock()
	if first && l.spec.Ended != nil {
		l.task.wg.Go(func() { l.spec.Ended(reason, fenced) })
	}
}

// drain stops fetching; what was fetched goes on to the target.
func (tr *Track) drain() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.app.shed(func(e *Entry) { e.release(tr.task.budget) })
	tr.next = tr.position
	if last := tr.app.tail(); last != nil {
		tr.next = last.Next
	}
	if tr.from != nil {
		tr.from.remove(tr)
		tr.from = nil
	}
	if tr.state == TrackRunning {
		tr.state, tr.reason = TrackWaiting, "stopping"
	}
}

// close ends the track and releases what it holds. Batches that are being
// written are released when their connection has answered or ended.
func (tr *Track) close() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed {
		return
	}
	tr.closed = true
	if tr.from != nil {
		tr.from.remove(tr)
		tr.from = nil
	}
	tr.app.shed(func(e *Entry) { e.release(tr.task.budget) })
	if tr.app.waiting == 0 {
		tr.onDrained()
	}
}

// onDrained lets go of a closed track's entries: no answer is outstanding.
func (tr *Track) onDrained() {
	tr.app.entries.cut(0, func(e *Entry) { e.release(tr.task.budget) })
	tr.app.queued = 0
}
