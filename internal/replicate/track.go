package replicate

import (
	"context"
	"fmt"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
	"heliograph/internal/offsets"
	"heliograph/internal/recordbatch"
)

// Replica is one source partition with its place on the target and what the
// target topic demands of a batch.
type Replica struct {
	Source   kafka.TopicPartition
	SourceID kafka.TopicID
	Target   kafka.TopicPartition
	TargetID kafka.TopicID
	Demands  recordbatch.Target
	Policy   losses.Policy
}

// TrackSpec is a replica with the place where it starts, as coord found it.
type TrackSpec struct {
	Replica
	Next  mirror.UpstreamOffset   // first source offset to copy
	Write mirror.DownstreamOffset // where the next batch is expected to land
	// Known is false for a partition that has no position record yet.
	Known bool
	// Runs is the offset map as far as it is known; nil starts a new one.
	Runs *offsets.RunMap
	// Moved says that the start is not what the position record tells: a scan
	// found it.
	Moved bool
}

// TrackState is where a track stands.
type TrackState string

// The states of a track.
const (
	TrackRunning TrackState = "running"
	TrackWaiting TrackState = "waiting" // heals by itself, for a named reason
	// TrackParked needs a person, for a named reason. For want of a right to read
	// it ends by itself once the right is there.
	TrackParked TrackState = "parked"
)

// Track is one source partition of the flow on its way. Its outlet's lock
// guards it whole.
type Track struct {
	outlet
	task *Task
	lane *Lane
	spec TrackSpec

	// next is the source offset the next fetched batch must begin at or after.
	// asked is the offset last asked of a source; an answer to another question
	// is thrown away.
	next, asked mirror.UpstreamOffset
	epoch       kafka.LeaderEpoch // of the last batch read
	from        *source           // where it is fetched; nil while unknown
	full        bool              // not asked for because the queue is full
	window      window            // how much is asked for at once
	preferred   int32             // replica to read (KIP-392), NoNode for the leader
	aborts      recordbatch.AbortFilter

	// position and write are what is settled: everything before position is on
	// the target, and the target's next offset is write.
	position mirror.UpstreamOffset
	write    mirror.DownstreamOffset
	// visible is the position as of the last commit, and open what was
	// acknowledged since; only in exactly-once.
	visible      mirror.UpstreamOffset
	visibleWrite mirror.DownstreamOffset
	open         []openRun
	// markers is how many markers of ours may lie behind write: of transactions
	// that the partition was added to, surely or perhaps, and sent nothing in.
	// unheard is the transaction, by its number in the lane, whose adding failed last.
	markers, unheard int64
	dirty            bool // position moved since it was last written
	// forgotten: the topic that held the position or the map was deleted.
	forgotten bool

	state  TrackState
	reason string
	// denied: parked for want of a right to read, which is tried again now and
	// then. probing: the next fetch tries it.
	denied, probing bool
	since           time.Time
	tries           int
	soon            int    // how often in a row it came too soon after a commit
	lost            []loss // to be written to the ledger
	corrupted       int    // fetches of one offset that failed their checksum
	announced       bool
	pacer           *offsets.SyncPacer

	// runs is the exact offset map. firstChunk and lastChunk bound the chunks
	// that were written of it.
	runs                  *offsets.RunMap
	runsChanged           bool
	firstChunk, lastChunk int64

	stats trackStats
}

func newTrack(t *Task, l *Lane, spec TrackSpec) *Track {
	tr := &Track{
		task: t, lane: l, spec: spec,
		next: spec.Next, asked: -1, epoch: kafka.NoLeaderEpoch, preferred: kafka.NoNode,
		position: spec.Next, write: spec.Write, visible: spec.Next, visibleWrite: spec.Write, runs: spec.Runs,
		state: TrackWaiting, reason: "starting", since: time.Now(),
		pacer: offsets.NewSyncPacer(t.opts.OffsetLagMax), dirty: spec.Moved, unheard: -1,
	}
	tr.window = window{bytes: t.opts.PartitionMaxBytes, least: t.opts.PartitionMaxBytes, most: t.opts.FetchMaxBytes}
	if tr.runs == nil {
		tr.runs = &offsets.RunMap{}
	}
	tr.firstChunk, tr.lastChunk = tr.runs.FirstChunk(), tr.runs.LastChunk()
	tr.runsChanged = spec.Moved && tr.runs.Len() > 0
	tr.tp, tr.topic = spec.Target, spec.TargetID
	tr.owner = tr
	tr.merger, tr.limit = &t.merger, spec.Demands.MaxMessageBytes
	tr.app.producer = l.producer()
	tr.app.transactional, tr.txnID = l.transactional(), l.spec.TransactionalID
	tr.leased, tr.always = l.spec.Leased, l.spec.Unfenced
	tr.held = true
	return tr
}

