package replicate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"heliograph/internal/kafka"
	"heliograph/internal/losses"
	"heliograph/internal/mirror"
)

// jitter spreads retries: a random part of d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d) //nolint:gosec // spreads retries, keeps no secret
}

// sourceTrouble makes the track wait and has the steward look for its leader.
func (tr *Track) sourceTrouble(reason string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || tr.state == TrackParked && !tr.probing {
		return
	}
	tr.preferred = kafka.NoNode // it may be the follower that is away; the leader names another
	tr.waitLocked(reason)
	tr.task.steward.watch(tr, ailSource)
}

// fetchFailed applies a fetch error of one partition.
func (tr *Track) fetchFailed(p *kafka.FetchedPartition) {
	if p.Leader.Node != kafka.NoNode {
		tr.task.source.NoteLeader(tr.spec.Source, p.Leader)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || !tr.readsLocked() {
		return
	}
	switch p.Code {
	case kafka.CodeOffsetOutOfRange:
		if tr.preferred != kafka.NoNode {
			tr.preferred = kafka.NoNode // a follower may lag; only the leader knows
			tr.waitLocked("source: back to the leader")
			tr.task.steward.watch(tr, ailSource)
			return
		}
		tr.waitLocked("source: the wanted offset is not in the log")
		tr.task.steward.watch(tr, ailRange)
	case kafka.CodeTopicAuthorizationFailed:
		tr.denyLocked(fmt.Sprintf("source: %s: grant READ on topic %s", p.Code, tr.spec.Source.Topic))
	case kafka.CodeCorruptMessage:
		if tr.corruptLocked(p.Code) {
			tr.parkLocked("the source serves a damaged batch: " + p.Code.Error())
		}
	default:
		tr.preferred = kafka.NoNode
		tr.waitLocked("source: " + p.Code.String())
		tr.task.steward.watch(tr, ailSource)
	}
}

// truncated parks a track whose source log was cut below what was copied.
func (tr *Track) truncated(p *kafka.FetchedPartition) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || !tr.readsLocked() {
		return
	}
	tr.allowedLocked()
	tr.parkLostLocked(losses.SourceTruncated, mirror.UpstreamOffset(p.DivergingEnd), tr.next, fmt.Sprintf(
		"the source log was truncated: it ends at offset %d of epoch %d, offset %d was copied already (unclean leader election, or a rebuilt source)",
		p.DivergingEnd, p.DivergingEpoch, tr.next))
}

// outOfRange decides what an offset outside of the source's log means, once the
// log's bounds are known.
func (tr *Track) outOfRange(start, end kafka.PartitionOffset) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.closed || tr.state == TrackParked {
		return
	}
	if start.Err != nil || end.Err != nil {
		tr.task.steward.watch(tr, ailRange)
		return
	}
	first := mirror.UpstreamOffset(start.Offset)
	switch {
	case tr.next < first:
		from := tr.next
		reason := "retention at the source removed the records before they were copied"
		if tr.spec.Policy.ParkOvertaken {
			tr.parkLostLocked(losses.Overtaken, from, first, reason)
			return
		}
		tr.loseLocked(losses.Overtaken, from, first, int64(first-from), reason, func() {
			tr.stats.skipped += int64(first - from)
			tr.next = first
			tr.moveLocked(first)
			tr.runLocked()
		})
	case tr.next > mirror.UpstreamOffset(end.Offset):
		tr.parkLostLocked(losses.SourceTruncated, mirror.UpstreamOffset(end.Offset), tr.next, fmt.Sprintf(
			"the source log ends at offset %d, before the position %d: it was truncated, or the topic was deleted and made again",
			end.Offset, tr.next))
	default:
		tr.runLocked()
	}
}

// moveLocked moves the position over source offsets that have nothing to copy:
// behind what is queued, or at once.
func (tr *Track) moveLocked(next mirror.UpstreamOffset) {
	if last := tr.app.tail(); last != nil {
		last.Next = next
		return
	}
	tr.position = next
	tr.dirty = true
}

// stuckLocked reports whether the track will not drain: a person is needed.
func (tr *Track) stuckLocked() bool { return tr.state == TrackParked && tr.app.waiting == 0 }

// drain stops fetching; what was sent is waited for, the rest is let go.
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
	tr.task.mu.Lock()
	if tr.task.byPartition[tr.spec.Source] == tr {
		delete(tr.task.byPartition, tr.spec.Source)
	}
	tr.task.mu.Unlock()
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