// fetchable says what to ask the source for, if there is room, and how large its
// batches are.
func (tr *Track) fetchable() (p kafka.FetchPartition, batch int32, ok bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.full = tr.app.queued >= int(tr.window.bytes)
	if tr.closed || !tr.readsLocked() || tr.full || tr.app.phase != flowing {
		tr.asked = -1
		return p, 0, false
	}
	tr.asked = tr.next
	_, epoch, _, known := tr.task.source.Leader(tr.spec.Source)
	if !known {
		epoch = kafka.NoLeaderEpoch
	}
	return kafka.FetchPartition{
		TopicPartition: tr.spec.Source, TopicID: tr.spec.SourceID,
		Offset: int64(tr.next), CurrentEpoch: epoch, LastFetchedEpoch: tr.epoch,
		MaxBytes: tr.window.ask(),
	}, tr.window.piece, true
}

// onSettled moves the position behind an acknowledged batch.
func (tr *Track) onSettled(e *Entry) {
	tr.checkPlace(e)
	tr.position = e.Next
	tr.write = e.base + mirror.DownstreamOffset(e.Count)
	tr.markers = 0
	tr.dirty = true
	tr.tries, tr.soon = 0, 0
	tr.stats.acked(e, time.Now())
	tr.task.traffic.delivered.Add(int64(e.Taken))
	if tr.lane.transactional() && tr.lane.txn.bytes.Add(int64(e.bytes())) >= transactionBytes {
		tr.lane.signal()
	}
	tr.publishSyncs(e)
	e.release(tr.task.budget)
	if tr.full && tr.app.queued < int(tr.window.bytes) && tr.from != nil {
		tr.full = false
		tr.from.touch(tr)
	}
}

// checkPlace holds the batch's place on the target against the end of our last
// write. A gap that our markers do not explain may mean that somebody else writes
// there, a step back that the target's log was cut.
func (tr *Track) checkPlace(e *Entry) {
	switch {
	case e.base > tr.write+mirror.DownstreamOffset(tr.markers):
		from, to := tr.write, e.base
		tr.task.wg.Go(func() { tr.examineGap(from, to) })
	case e.base < tr.write:
		tr.parkLostLocked(losses.TargetTruncated, e.From, e.From,
			fmt.Sprintf("the target partition %s was truncated or made again: it took our batch at offset %d, where %d was expected", tr.tp, e.base, tr.write))
	}
}

// foreignLocked notes what somebody else wrote to the target partition.
func (tr *Track) foreignLocked(from mirror.DownstreamOffset, n int64) {
	if tr.stats.foreign == 0 {
		tr.task.log.Warn("somebody else writes to a replicated partition", "topic", tr.tp.Topic, "partition", tr.tp.Partition,
			"downstream", int64(from), "records", n)
	}
	tr.stats.foreign += n
	if tr.spec.Policy.ParkForeign {
		tr.parkLostLocked(losses.ForeignWriter, tr.next, tr.next,
			fmt.Sprintf("somebody else wrote %d records to %s from offset %d on: copying on would append to them", n, tr.tp, from))
	}
}

// A gap is read until it answers: each time within examineWithin, after pauses
// that double from examineAgain up to it.
const (
	examineWithin = 30 * time.Second
	examineAgain  = time.Second
)

// examineGap reads what lies between two of our batches. Markers there are
// nobody's records: a coordinator that moves or whose broker hung may write those
// of a fence or of a transaction late, or again.
func (tr *Track) examineGap(from, to mirror.DownstreamOffset) {
	for pause := examineAgain; tr.task.ctx.Err() == nil; pause = min(2*pause, examineWithin) {
		n, err := tr.countGap(from, to)
		if err == nil {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if n > 0 && !tr.closed {
				tr.foreignLocked(from, n)
			}
			return
		}
		if pause == examineAgain || !kafka.Heals(err) {
			tr.task.log.Warn("a gap between our batches on the target could not be read", "topic", tr.tp.Topic, "partition", tr.tp.Partition,
				"downstream", int64(from), "to", int64(to), "err", err)
		}
		if !kafka.Heals(err) || tr.isClosed() {
			return
		}
		sleep(tr.task.ctx, pause)
	}
}

func (tr *Track) isClosed() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.closed
}

func (tr *Track) countGap(from, to mirror.DownstreamOffset) (int64, error) {
	ctx, cancel := context.WithTimeout(tr.task.ctx, examineWithin)
	defer cancel()
	return tr.task.countRecords(ctx, tr.tp, from, to)
}

// publishSyncs asks the pacer, run by run, which offset pairs are worth publishing.
func (tr *Track) publishSyncs(e *Entry) {
	if e.Runs == nil {
		tr.settledRun(e.From, e.base, e.Count)
		return
	}
	for _, r := range e.Runs {
		tr.settledRun(mirror.UpstreamOffset(r.Source), e.base+mirror.DownstreamOffset(r.Index), r.Count)
	}
}

// settledRun publishes a run at once, or with its transaction's commit.
func (tr *Track) settledRun(u mirror.UpstreamOffset, d mirror.DownstreamOffset, n int32) {
	if tr.lane.transactional() {
		tr.open = append(tr.open, openRun{u, d, n})
		return
	}
	tr.mapRun(u, d, n)
	tr.publishRun(u, d, n)
}

func (tr *Track) publishRun(u mirror.UpstreamOffset, d mirror.DownstreamOffset, n int32) {
	if tr.task.syncs == nil {
		return
	}
	sync := mirror.OffsetSync{TopicPartition: tr.spec.Source}
	due := false
	tr.pacer.AdvanceRun(u, d, int64(n), func(reason offsets.SyncReason, u mirror.UpstreamOffset, d mirror.DownstreamOffset) {
		sync.Upstream, sync.Downstream, due = u, d, true
		tr.stats.synced(reason)
	})
	if due {
		tr.task.syncs.Due(sync)
	}
	last := mirror.UpstreamOffset(n - 1)
	if !due || sync.Upstream != u+last {
		sync.Upstream, sync.Downstream = u+last, d+mirror.DownstreamOffset(last)
		tr.task.syncs.Delay(sync)
	}
}

// onHint is told where the target partition's leader went.
func (tr *Track) onHint(h kafka.LeaderHint) { tr.task.target.NoteLeader(tr.tp, h) }

// onHalted decides what a failed batch means for the track.
func (tr *Track) onHalted(f failure) {
	if f.code == kafka.CodeConcurrentTransactions && tr.soon < len(soonAgain) {
		tr.soonLocked()
		return
	}
	tr.shedLocked()
	switch {
	case f.class == kafka.ClassFence:
		// Not for a person: the other owner goes on, or the lane is taken over anew.
		tr.waitLocked("another owner writes this partition: " + f.text())
		tr.lane.fenced(f.text())
	case f.code == kafka.CodeTransactionAbortable || f.code == kafka.CodeInvalidProducerIDMapping:
		tr.waitLocked("target: the transaction was aborted: " + f.text())
		tr.lane.reopen(f.text())
	case f.class == kafka.ClassData:
		tr.refusedLocked(f)
	case f.class == kafka.ClassBug:
		// The broker lost or never had our producer's state. Only reading the
		// target's tail can tell what it stored; the lane is taken over anew.
		tr.waitLocked("the target lost track of our writes: " + f.text())
		tr.lane.reopen(f.text())
	case tr.unsureLocked(time.Now()):
		// Sending again could store the batch twice. Only the target's tail tells.
		tr.waitLocked("target: " + f.text())
		tr.lane.reopen("the answer for a batch of old records was lost: " + f.text())
	case f.code == kafka.CodeTopicAuthorizationFailed:
		tr.waitLocked(fmt.Sprintf("target: %s: grant WRITE on topic %s", f.code, tr.tp.Topic))
		tr.task.steward.watch(tr, ailTarget)
	default:
		tr.waitLocked("target: " + f.text())
		tr.task.steward.watch(tr, ailTarget)
	}
}

// defaultExpiration is Kafka's default of producer.id.expiration.ms.
const defaultExpiration = 24 * time.Hour

// NoteExpiration tells how long the target remembers the sequences of a producer
// that writes nothing (producer.id.expiration.ms).
func (t *Task) NoteExpiration(d time.Duration) { t.expiration.Store(int64(d)) }

// oldAfter is half of that time: records older than that may be forgotten by
// their partition's leader while we write, and with them the producer's
// sequences (ProducerStateManager.isProducerExpired).
func (t *Task) oldAfter() time.Duration { return time.Duration(t.expiration.Load() / 2) }

// oldLocked reports whether a batch's duplicate protection may expire.
func (tr *Track) oldLocked(maxTimestamp int64, now time.Time) bool {
	return !tr.spec.Demands.LogAppendTime && !tr.app.transactional && maxTimestamp < now.Add(-tr.task.oldAfter()).UnixMilli()
}

// unsureLocked reports whether the target may have forgotten our producer while
// it is in doubt that it has stored a batch: because the batch's records are
// old, or have become so, or because the target was away for long.
func (tr *Track) unsureLocked(now time.Time) bool {
	away := tr.state == TrackWaiting && now.Sub(tr.since) > tr.task.oldAfter()
	for i := range tr.app.entries.len() {
		e := tr.app.entries.at(i)
		if e.sequence == noSequence || tr.app.transactional {
			return false
		}
		if e.doubt && (e.old || away || tr.oldLocked(e.MaxTimestamp, now)) {
			return true
		}
	}
	return false
}

// otherTargetLocked reports whether the target topic is another one than the track
// was placed for.
func (tr *Track) otherTargetLocked() bool {
	return tr.topic.Known() && tr.spec.TargetID.Known() && tr.topic != tr.spec.TargetID
}

// sameTargetLocked parks the track if its target topic was deleted and made
// again: the successor would begin in the middle.
func (tr *Track) sameTargetLocked() bool {
	if !tr.otherTargetLocked() {
		return true
	}
	tr.replacedLocked(tr.spec.Policy.RestartTarget, losses.TargetTruncated, tr.position, tr.position,
		fmt.Sprintf("topic %s was deleted and made again on the target (id %s, was %s)", tr.tp.Topic, tr.topic, tr.spec.TargetID))
	return false
}

// shedLocked lets go of what was fetched but never sent, and copies what was,
// so that a track in trouble holds little memory. The source has it all.
func (tr *Track) shedLocked() {
	tr.app.shed(func(e *Entry) { e.release(tr.task.budget) })
	for i := range tr.app.entries.len() {
		tr.app.entries.at(i).detach(tr.task.budget)
	}
	tr.next = tr.position
	if last := tr.app.tail(); last != nil {
		tr.next = last.Next
	}
	tr.asked = -1
}

func (tr *Track) setLocked(s TrackState, reason string) {
	if tr.state == TrackParked && s != TrackParked && !tr.denied {
		return // only a person ends it
	}
	if s == TrackRunning && tr.losing() {
		return // the ledger comes first
	}
	if tr.state != s || tr.reason != reason {
		if tr.state != s {
			tr.since = time.Now()
		}
		tr.task.noteState(tr, s, reason)
		tr.state, tr.reason = s, reason
	}
	tr.denied, tr.probing = false, false
	if s == TrackRunning {
		tr.askToSendLocked()
	}
	if tr.from != nil {
		tr.from.touch(tr)
	}
}

// readsLocked reports whether the source is asked for the track's records.
func (tr *Track) readsLocked() bool { return tr.state == TrackRunning || tr.probing }

// denyLocked parks a track that may not be read. It goes on by itself once it may.
func (tr *Track) denyLocked(reason string) {
	tr.setLocked(TrackParked, reason)
	tr.denied = true
	tr.task.steward.watch(tr, ailDenied)
}

// allowedLocked notes that the source lets the track read again.
func (tr *Track) allowedLocked() {
	if tr.denied {
		tr.task.log.Info("partition may be read", "topic", tr.spec.Source.Topic, "partition", tr.spec.Source.Partition)
		tr.runLocked()
	}
}

func (tr *Track) waitLocked(reason string) { tr.setLocked(TrackWaiting, reason) }
func (tr *Track) parkLocked(reason string) {
	tr.setLocked(TrackParked, reason)
	tr.parked = true
}
func (tr *Track) runLocked() { tr.setLocked(TrackRunning, "") }

// text is the failure in words.
func (f failure) text() string {
	if f.code == kafka.CodeNone {
		return f.message
	}
	if f.message == "" {
		return f.code.String()
	}
	return f.code.String() + ": " + f.message
}
